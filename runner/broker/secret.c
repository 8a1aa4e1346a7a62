/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "core/prim.h"
#include "runner/broker/secret.h"

static int refuse(const struct policy_credential *c, struct err *e,
		  const char *why)
{
	static const char *const kinds[] = { "env", "file", "cmd" };
	return err_set(e, ERR_POLICY, "line %u: %s:%s %s", c->line,
		       kinds[c->source], c->from.word[0], why);
}

static int read_env(struct secret *to, const struct policy_credential *c,
		    struct err *e)
{
	const char *v = getenv(c->from.word[0]);
	if (!v)
		return refuse(c, e, "is not set");
	size_t n = strlen(v);
	to->n = n > SECRET_MAX ? SECRET_MAX + 1 : n;
	memcpy(to->p, v, to->n);
	return 0;
}

/* Up to SECRET_MAX + 2 bytes, until the end or the deadline. */
static int read_until(int fd, struct secret *to, int64_t end_ms)
{
	while (to->n < SECRET_MAX + 2) {
		struct timespec ts;
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		clock_gettime(CLOCK_MONOTONIC, &ts);
		int64_t left = end_ms - (ts.tv_sec * 1000 +
					 ts.tv_nsec / 1000000);
		if (left <= 0)
			return -1;
		if (poll(&pfd, 1, (int)left) < 0 && errno != EINTR)
			return -1;
		if (!pfd.revents)
			continue;
		ssize_t n = read(fd, to->p + to->n, SECRET_MAX + 2 - to->n);
		if (n < 0 && errno != EINTR)
			return -1;
		if (n == 0)
			return 0;
		if (n > 0)
			to->n += (size_t)n;
	}
	return 0;
}

static int64_t deadline_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + SECRET_CMD_MS;
}

static int read_file(struct secret *to, const struct policy_credential *c,
		     struct err *e)
{
	struct stat st;
	cleanup_fd int fd = open(c->from.word[0], O_RDONLY | O_CLOEXEC |
				 O_NONBLOCK);
	if (fd < 0)
		return refuse(c, e, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return refuse(c, e, "is not a file");
	if (st.st_mode & 0077)
		return refuse(c, e, "can be read by others; chmod 600");
	return read_until(fd, to, deadline_ms()) == 0 ? 0 :
	       refuse(c, e, "cannot be read");
}

/* In the child: stdin and stderr lead nowhere. */
static _Noreturn void run_program(char **argv, int out)
{
	static const char *const keep[] = { "HOME", "USER", NULL };
	char *env[8] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8" };
	size_t n = 2;
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; keep[i]; i++) {
		cleanup_buf struct buf b = { 0 };
		const char *v = getenv(keep[i]);
		if (v)
			buf_addf(&b, "%s=%s", keep[i], v);
		if (v)
			env[n++] = buf_steal(&b);
	}
	setsid();
	if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 2) == 2 &&
	    dup2(out, 1) == 1) {
		closefrom(3);
		/* execvpe looks into our PATH, so ours is the clean one */
		setenv("PATH", env[0] + 5, 1);
		execvpe(argv[0], argv, env);
	}
	_exit(127);
}

/* Its output has ended; it has as long to end itself. */
static int wait_until(pid_t pid, int *status, int64_t end_ms)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	for (;;) {
		struct timespec ts;
		pid_t got = waitpid(pid, status, WNOHANG);
		if (got == pid)
			return 0;
		clock_gettime(CLOCK_MONOTONIC, &ts);
		if ((got < 0 && errno != EINTR) ||
		    ts.tv_sec * 1000 + ts.tv_nsec / 1000000 >= end_ms)
			return -1;
		nanosleep(&pause, NULL);
	}
}

static int read_cmd(struct secret *to, const struct policy_credential *c,
		    struct err *e)
{
	char *argv[POLICY_WORDS_MAX + 1] = { 0 };
	int p[2], status = 0;
	for (size_t i = 0; i < c->from.n; i++)
		argv[i] = c->from.word[i];
	if (pipe2(p, O_CLOEXEC) < 0)
		return refuse(c, e, strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		run_program(argv, p[1]);
	close(p[1]);
	int64_t end_ms = deadline_ms();
	int rc = pid < 0 ? -1 : read_until(p[0], to, end_ms);
	close(p[0]);
	if (pid < 0)
		return refuse(c, e, "cannot be started");
	if (rc < 0 || wait_until(pid, &status, end_ms) < 0) {
		/* it may not have its own group yet */
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		rc = -1;
	}
	if (rc < 0)
		return refuse(c, e, "gave nothing within 10 s");
	if (status == 0)
		return 0;
	return refuse(c, e, WIFEXITED(status) && WEXITSTATUS(status) == 127 ?
		      "is not in /usr/local/bin, /usr/bin or /bin" :
		      "failed");
}

/* One line end behind it is an editor's; anything else is refused. */
static int check_value(struct secret *s, const struct policy_credential *c,
		       struct err *e)
{
	if (c->source != POLICY_ENV && s->n && s->p[s->n - 1] == '\n')
		s->n--;
	if (c->source != POLICY_ENV && s->n && s->p[s->n - 1] == '\r')
		s->n--;
	if (s->n < SECRET_MIN)
		return refuse(c, e, "is shorter than 8 bytes");
	if (s->n > SECRET_MAX)
		return refuse(c, e, "is longer than 4096 bytes");
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i] < 0x20 || s->p[i] == 0x7f)
			return refuse(c, e, "holds control characters or more "
				      "than one line");
	return 0;
}

static int load_one(struct secret *to, const struct policy_credential *c,
		    struct err *e)
{
	static int (*const readers[])(struct secret *,
				      const struct policy_credential *,
				      struct err *) = {
		read_env, read_file, read_cmd
	};
	to->p = prim_secret_alloc(SECRET_MAX + 2);
	if (!to->p)
		return err_set(e, ERR_MEMORY, "no locked memory; raise "
			       "ulimit -l");
	return readers[c->source](to, c, e) < 0 ? -1 : check_value(to, c, e);
}

static void wipe_env(const struct policy *p)
{
	for (size_t i = 0; i < p->credential_n; i++) {
		const struct policy_credential *c = &p->credential[i];
		char *v = c->source == POLICY_ENV ? getenv(c->from.word[0]) :
						    NULL;
		if (!v)
			continue;
		prim_wipe(v, strlen(v));
		unsetenv(c->from.word[0]);
	}
}

int secrets_load(struct secrets *s, const struct policy *p, struct err *e)
{
	int rc = 0;
	*s = (struct secrets){ 0 };
	s->of = calloc(p->credential_n + 1, sizeof *s->of);
	if (!s->of)
		return err_set(e, ERR_MEMORY, "out of memory");
	s->n = p->credential_n;
	for (size_t i = 0; i < s->n && rc == 0; i++)
		rc = load_one(&s->of[i], &p->credential[i], e);
	wipe_env(p);
	if (rc < 0)
		secrets_free(s);
	return rc;
}

void secrets_free(struct secrets *s)
{
	for (size_t i = 0; i < s->n; i++)
		prim_secret_free(s->of[i].p);
	free(s->of);
	*s = (struct secrets){ 0 };
}

struct bytes secrets_get(const struct secrets *s, size_t i)
{
	return (struct bytes){ s->of[i].p, s->of[i].n };
}
