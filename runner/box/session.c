/* SPDX-License-Identifier: MIT */
#include "runner/box/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runner/box/clerk.h"

#define FIND_MS 20000
#define END_MS (CLERK_WAIT_MS + 2000)

const char *const session_names[SESSION_NAMES] = {
	"in", "rejected", "participants", "README", "session", "status",
	"log", "events", "out", "say", "jobs"
};

/* The whole of what it found, or false. */
static bool hear_found(struct session *s)
{
	struct pollfd p = { .fd = s->from, .events = POLLIN };
	ssize_t n;
	int rc;
	do
		rc = poll(&p, 1, FIND_MS);
	while (rc < 0 && errno == EINTR);
	do
		n = rc > 0 ? recv(s->from, &s->found, sizeof s->found,
				  MSG_WAITALL) : -1;
	while (n < 0 && rc > 0 && errno == EINTR);
	return n == (ssize_t)sizeof s->found;
}

static int start(struct session *s, const struct clerk_ask *ask, struct err *e)
{
	int pair[2];
	s->box = mmap(NULL, sizeof *s->box, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->box == MAP_FAILED) {
		s->box = NULL;
		return err_sys(e, "cannot follow a session");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "cannot follow a session");
	s->clerk = fork();
	if (s->clerk == 0)
		clerk_run(ask, s->box, pair[1]);
	int sys = errno;
	close(pair[1]);
	s->from = pair[0];
	errno = sys;
	return s->clerk < 0 ? err_sys(e, "cannot follow a session") : 0;
}

int session_open(struct session *s, const char *dir, uid_t uid, gid_t gid,
		 bool owner_too, struct err *e)
{
	const struct clerk_ask ask = { dir, uid, gid };
	*s = (struct session){ .clerk = -1, .from = -1 };
	if (start(s, &ask, e) < 0)
		return -1;
	if (!hear_found(s))
		return err_set(e, ERR_TIMEOUT, "%s does not answer", dir);
	if (s->found.why.code != ERR_NONE) {
		*e = s->found.why;
		return -1;
	}
	if (s->found.owner && !owner_too)
		return err_set(e, ERR_USAGE, "%s is an owner's mount: mount it "
			       "with the sender's link, or say session_owner: "
			       "true in the policy", dir);
	fcntl(s->from, F_SETFL, O_NONBLOCK);
	return 0;
}

void session_is(struct session *s, pid_t first)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)first);
	if (s->box && stat(path, &st) == 0)
		s->box->pid_ns = st.st_ino;
}

/* "kind json\n" */
static void give(struct bytes line, void (*add)(void *to, const char *kind,
		 struct bytes data), void *to)
{
	static const char *const kinds[] = { "session", "notice" };
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(kinds[i]);
		if (line.n > n + 1 && !memcmp(line.p, kinds[i], n) &&
		    line.p[n] == ' ')
			add(to, kinds[i], (struct bytes){ line.p + n + 1,
							  line.n - n - 1 });
	}
}

void session_follow(struct session *s, void (*add)(void *to, const char *kind,
		    struct bytes data), void *to)
{
	ssize_t n = 1;
	while (s->from >= 0 && n > 0) {
		uint8_t *at = buf_room(&s->rest, 16384), *lf;
		n = at ? recv(s->from, at, 16384, 0) : -1;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			close(s->from);
			s->from = -1;
		}
		if (n <= 0)
			return;
		s->rest.len += (size_t)n;
		while ((lf = memchr(s->rest.data, '\n', s->rest.len))) {
			size_t len = (size_t)(lf - s->rest.data);
			give((struct bytes){ s->rest.data, len }, add, to);
			buf_consume(&s->rest, len + 1);
		}
	}
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void session_end(struct session *s, void (*add)(void *to, const char *kind,
		 struct bytes data), void *to)
{
	int64_t until = now_ms() + END_MS;
	if (s->from >= 0)
		shutdown(s->from, SHUT_WR);
	while (s->from >= 0 && now_ms() < until) {
		struct pollfd p = { .fd = s->from, .events = POLLIN };
		if (poll(&p, 1, 200) > 0)
			session_follow(s, add, to);
	}
}

void session_free(struct session *s)
{
	if (s->from >= 0)
		close(s->from);
	if (s->clerk > 0) {
		kill(s->clerk, SIGKILL);
		while (waitpid(s->clerk, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->box)
		munmap(s->box, sizeof *s->box);
	buf_free(&s->rest);
	*s = (struct session){ .clerk = -1, .from = -1 };
}
