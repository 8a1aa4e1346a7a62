/* SPDX-License-Identifier: MIT */
#include "runner/box/copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/buf.h"
#include "runner/sandbox/dirs.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
	uid_t uid;
	gid_t gid;
	dev_t dev;
	struct copied *c;
};

static int copy_dir(struct walk *w, int from, int to, int depth,
		    struct err *e);

static int copy_sub(struct walk *w, int from, int to, const char *name,
		    const struct stat *st, int depth, struct err *e)
{
	if (depth >= COPY_DEPTH)
		return err_set(e, ERR_INVALID, "%s: more than %d directories "
			       "deep", name, COPY_DEPTH);
	cleanup_fd int in = openat(from, name, DIR_FLAGS);
	if (in < 0)
		return err_sys(e, "cannot open %s", name);
	if (mkdirat(to, name, 0700) < 0)
		return err_sys(e, "cannot copy %s", name);
	cleanup_fd int out = openat(to, name, DIR_FLAGS);
	if (out < 0 || fchown(out, w->uid, w->gid) < 0)
		return err_sys(e, "cannot copy %s", name);
	if (copy_dir(w, in, out, depth + 1, e) < 0)
		return -1;
	/* the box's user works in it */
	return fchmod(out, (st->st_mode & 0777) | 0700) < 0 ?
	       err_sys(e, "cannot copy %s", name) : 0;
}

static int copy_link(struct walk *w, int from, int to, const char *name,
		     struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof target - 1);
	if (n < 0)
		return err_sys(e, "cannot read the link %s", name);
	target[n] = 0;
	if (symlinkat(target, to, name) < 0 ||
	    fchownat(to, name, w->uid, w->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "cannot copy %s", name);
	return 0;
}

static int copy_file(struct walk *w, int from, int to, const char *name,
		     struct err *e)
{
	struct stat st;
	cleanup_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW |
				   O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (in < 0 || fstat(in, &st) < 0)
		return err_sys(e, "cannot open %s", name);
	if (!S_ISREG(st.st_mode)) {
		w->c->left_out++;
		return 0;
	}
	w->c->bytes += (uint64_t)st.st_size;
	if (w->c->bytes > COPY_MAX_BYTES)
		return err_set(e, ERR_SIZE, "more than %u GiB: bind it, or "
			       "name less", (unsigned)(COPY_MAX_BYTES >> 30));
	cleanup_fd int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL |
				    O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	if (out < 0)
		return err_sys(e, "cannot copy %s", name);
	if (dirs_copy_file(in, out, e) < 0)
		return err_prefix(e, "%s", name);
	return fchown(out, w->uid, w->gid) < 0 ||
	       fchmod(out, (st.st_mode & 0777) | 0600) < 0 ||
	       futimens(out, times) < 0 ?
	       err_sys(e, "cannot copy %s", name) : 0;
}

static int copy_one(struct walk *w, int from, int to, const char *name,
		    int depth, struct err *e)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "cannot look at %s", name);
	if (S_ISLNK(st.st_mode))
		return copy_link(w, from, to, name, e);
	if (S_ISDIR(st.st_mode) && st.st_dev == w->dev)
		return copy_sub(w, from, to, name, &st, depth, e);
	if (S_ISREG(st.st_mode))
		return copy_file(w, from, to, name, e);
	w->c->left_out++;
	return 0;
}

static int copy_dir(struct walk *w, int from, int to, int depth, struct err *e)
{
	int fd = openat(from, ".", DIR_FLAGS), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return err_sys(e, "cannot list a directory");
	}
	while (rc == 0 && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 &&
		    strcmp(de->d_name, "..") != 0)
			rc = copy_one(w, from, to, de->d_name, depth, e);
	closedir(d);
	return rc;
}

int copy_in(int from, int to, uid_t uid, gid_t gid, struct copied *c,
	    struct err *e)
{
	struct stat st;
	struct walk w = { uid, gid, 0, c };
	*c = (struct copied){ 0 };
	if (fstat(from, &st) < 0)
		return err_sys(e, "cannot look at it");
	w.dev = st.st_dev;
	return copy_dir(&w, from, to, 1, e);
}
