/* SPDX-License-Identifier: MIT */
#include "runner/box/way.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/prim.h"
#include "runner/box/serve.h"

/* Programs that print a credential have 10 s each. */
#define READY_MS 120000
#define HIGH 64

static int text_file(struct bytes text, struct err *e)
{
	int fd = memfd_create("policy", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n &&
	    lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	err_sys(e, "cannot hand the policy over");
	if (fd >= 0)
		close(fd);
	return -1;
}

/* First away from the low numbers, then each to its own. */
static _Noreturn void become_broker(int control, int policy, int egress,
				    int copy)
{
	int at[4] = { control, policy, egress, copy };
	for (int i = 0; i < 4; i++)
		at[i] = fcntl(at[i], F_DUPFD_CLOEXEC, HIGH);
	for (int i = 0; i < 4; i++)
		if (at[i] < 0 || dup2(at[i], SERVE_CONTROL_FD + i) < 0)
			_exit(127);
	/* a signal from the terminal is for the box: the broker ends by its
	 * control socket, after the last line of its account */
	setsid();
	execl("/proc/self/exe", "airlox-box", SERVE_ARG, (char *)NULL);
	_exit(127);
}

static int wait_ready(struct way *w, struct err *e)
{
	struct pollfd p = { .fd = w->control, .events = POLLIN };
	char text[8192];
	int rc = poll(&p, 1, READY_MS);
	if (rc < 0 && errno == EINTR)
		return err_set(e, ERR_GONE, "stopped before the box began");
	ssize_t n = rc > 0 ? recv(w->control, text, sizeof text - 1, 0) : -1;
	if (n > 6 && !memcmp(text, "ready\n", 6)) {
		buf_add(&w->ca, text + 6, (size_t)n - 6);
		return 0;
	}
	text[n > 0 ? n : 0] = 0;
	if (n > 5 && !memcmp(text, "fail\n", 5))
		return err_set(e, ERR_POLICY, "%s", text + 5);
	return err_set(e, ERR_SYS, "the broker did not start");
}

/* Made for this run, and of no use after it. */
static int give_token(struct way *w, struct err *e)
{
	uint8_t raw[WAY_TOKEN / 2];
	char text[WAY_TOKEN + 8], said[8];
	prim_random(raw, sizeof raw);
	for (size_t i = 0; i < sizeof raw; i++)
		snprintf(w->token + 2 * i, 3, "%02x", raw[i]);
	int n = snprintf(text, sizeof text, "token %s", w->token);
	if (send(w->control, text, (size_t)n, MSG_NOSIGNAL) == n &&
	    recv(w->control, said, sizeof said, 0) == 2 &&
	    !memcmp(said, "ok", 2))
		return 0;
	return err_set(e, ERR_SYS, "the broker did not start");
}

int way_open(struct way *w, struct bytes policy, int egress, int copy,
	     struct err *e)
{
	int pair[2];
	*w = (struct way){ .broker = -1, .control = -1 };
	cleanup_fd int text = text_file(policy, e);
	if (text < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "cannot make a socket for the broker");
	w->broker = fork();
	if (w->broker == 0)
		become_broker(pair[1], text, egress, copy);
	close(pair[1]);
	w->control = pair[0];
	if (w->broker < 0)
		err_sys(e, "cannot start the broker");
	else if (wait_ready(w, e) == 0 && give_token(w, e) == 0)
		return 0;
	way_close(w);
	return -1;
}

void way_close(struct way *w)
{
	if (w->control >= 0)
		close(w->control);
	while (w->broker > 0 && waitpid(w->broker, NULL, 0) < 0)
		if (errno != EINTR)
			break;
	w->control = w->broker = -1;
	buf_free(&w->ca);
}
