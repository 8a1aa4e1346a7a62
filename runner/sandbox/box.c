/* SPDX-License-Identifier: MIT
 *
 * The owner's side; keeper.c has the other. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/buf.h"
#include "runner/sandbox/box.h"
#include "runner/sandbox/keeper.h"
#include "runner/sandbox/session.h"

struct pipes {
	int out[2], err[2], control[2], in[2];
};

static void close_pair(int fd[2])
{
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

static int open_pipes(struct pipes *p, bool talks, struct err *e)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0 ||
	    (talks && pipe2(p->in, O_CLOEXEC) < 0) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		       p->control) < 0) {
		err_sys(e, "cannot make pipes for a sandbox");
		close_pair(p->out);
		close_pair(p->err);
		close_pair(p->control);
		close_pair(p->in);
		return -1;
	}
	return 0;
}

int box_start(struct box *b, const struct box_ask *ask, struct err *e)
{
	struct pipes p;
	*b = (struct box){ .keeper = -1, .control = -1, .out = -1, .err = -1,
			   .in = -1, .scratch = ask->scratch };
	if (cgroup_make(&b->cgroup, ask->cgroups, ask->cgroup_name,
			&ask->plan->limits, e) < 0)
		return -1;
	if (open_pipes(&p, ask->talks, e) < 0) {
		cgroup_close(&b->cgroup);
		cgroup_remove(&b->cgroup);
		return -1;
	}
	b->keeper = fork();
	if (b->keeper == 0)
		keeper_run(ask, &b->cgroup, p.control[1],
			   (int[3]){ p.in[0], p.out[1], p.err[1] });
	int sys = errno;
	close(p.control[1]);
	close(p.out[1]);
	close(p.err[1]);
	if (p.in[0] >= 0)
		close(p.in[0]);
	cgroup_close(&b->cgroup);
	b->control = p.control[0];
	b->out = p.out[0];
	b->err = p.err[0];
	b->in = p.in[1];
	errno = sys;
	return b->keeper < 0 ? err_sys(e, "cannot start a keeper") : 0;
}

void box_go(struct box *b)
{
	static const char word = BOX_GO;
	(void)send(b->control, &word, 1, MSG_NOSIGNAL);
}

void box_kill(struct box *b)
{
	(void)send(b->control, "k", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void box_ended(struct box *b, struct box_end *end)
{
	ssize_t n;
	do
		n = recv(b->control, end, sizeof *end, 0);
	while (n < 0 && errno == EINTR);
	if (n == sizeof *end)
		return;
	*end = (struct box_end){ .how = BOX_BROKEN };
	/* else what it prints would not end */
	(void)session_kill(b->keeper, 0);
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void box_free(struct box *b)
{
	int status = -1;
	drop(&b->control);
	drop(&b->out);
	drop(&b->err);
	drop(&b->in);
	siginfo_t info = { 0 };
	if (b->keeper > 0)	/* its number is its own until it is reaped */
		while (waitid(P_PID, (id_t)b->keeper, &info, WEXITED |
			      WNOWAIT) < 0 && errno == EINTR)
			;
	if (info.si_code != CLD_EXITED)
		(void)session_kill(b->keeper, 0);
	if (b->keeper > 0)
		while (waitpid(b->keeper, &status, 0) < 0 && errno == EINTR)
			;
	b->keeper = -1;
	if (status != 0) {	/* the keeper did not do it */
		cgroup_kill(&b->cgroup);
		cgroup_remove(&b->cgroup);
		scratch_remove(b->scratch);
	}
	b->scratch->name[0] = 0;
	scratch_close(b->scratch);
}
