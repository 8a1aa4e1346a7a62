/* SPDX-License-Identifier: MIT */
#include "runner/box/clerk.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "runner/box/letters.h"
#include "runner/box/slurp.h"

#define ROOT_INO 1		/* of every FUSE file system */

/* --- what it finds -------------------------------------------------------- */

/* The type of the file system that fd is on: of its line in mountinfo, after
 * " - ". */
static bool is_ours(int fd)
{
	char name[48], id[24] = "";
	cleanup_buf struct buf info = { 0 }, mounts = { 0 };
	snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
	cleanup_fd int a = open(name, O_RDONLY | O_CLOEXEC);
	cleanup_fd int b = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (a < 0 || b < 0 || slurp(a, 65536, &info, NULL) < 0 ||
	    slurp(b, 16 << 20, &mounts, NULL) < 0)
		return false;
	const char *at = buf_cstr(&info) ? strstr(buf_cstr(&info), "mnt_id:") :
			 NULL;
	if (!at || sscanf(at, "mnt_id: %20[0-9]", id) != 1)
		return false;
	size_t n = strlen(id);
	char *save, *text = buf_cstr(&mounts);
	for (char *s = text ? strtok_r(text, "\n", &save) : NULL; s;
	     s = strtok_r(NULL, "\n", &save))
		if (!strncmp(s, id, n) && s[n] == ' ')
			return strstr(s, " - fuse.airloxfs ") != NULL;
	return false;
}

static int explain(const struct clerk_ask *ask, struct err *e)
{
	if (errno == ENOTCONN)
		return err_set(e, ERR_USAGE, "the mount at %s is dead: the "
			       "command that mounted it mends it", ask->dir);
	if (errno == EACCES && ask->uid != (uid_t)-1)
		return err_set(e, ERR_USAGE, "uid %ld, which the box runs as, "
			       "may not enter %s: start airlox-box as whoever "
			       "mounted it, or name that user with --job-user",
			       (long)ask->uid, ask->dir);
	return err_sys(e, "%s", ask->dir);
}

static int read_role(struct session_found *f, int dir, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_fd int fd = openat(dir, "session", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || slurp(fd, 65536, &text, NULL) < 0 || !buf_cstr(&text))
		return err_sys(e, "cannot read %s/session", f->path);
	char *save, *at = buf_cstr(&text);
	for (char *s = strtok_r(at, "\n", &save); s;
	     s = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(s, "role ", 5)) {
			f->owner = !strcmp(s + 5, "owner");
			return 0;
		}
	}
	return err_set(e, ERR_USAGE, "%s/session has no role", f->path);
}

/* The mount's root, open. */
static int look(struct session_found *f, const struct clerk_ask *ask,
		struct err *e)
{
	struct stat st;
	if (!realpath(ask->dir, f->path))
		return explain(ask, e);
	cleanup_fd int dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return explain(ask, e);
	if (!is_ours(dir))
		return err_set(e, ERR_USAGE, "%s is no mounted session: mount "
			       "one with airloxfs mount", ask->dir);
	if (st.st_ino != ROOT_INO)
		return err_set(e, ERR_USAGE, "%s is within a mounted session: "
			       "name the mount itself", ask->dir);
	if (read_role(f, dir, e) < 0)
		return -1;
	for (int i = 0; i < SESSION_NAMES; i++)
		f->has[i] = fstatat(dir, session_names[i], &st,
				    AT_SYMLINK_NOFOLLOW) == 0 &&
			    (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? err_sys(e, "%s", ask->dir) : own;
}

/* --- what it follows ------------------------------------------------------ */

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell(int to, struct buf *lines)
{
	for (size_t at = 0; at < lines->len;) {
		ssize_t n = send(to, lines->data + at, lines->len - at,
				 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		at += (size_t)n;
	}
	buf_reset(lines);
}

/* What is there now: 1, 0 where there is nothing more yet, -1 at its end. */
static int read_some(int events, struct buf *to)
{
	uint8_t *at = buf_room(to, 65536);
	ssize_t n = at ? read(events, at, 65536) : -1;
	if (n > 0)
		to->len += (size_t)n;
	return n > 0 ? 1 : n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 :
	       -1;
}

static void give_lines(struct letters *l, struct buf *rest, int to)
{
	cleanup_buf struct buf out = { 0 };
	uint8_t *lf;
	while (rest->len && (lf = memchr(rest->data, '\n', rest->len))) {
		size_t n = (size_t)(lf - rest->data);
		letters_read(l, (struct bytes){ rest->data, n }, &out);
		buf_consume(rest, n + 1);
	}
	tell(to, &out);
}

/* Then nothing goes on its way, and nobody waits for it. */
static bool is_offline(int dir)
{
	char word[8] = "";
	cleanup_fd int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	return fd < 0 || (read(fd, word, 7) == 7 && !strcmp(word, "offline"));
}

static void follow(int dir, int events, const struct session_box *box, int to)
{
	struct letters l = { .dir = dir };
	struct pollfd p[2] = { { .fd = events, .events = POLLIN },
			       { .fd = to, .events = POLLIN } };
	cleanup_buf struct buf rest = { 0 }, last = { 0 };
	int64_t until = 0;
	bool gone = false;
	int rc = 1;
	while (rc >= 0 && (!until || (l.on_way && now_ms() < until &&
				      !is_offline(dir)))) {
		(void)poll(p, until ? 1 : 2, until ? 100 : -1);
		l.pid_ns = box->pid_ns;
		while ((rc = read_some(events, &rest)) > 0)
			give_lines(&l, &rest, to);
		gone = rc < 0 && !until;	/* also if the box has ended
						 * since: by it, perhaps */
		if (!until && p[1].revents)
			until = now_ms() + CLERK_WAIT_MS;
	}
	letters_end(&l, gone, &last);
	tell(to, &last);
}

/* --- */

static int become(const struct clerk_ask *ask, int to)
{
	prctl(PR_SET_NAME, "airlox-clerk");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -1;
	/* a signal from the terminal is for the box */
	setsid();
	if (to > 3)
		syscall(SYS_close_range, 3u, (unsigned)to - 1, 0);
	syscall(SYS_close_range, (unsigned)to + 1, ~0U, 0);
	if (geteuid() == 0 && ask->uid != (uid_t)-1 &&
	    (setgroups(0, NULL) < 0 ||
	     setresgid(ask->gid, ask->gid, ask->gid) < 0 ||
	     setresuid(ask->uid, ask->uid, ask->uid) < 0))
		return -1;
	/* whose memory had the credentials in its environment */
	return prctl(PR_SET_DUMPABLE, 0) < 0 ||
	       prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : 0;
}

void clerk_run(const struct clerk_ask *ask, const struct session_box *box,
	       int to)
{
	struct session_found f = { 0 };
	cleanup_buf struct buf old = { 0 };
	int events = -1, dir = -1;
	if (become(ask, to) < 0)
		err_sys(&f.why, "cannot become the box's user");
	else
		dir = look(&f, ask, &f.why);
	if (dir >= 0) {
		events = openat(dir, "events", O_RDONLY | O_NONBLOCK |
				O_CLOEXEC);
		if (events < 0)
			err_sys(&f.why, "cannot read %s/events", ask->dir);
	}
	/* what was before the box began */
	while (events >= 0 && read_some(events, &old) > 0)
		buf_reset(&old);
	if (send(to, &f, sizeof f, MSG_NOSIGNAL) != (ssize_t)sizeof f ||
	    events < 0)
		_exit(1);
	follow(dir, events, box, to);
	_exit(0);
}
