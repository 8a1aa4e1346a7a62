/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "runner/box/check.h"
#include "runner/box/say.h"
#include "runner/box/serve.h"
#include "runner/broker/broker.h"

/* Sockets for a box, their upstreams and what they wait for. */
static void raise_limit(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max < 16384 ? l.rlim_max : 16384;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int serve_main(void)
{
	struct err e = { 0 };
	struct policy *p;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_NAME, "airlox-broker");
	raise_limit();
	/* a descriptor of this process's start that is none of ours is none of
	 * its business */
	closefrom(SERVE_COPY_FD + 1);
	p = check_read_fd(SERVE_POLICY_FD, "the policy", &e);
	close(SERVE_POLICY_FD);
	if (!p) {
		char text[400];
		int n = snprintf(text, sizeof text, "fail\n%s", e.why);
		send(SERVE_CONTROL_FD, text, (size_t)n, MSG_NOSIGNAL);
		return err_exit(e.code);
	}
	int copy = fcntl(SERVE_COPY_FD, F_GETFD) < 0 ? -1 : SERVE_COPY_FD;
	for (int fd = SERVE_CONTROL_FD; fd <= SERVE_COPY_FD; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	int r = broker_run(SERVE_CONTROL_FD, SERVE_EGRESS_FD, copy, p);
	policy_free(p);
	return r;
}
