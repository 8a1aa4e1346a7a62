/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/buf.h"
#include "runner/sandbox/spawn.h"

#define INFO_WAIT_MS 20000
#define HIGH 64			/* where descriptors wait for their number */
#define NICENESS 5

struct ends {
	int info[2], block[2];
	int data[PLAN_FDS];
	int options;		/* bubblewrap's, see options_file */
};

static int data_file(const char *text, size_t n, struct err *e)
{
	int fd = memfd_create("data", MFD_CLOEXEC);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		if (fd >= 0)
			close(fd);
		return err_sys(e, "cannot make a file for the sandbox");
	}
	return fd;
}

/* Everything up to "--", each with its NUL, for --args: the command line of
 * bubblewrap can be read in the sandbox, and has paths of the host. */
static int options_file(const struct plan *p, struct err *e)
{
	cleanup_buf struct buf all = { 0 };
	for (char **v = p->argv + 1; *v && strcmp(*v, "--"); v++)
		buf_add(&all, *v, strlen(*v) + 1);
	if (buf_failed(&all))
		return err_set(e, ERR_MEMORY, "no memory for a sandbox");
	return data_file((const char *)all.data, all.len, e);
}

static char **command_of(const struct plan *p)
{
	char **v = p->argv;
	while (*v && strcmp(*v, "--"))
		v++;
	return v;
}

static void close_ends(struct ends *d)
{
	int *all[] = { &d->info[0], &d->info[1], &d->block[0], &d->block[1],
		       &d->options };
	for (size_t i = 0; i < 5; i++)
		if (*all[i] >= 0)
			close(*all[i]);
	for (int i = 0; i < PLAN_FDS; i++)
		if (d->data[i] >= 0)
			close(d->data[i]);
}

static int open_ends(struct ends *d, const struct plan *p, struct err *e)
{
	*d = (struct ends){ { -1, -1 }, { -1, -1 }, { 0 }, -1 };
	for (int i = 0; i < PLAN_FDS; i++)
		d->data[i] = -1;
	if (pipe2(d->info, O_CLOEXEC) < 0 || pipe2(d->block, O_CLOEXEC) < 0)
		return err_sys(e, "cannot make pipes for a sandbox");
	for (size_t i = 0; i < p->n_fds; i++) {
		if (p->fds[i].use != PLAN_FD_DATA)
			continue;
		d->data[i] = data_file(p->fds[i].data,
				       strlen(p->fds[i].data), e);
		if (d->data[i] < 0)
			return -1;
	}
	d->options = options_file(p, e);
	return d->options < 0 ? -1 : 0;
}

/* --- in the child --------------------------------------------------------- */

_Noreturn static void die(const char *what)
{
	dprintf(2, "airlox-runner: cannot %s: %s\n", what, strerror(errno));
	_exit(127);
}

static int source_of(const struct plan_fd *f, const struct ends *d,
		     const struct box_ask *ask, size_t i)
{
	switch (f->use) {
	case PLAN_FD_SECCOMP: return ask->seccomp;
	case PLAN_FD_INFO: return d->info[1];
	case PLAN_FD_BLOCK: return d->block[0];
	case PLAN_FD_DATA: return d->data[i];
	}
	return -1;
}

/* First away from the low numbers, then each to its own; the options after the
 * last.  Gives the options' number. */
static int place_fds(const struct box_ask *ask, const struct ends *d,
		     const int io[3])
{
	const struct plan *p = ask->plan;
	int high[PLAN_FDS], to = PLAN_FD_FIRST;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int h_in = fcntl(io[0] < 0 ? null : io[0], F_DUPFD_CLOEXEC, HIGH);
	int h_out = fcntl(io[1], F_DUPFD_CLOEXEC, HIGH);
	int h_err = fcntl(io[2], F_DUPFD_CLOEXEC, HIGH);
	int h_options = fcntl(d->options, F_DUPFD_CLOEXEC, HIGH);
	for (size_t i = 0; i < p->n_fds; i++)
		high[i] = fcntl(source_of(&p->fds[i], d, ask, i),
				F_DUPFD_CLOEXEC, HIGH);
	if (dup2(h_in, 0) < 0 || dup2(h_out, 1) < 0 || dup2(h_err, 2) < 0)
		die("place its descriptors");
	for (size_t i = 0; i < p->n_fds; i++, to++)
		if (dup2(high[i], p->fds[i].at) < 0)
			die("place its descriptors");
	if (dup2(h_options, to) < 0)
		die("place its descriptors");
	syscall(SYS_close_range, (unsigned)to + 1, ~0U, 0);
	return to;
}

static void set_limits(const struct plan *p)
{
	for (size_t i = 0; i < p->n_rlimits; i++) {
		const struct plan_rlimit *l = &p->rlimits[i];
		struct rlimit now, want = { l->value, l->value };
		if (l->inside || getrlimit(l->resource, &now) < 0)
			continue;
		if (want.rlim_max > now.rlim_max)
			want.rlim_cur = want.rlim_max = now.rlim_max;
		if (setrlimit(l->resource, &want) < 0)
			die("set its limits");
	}
	(void)setpriority(PRIO_PROCESS, 0, NICENESS);
}

/* Should this machine run out of memory, the job goes first. */
static void offer_to_oom(void)
{
	cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY |
				 O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, "500", 3);
}

static void become(const struct box_ask *ask)
{
	if (geteuid() != 0)
		return;
	if (setgroups(0, NULL) < 0 ||
	    setresgid(ask->gid, ask->gid, ask->gid) < 0 ||
	    setresuid(ask->uid, ask->uid, ask->uid) < 0)
		die("become the job's user");
	if (geteuid() == 0 || setuid(0) == 0) {
		errno = EPERM;
		die("stop being root");
	}
}

_Noreturn static void run(const struct box_ask *ask, const struct cgroup *g,
			  const struct ends *d, const int io[3], pid_t keeper)
{
	static char *const none[] = { NULL };
	char number[12], name[] = "bwrap", args[] = "--args";
	char **argv = command_of(ask->plan) - 3;
	sigset_t all;
	if (cgroup_enter(g) < 0)
		die("enter its control group");
	snprintf(number, sizeof number, "%d", place_fds(ask, d, io));
	argv[0] = name;
	argv[1] = args;
	argv[2] = number;
	set_limits(ask->plan);
	offer_to_oom();
	become(ask);
	umask(022);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != keeper)
		die("die with its keeper");
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (chdir("/") < 0)
		die("enter /");
	execve(ask->bwrap, argv, none);
	die("run bwrap");
}

/* --- in the keeper -------------------------------------------------------- */

int spawn_bwrap(struct spawned *s, const struct box_ask *ask,
		const struct cgroup *cgroup, const int io[3], struct err *e)
{
	struct ends d;
	pid_t self = getpid();

	*s = (struct spawned){ -1, -1, -1 };
	if (lseek(ask->seccomp, 0, SEEK_SET) < 0)
		return err_sys(e, "no system call filter");
	if (open_ends(&d, ask->plan, e) == 0) {
		s->bwrap = fork();
		if (s->bwrap == 0)
			run(ask, cgroup, &d, io, self);
		if (s->bwrap < 0)
			err_sys(e, "cannot fork");
	}
	if (s->bwrap > 0) {
		s->info = d.info[0];
		s->block = d.block[1];
		d.info[0] = d.block[1] = -1;
	}
	close_ends(&d);
	return s->bwrap > 0 ? 0 : -1;
}

/* {"child-pid": N, ... */
pid_t spawn_first(const struct spawned *s)
{
	static const char key[] = "\"child-pid\":";
	char text[512];
	size_t n = 0;
	struct pollfd p = { .fd = s->info, .events = POLLIN };

	while (n < sizeof text - 1 && poll(&p, 1, INFO_WAIT_MS) > 0) {
		ssize_t m = read(s->info, text + n, sizeof text - 1 - n);
		if (m < 0 && errno == EINTR)
			continue;
		if (m <= 0)
			break;
		n += (size_t)m;
		text[n] = 0;
		char *at = strstr(text, key), *end;
		if (!at)
			continue;
		long pid = strtol(at + sizeof key - 1, &end, 10);
		if (pid > 1 && (*end == ',' || *end == '\n' || *end == '}' ||
				!*end))
			return (pid_t)pid;
	}
	return -1;
}

static int set_inside(pid_t first, const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_rlimits; i++) {
		const struct plan_rlimit *l = &plan->rlimits[i];
		struct rlimit now, want = { l->value, l->value };
		if (!l->inside)
			continue;
		if (prlimit(first, l->resource, NULL, &now) < 0)
			return -1;
		if (want.rlim_max > now.rlim_max)
			want.rlim_cur = want.rlim_max = now.rlim_max;
		if (prlimit(first, l->resource, &want, NULL) < 0)
			return -1;
	}
	return 0;
}

/* A root that has not all capabilities, as in a container, may not; the job's
 * user may, of its own processes. */
static int set_as_user(pid_t first, const struct box_ask *ask)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		become(ask);
		_exit(set_inside(first, ask->plan) == 0 ? 0 : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 && status == 0 ? 0 : -1;
}

int spawn_limit(pid_t first, const struct box_ask *ask)
{
	return set_inside(first, ask->plan) == 0 ||
	       (errno == EPERM && geteuid() == 0 &&
		set_as_user(first, ask) == 0) ? 0 : -1;
}

int spawn_release(struct spawned *s)
{
	ssize_t n = write(s->block, "x", 1);
	close(s->block);
	s->block = -1;
	return n == 1 ? 0 : -1;
}
