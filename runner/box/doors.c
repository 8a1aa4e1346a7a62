/* SPDX-License-Identifier: MIT */
#include "runner/box/doors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/buf.h"

static int become(const struct doors *d)
{
	if (geteuid() != 0)
		return 0;
	return setgroups(0, NULL) < 0 ||
	       setresgid(d->gid, d->gid, d->gid) < 0 ||
	       setresuid(d->uid, d->uid, d->uid) < 0 ? -1 : 0;
}

/* Whoever made a user namespace may enter it, and is capable there: also of
 * entering the network namespace that belongs to it and of the ports below
 * 1024. */
static int enter(pid_t first)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)first);
	cleanup_fd int net = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_fd int user = net < 0 ? -1 : ioctl(net, NS_GET_USERNS);
	return user < 0 || setns(user, CLONE_NEWUSER) < 0 ||
	       setns(net, CLONE_NEWNET) < 0 ? -1 : 0;
}

/* bubblewrap may not have given lo its address yet, but will before anything
 * runs. */
static int listen_at(uint16_t port)
{
	int one = 1;
	const struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one,
				  sizeof one) == 0 &&
	    bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
	    listen(fd, 512) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A packet with a descriptor, and the answer. */
static int hand_over(int control, const char *words, int fd)
{
	union { char space[CMSG_SPACE(sizeof(int))]; struct cmsghdr h; } u;
	struct iovec iov = { (void *)(uintptr_t)words, strlen(words) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = u.space,
			    .msg_controllen = sizeof u.space };
	char said[8];
	memset(&u, 0, sizeof u);
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	if (sendmsg(control, &m, MSG_NOSIGNAL) < 0)
		return -1;
	return recv(control, said, sizeof said, 0) == 2 &&
	       !memcmp(said, "ok", 2) ? 0 : -1;
}

static int open_all(const struct doors *d, pid_t first)
{
	static const struct { const char *words; uint16_t port; } all[] = {
		{ "door proxy", DOORS_PROXY_PORT }, { "door http", 80 },
		{ "door https", 443 },
	};
	if (become(d) < 0 || enter(first) < 0)
		return -1;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		cleanup_fd int fd = listen_at(all[i].port);
		if (fd < 0 || hand_over(d->control, all[i].words, fd) < 0)
			return -1;
	}
	return 0;
}

int doors_open(void *doors, pid_t first)
{
	struct doors *d = doors;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		int rc = open_all(d, first);
		if (rc < 0)
			dprintf(2, "airlox-box: cannot open the way to the "
				"broker: %s\n", strerror(errno));
		_exit(rc < 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	close(d->control);
	return pid > 0 && status == 0 ? 0 : -1;
}
