/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "runner/run.h"

#define OUT_MAX (64 << 10)

extern char **environ;

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool run_find(const char *name, char *to, size_t cap)
{
	const char *path = getenv("PATH");
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		/* never the current directory */
		if (*p == '/' && snprintf(to, cap, "%.*s/%s", (int)n, p, name)
		    < (int)cap && access(to, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

_Noreturn static void child(const struct run_ask *ask, int out)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(out, 2) < 0 || chdir(ask->dir ? ask->dir : "/") < 0)
		_exit(126);
	if (geteuid() == 0 && ask->uid != (uid_t)-1 &&
	    (setgroups(0, NULL) < 0 ||
	     setresgid(ask->gid, ask->gid, ask->gid) < 0 ||
	     setresuid(ask->uid, ask->uid, ask->uid) < 0))
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (char **v = environ; !ask->env && *v;) {
		char name[64];
		size_t n = strcspn(*v, "=");
		if (strncmp(*v, "AIRLOX_", 7) || n >= sizeof name) {
			v++;
			continue;
		}
		snprintf(name, sizeof name, "%.*s", (int)n, *v);
		unsetenv(name);
	}
	if (ask->env)
		environ = (char **)ask->env;
	execvp(ask->argv[0], (char *const *)ask->argv);
	_exit(127);
}

/* Reads to its end, or the deadline, or the stop. */
static int listen_to(const struct run_ask *ask, int fd, struct buf *out,
		     struct err *e)
{
	int64_t until = now_ms() + ask->timeout_ms;
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
			       { .fd = ask->stop, .events = POLLIN } };
	char block[4096];
	for (;;) {
		int64_t left = until - now_ms();
		if (left <= 0)
			return err_set(e, ERR_TIMEOUT, "%s took too long",
				       ask->argv[0]);
		if (poll(p, 2, (int)left) < 0 && errno != EINTR)
			return err_sys(e, "cannot wait for %s", ask->argv[0]);
		if (p[1].revents)
			return err_set(e, ERR_GONE, "stopped");
		if (!p[0].revents)
			continue;
		ssize_t n = read(fd, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (out->len < OUT_MAX)
			buf_add(out, block, (size_t)n);
	}
}

int run_program(const struct run_ask *ask, struct buf *out, struct err *e)
{
	int p[2], status;
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, "cannot make a pipe");
	pid_t pid = fork();
	if (pid == 0)
		child(ask, p[1]);
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return err_sys(e, "cannot fork");
	}
	int r = listen_to(ask, p[0], out, e);
	close(p[0]);
	if (r < 0)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}
