/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "relay/ready.h"

void ready_tell(const char *state)
{
	const char *to = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = to ? strlen(to) : 0;
	if (n < 2 || n >= sizeof a.sun_path || (*to != '/' && *to != '@'))
		return;
	memcpy(a.sun_path, to, n);
	if (*to == '@')
		a.sun_path[0] = 0;	/* an abstract name */
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Who started us can do without, so a failure is no error. */
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		      (const struct sockaddr *)&a,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}
