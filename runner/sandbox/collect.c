/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clear.h"
#include "runner/sandbox/collect.h"
#include "runner/sandbox/dirs.h"

#define NAMES_MAX 600		/* bytes: they go into a sentence */

struct walk {
	const struct collect_limits *limits;
	struct collected *c;
	char path[4096];	/* of what is looked at, for naming */
	uint64_t entries;
	uint64_t named;		/* of those that were dropped */
};

static void drop(struct walk *w, const char *why)
{
	struct collected *c = w->c;
	c->dropped++;
	if (c->names.len > NAMES_MAX)
		return;
	w->named++;
	cleanup_buf struct buf name = { 0 };
	clear_escape(&name, bytes_str(w->path));
	buf_addf(&c->names, "%s%.*s (%s)", c->names.len ? ", " : "",
		 (int)(name.len < 200 ? name.len : 200),
		 buf_cstr(&name) ? buf_cstr(&name) : "", why);
}

static const char *kind_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK: return "symbolic link";
	case S_IFIFO: return "fifo";
	case S_IFSOCK: return "socket";
	case S_IFCHR: case S_IFBLK: return "device";
	default: return "no regular file";
	}
}

/* False once the place that it goes to is gone. */
static bool is_there(int err)
{
	return err != ENOTCONN && err != ESHUTDOWN && err != ESTALE &&
	       err != EIO;
}

static int drop_or_fail(struct walk *w, struct err *e)
{
	int sys = errno;
	if (!is_there(sys))
		return err_sys(e, "cannot write to the queue");
	switch (sys) {
	case EINVAL: drop(w, "a name that cannot travel"); break;
	case EFBIG: drop(w, "too large"); break;
	case ENOSPC: drop(w, "too many files"); break;
	default: drop(w, strerror(sys)); break;
	}
	return 0;
}

static int copy_bytes(struct walk *w, int in, int out, int to,
		      const char *name, struct err *e)
{
	struct err why = { 0 };
	if (dirs_copy_file(in, out, &why) == 0)
		return 0;
	unlinkat(to, name, 0);
	errno = why.sys;
	return drop_or_fail(w, e);
}

static int take_file(struct walk *w, int in, const struct stat *st, int to,
		     const char *name, struct err *e)
{
	struct collected *c = w->c;
	uint64_t size = (uint64_t)st->st_size;
	if (c->files >= w->limits->files) {
		drop(w, "too many files");
		return 0;
	}
	if (size > w->limits->bytes - c->bytes) {
		drop(w, "too large");
		return 0;
	}
	int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
			 O_CLOEXEC, 0644);
	if (out < 0)
		return drop_or_fail(w, e);
	uint64_t before = c->dropped;
	int r = copy_bytes(w, in, out, to, name, e);
	if (close(out) < 0 && r == 0)
		r = drop_or_fail(w, e);
	if (r == 0 && c->dropped == before) {
		c->files++;
		c->bytes += size;
	}
	return r;
}

static int walk_dir(struct walk *w, int from, int to, int depth,
		    struct err *e);

static int take_dir(struct walk *w, int in, int to, const char *name,
		    int depth, struct err *e)
{
	if (depth >= DIRS_DEPTH) {
		drop(w, "too deep");
		return 0;
	}
	if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
		return drop_or_fail(w, e);
	cleanup_fd int below = openat(to, name, O_RDONLY | O_DIRECTORY |
				      O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return drop_or_fail(w, e);
	return walk_dir(w, in, below, depth + 1, e);
}

static int take(struct walk *w, int from, int to, const char *name, int depth,
		struct err *e)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		drop(w, strerror(errno));
		return 0;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		drop(w, kind_word(st.st_mode));
		return 0;
	}
	cleanup_fd int in = dirs_open(from, name, O_RDONLY | O_NOFOLLOW |
				      O_NONBLOCK | O_NOCTTY);
	if (in < 0 && errno == EACCES && fchmodat(from, name, 0700, 0) == 0)
		in = dirs_open(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
			       O_NOCTTY);
	/* What was looked at and what was opened are the same. */
	if (in < 0 || fstat(in, &st) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		drop(w, in < 0 ? strerror(errno) : kind_word(st.st_mode));
		return 0;
	}
	return S_ISDIR(st.st_mode) ? take_dir(w, in, to, name, depth, e)
				   : take_file(w, in, &st, to, name, e);
}

static int walk_dir(struct walk *w, int from, int to, int depth, struct err *e)
{
	size_t end = strlen(w->path);
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	int r = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return err_sys(e, "cannot list the job's files");
	}
	while (r == 0 && (de = readdir(d))) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		if (++w->entries > 4 * w->limits->files + 1000) {
			drop(w, "and more");
			break;
		}
		snprintf(w->path + end, sizeof w->path - end, "%s%s",
			 end ? "/" : "", de->d_name);
		r = take(w, from, to, de->d_name, depth, e);
		w->path[end] = 0;
	}
	closedir(d);
	return r;
}

int collect_out(int from, int to, const struct collect_limits *limits,
		struct collected *c, struct err *e)
{
	struct walk w = { .limits = limits, .c = c };
	*c = (struct collected){ 0 };
	int r = walk_dir(&w, from, to, 1, e);
	if (c->dropped > w.named)
		buf_addf(&c->names, ", and %llu more",
			 (unsigned long long)(c->dropped - w.named));
	return r;
}

void collected_free(struct collected *c)
{
	buf_free(&c->names);
}
