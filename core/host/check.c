/* SPDX-License-Identifier: MIT
 *
 * The parent: it hands a child the bytes of a file, and takes a verdict from
 * it.  The child has read what a peer wrote and may be the peer's by now:
 * nothing it says is believed but "yes", "no", a sentence to show, and a
 * cleaned image of the size it can have.  What breaks the child, or turns it,
 * is a fault of the file. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "core/clear.h"
#include "core/host/check.h"
#include "core/host/check_parts.h"
#include "core/name.h"

#ifndef CHECK_DEADLINE_MS
#define CHECK_DEADLINE_MS (CHECK_SECONDS * 1000)
#endif
#define ASTRAY "could not be checked: the checker went astray"

struct talk {
	pid_t pid;
	int fd;
	int64_t deadline_ms;
	bool ended;		/* the child closed its end: it is dead */
	const struct zip_source *body;
	const struct zip_sink *sink;	/* or NULL: no image is wanted */
	const struct check_unpack *unpack;	/* or NULL */
	uint64_t taken;		/* bytes of the cleaned image, or of entries */
	uint64_t left;		/* of the entry that is being unpacked */
	size_t entries;
	uint8_t chunk[CHECK_CHUNK];
};

/* --- the child's life --- */

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Its end of the socket comes first: it may be one of 0, 1, 2 here. */
static int set_files(posix_spawn_file_actions_t *a, int fd)
{
	if (posix_spawn_file_actions_adddup2(a, fd, CHECK_FD))
		return -1;
	for (int i = 0; i < CHECK_FD; i++)
		if (posix_spawn_file_actions_addopen(a, i, "/dev/null", O_RDWR,
						     0))
			return -1;
	return posix_spawn_file_actions_addclosefrom_np(a, CHECK_FD + 1) ? -1
									 : 0;
}

static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	return posix_spawnattr_setsigmask(attr, &none) ||
	       posix_spawnattr_setsigdefault(attr, &all) ||
	       posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK |
					POSIX_SPAWN_SETSIGDEF) ? -1 : 0;
}

static int spawn(pid_t *pid, int fd)
{
	char name[] = "airloxfs", arg[] = CHECK_ARG;
	char *argv[] = { name, arg, NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t a;
	posix_spawnattr_t attr;
	int r = ENOMEM;

	if (posix_spawn_file_actions_init(&a))
		return ENOMEM;
	if (posix_spawnattr_init(&attr) == 0) {
		if (set_files(&a, fd) == 0 && set_signals(&attr) == 0)
			r = posix_spawn(pid, "/proc/self/exe", &a, &attr, argv,
					envp);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&a);
	return r;
}

static int start(struct talk *t, struct err *e)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		return err_sys(e, "cannot talk to a checker");
	int failed = spawn(&t->pid, fd[1]);
	close(fd[1]);
	if (failed) {
		errno = failed;
		err_sys(e, "cannot start a checker");
		close(fd[0]);
		return -1;
	}
	t->fd = fd[0];
	t->deadline_ms = now_ms() + CHECK_DEADLINE_MS;
	return 0;
}

/* Ends the child and says, where it ended by itself, what of.  Only its end
 * closes its socket: a child that `ended` is not waited for in vain. */
static void reap(struct talk *t, struct err *e)
{
	int status;
	pid_t r;

	if (!t->ended)
		kill(t->pid, SIGKILL);
	close(t->fd);
	do
		r = waitpid(t->pid, &status, 0);
	while (r < 0 && errno == EINTR);
	if (!t->ended)
		return;
	if (r == t->pid && WIFSIGNALED(status))
		err_set(e, ERR_CONTENT, "could not be checked: the checker was "
			"stopped (signal %d)", WTERMSIG(status));
	else if (r == t->pid && WEXITSTATUS(status) == CHECK_EXIT_SANDBOX)
		err_set(e, ERR_SYS, "this machine cannot lock a checker in");
	else
		err_set(e, ERR_SYS, "the checker ended without a word");
}

/* --- the talk --- */

static int await(struct talk *t, short event, struct err *e)
{
	struct pollfd p = { .fd = t->fd, .events = event };

	for (;;) {
		int64_t left = t->deadline_ms - now_ms();
		int r = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (r > 0)
			return 0;
		if (r == 0)
			return err_set(e, ERR_TIMEOUT, "could not be checked "
				       "within %d s", CHECK_SECONDS);
		if (errno != EINTR)
			return err_sys(e, "cannot wait for a checker");
	}
}

/* n bytes, from the child or to it. */
static int move(struct talk *t, bool out, void *p, size_t n, struct err *e)
{
	for (uint8_t *at = p; n;) {
		ssize_t m = out ? send(t->fd, at, n,
				       MSG_DONTWAIT | MSG_NOSIGNAL)
				: recv(t->fd, at, n, MSG_DONTWAIT);
		if (m < 0 && errno == EAGAIN) {
			if (await(t, out ? POLLOUT : POLLIN, e) < 0)
				return -1;
		} else if (m < 0 && errno == EINTR) {
			continue;
		} else if (m == 0 || (m < 0 && (errno == EPIPE ||
						errno == ECONNRESET))) {
			t->ended = true;
			return -1;
		} else if (m < 0) {
			return err_sys(e, "cannot talk to a checker");
		} else {
			at += m;
			n -= (size_t)m;
		}
	}
	return 0;
}

static int answer_read(struct talk *t, const struct check_frame *f,
		       struct err *e)
{
	const struct zip_source *s = t->body;

	if (f->n > CHECK_CHUNK || f->off > s->size || f->n > s->size - f->off)
		return err_set(e, ERR_CONTENT, ASTRAY);
	if (f->n && s->read(s->arg, f->off, t->chunk, f->n) < 0)
		return err_set(e, ERR_SYS, "the content cannot be read");
	return move(t, true, t->chunk, f->n, e);
}

/* Of the entry that was announced last. */
static int take_data(struct talk *t, const struct check_frame *f,
		     struct err *e)
{
	if (f->n > t->left || f->n > CHECK_CHUNK)
		return err_set(e, ERR_CONTENT, ASTRAY);
	t->left -= f->n;
	if (move(t, false, t->chunk, f->n, e) < 0)
		return -1;
	return t->unpack->data(t->unpack->arg, t->chunk, f->n, e);
}

static int take_out(struct talk *t, const struct check_frame *f,
		    struct err *e)
{
	if (t->unpack)
		return take_data(t, f, e);
	t->taken += f->n;
	if (!t->sink || f->n > CHECK_CHUNK ||
	    t->taken > t->body->size + CHECK_IMAGE_MORE)
		return err_set(e, ERR_CONTENT, ASTRAY);
	if (move(t, false, t->chunk, f->n, e) < 0)
		return -1;
	if (f->n && t->sink->take(t->sink->arg, t->chunk, f->n) < 0)
		return err_set(e, ERR_SYS, "the cleaned image cannot be kept");
	return 0;
}

static int take_entry(struct talk *t, const struct check_frame *f,
		      struct err *e)
{
	uint64_t size = f->off & ~(CHECK_IS_DIR | CHECK_IS_EXEC);
	bool is_dir = f->off & CHECK_IS_DIR;
	char path[NAME_PATH_BYTES + 1];

	if (!t->unpack || t->left || f->n > NAME_PATH_BYTES ||
	    ++t->entries > ZIP_MAX_ENTRIES || size > ZIP_MAX_ENTRY_BYTES ||
	    (is_dir && size) || t->taken + size > ZIP_MAX_TOTAL_BYTES)
		return err_set(e, ERR_CONTENT, ASTRAY);
	t->taken += size;
	t->left = size;
	if (move(t, false, path, f->n, e) < 0)
		return -1;
	path[f->n] = 0;
	if (memchr(path, 0, f->n) ||
	    name_check_entry((struct bytes){ (uint8_t *)path, f->n }, e) < 0)
		return err_set(e, ERR_CONTENT, ASTRAY);
	return t->unpack->entry(t->unpack->arg, path, size, is_dir,
				f->off & CHECK_IS_EXEC, e);
}

static int verdict(struct talk *t, const struct check_frame *f, struct err *e)
{
	cleanup_buf struct buf why = { 0 };

	if (f->n > CHECK_WHY)
		return err_set(e, ERR_CONTENT, ASTRAY);
	if (f->off == ERR_NONE && f->n == 0 && (!t->sink || t->taken) &&
	    !t->left)
		return 0;
	if (move(t, false, t->chunk, f->n, e) < 0)
		return -1;
	clear_escape(&why, (struct bytes){ t->chunk, f->n });
	size_t n = why.len < CHECK_WHY ? why.len : CHECK_WHY;
	while (n && n < why.len && (why.data[n] & 0xc0) == 0x80)
		n--;	/* not within a character */
	if (n == 0)
		return err_set(e, ERR_CONTENT, ASTRAY);
	return err_set(e, ERR_CONTENT, "%.*s", (int)n, (char *)why.data);
}

static int serve(struct talk *t, struct check_ask *ask, struct err *e)
{
	if (move(t, true, ask, sizeof *ask, e) < 0)
		return -1;
	for (;;) {
		struct check_frame f;
		if (move(t, false, &f, sizeof f, e) < 0)
			return -1;
		if (f.op == CHECK_DONE)
			return verdict(t, &f, e);
		int r = f.op == CHECK_READ ? answer_read(t, &f, e)
			: f.op == CHECK_OUT ? take_out(t, &f, e)
			: f.op == CHECK_ENTRY ? take_entry(t, &f, e)
			: err_set(e, ERR_CONTENT, ASTRAY);
		if (r < 0)
			return -1;
	}
}

static int check(enum check_what what, const char *mime,
		 const struct zip_source *body, const struct zip_sink *sink,
		 const struct check_unpack *unpack, struct err *e)
{
	struct check_ask ask = { .what = what, .size = body->size };
	struct talk *t = calloc(1, sizeof *t);

	if (!t)
		return err_set(e, ERR_MEMORY, "no memory for a checker");
	snprintf(ask.mime, sizeof ask.mime, "%s", mime ? mime : "");
	t->body = body;
	t->sink = sink;
	t->unpack = unpack;
	int r = start(t, e);
	if (r == 0) {
		r = serve(t, &ask, e);
		reap(t, r < 0 ? e : NULL);
	}
	explicit_bzero(t, sizeof *t);
	free(t);
	return r;
}

int check_content(enum item_type type, const char *mime,
		  const struct zip_source *body, struct err *e)
{
	if (type == TYPE_ZIP)
		return check(CHECK_ZIP, mime, body, NULL, NULL, e);
	return content_check(type, mime, body, e);
}

int check_content_whole(enum item_type type, const char *mime,
			const struct zip_source *body, struct err *e)
{
	if (type == TYPE_ZIP)
		return check(CHECK_ZIP_WHOLE, mime, body, NULL, NULL, e);
	return content_check(type, mime, body, e);
}

int check_image(const char *mime, const struct zip_source *body,
		const struct zip_sink *sink, struct err *e)
{
	if (body->size > CHECK_IMAGE_BYTES)
		return err_set(e, ERR_CONTENT, "the image is too large to be "
			       "checked");
	return check(CHECK_IMAGE, mime, body, sink, NULL, e);
}

int check_unzip(const struct zip_source *body, const struct check_unpack *to,
		struct err *e)
{
	return check(CHECK_UNZIP, NULL, body, NULL, to, e);
}
