/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "core/buf.h"
#include "runner/sandbox/dirs.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ROUNDS 100000

int dirs_open(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A stream over dir that leaves dir open, from its start. */
static DIR *open_stream(int dir)
{
	int fd = openat(dir, ".", DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* --- removing ------------------------------------------------------------- */

/* What the owner locked away from itself is opened again; as root nothing is
 * locked.  The directory was made by the sandbox: no link is followed. */
static int open_to_empty(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);
	struct stat st;
	if (fd >= 0 && (geteuid() == 0 || (fstat(fd, &st) == 0 &&
			(st.st_mode & 0700) == 0700)))
		return fd;
	if (fd >= 0) {
		(void)fchmod(fd, 0700);
		return fd;
	}
	if (errno == EACCES && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ==
	    0 && S_ISDIR(st.st_mode) && fchmodat(dir, name, 0700, 0) == 0)
		fd = openat(dir, name, DIR_FLAGS);
	return fd;
}

/* Removes what is in dir.  Directories that are deeper than a few levels are
 * first moved up to top, so that no depth costs descriptors or stack. */
static int empty(int top, int dir, int depth, unsigned *moved)
{
	DIR *d = open_stream(dir);
	struct dirent *de;
	int left = 0;

	while (d && (de = readdir(d))) {
		if (is_dots(de->d_name) ||
		    unlinkat(dir, de->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (unlinkat(dir, de->d_name, AT_REMOVEDIR) == 0)
			continue;
		if (depth >= DIRS_DEPTH) {
			char name[32];
			snprintf(name, sizeof name, ".%u", (*moved)++);
			left |= fchmodat(dir, de->d_name, 0700, 0) < 0 ||
				renameat(dir, de->d_name, top, name) < 0;
			continue;
		}
		cleanup_fd int sub = open_to_empty(dir, de->d_name);
		if (sub < 0 || empty(top, sub, depth + 1, moved) < 0 ||
		    unlinkat(dir, de->d_name, AT_REMOVEDIR) < 0)
			left = 1;
	}
	if (d)
		closedir(d);
	return left || !d ? -1 : 0;
}

int dirs_remove(int dir, const char *name, struct err *e)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	cleanup_fd int top = open_to_empty(dir, name);
	unsigned moved = 0, before;
	if (top < 0)
		return err_sys(e, "cannot open %s to remove it", name);
	/* What was moved up is there for the next round. */
	for (int i = 0; i < ROUNDS; i++) {
		before = moved;
		(void)empty(top, top, 0, &moved);
		if (moved == before)
			break;
	}
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
		return err_sys(e, "cannot remove %s", name);
	return 0;
}

/* --- measuring ------------------------------------------------------------ */

static void measure(int dir, int depth, uint64_t max, struct dirs_use *use)
{
	DIR *d = open_stream(dir);
	struct dirent *de;
	struct stat st;

	while (d && use->entries <= max && (de = readdir(d))) {
		if (is_dots(de->d_name) ||
		    fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		use->entries++;
		use->bytes += (uint64_t)st.st_blocks * 512;
		if (!S_ISDIR(st.st_mode))
			continue;
		if (depth >= DIRS_DEPTH) {
			use->too_deep = true;
			continue;
		}
		cleanup_fd int sub = openat(dir, de->d_name, DIR_FLAGS);
		if (sub >= 0)
			measure(sub, depth + 1, max, use);
	}
	if (d)
		closedir(d);
}

void dirs_measure(int dir, uint64_t max_entries, struct dirs_use *use)
{
	measure(dir, 1, max_entries, use);
}

/* --- copying -------------------------------------------------------------- */

int dirs_copy_file(int from, int to, struct err *e)
{
	static char block[128 << 10];
	for (;;) {
		ssize_t n = read(from, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read");
		if (n == 0)
			return 0;
		for (ssize_t at = 0, m; at < n; at += m) {
			m = write(to, block + at, (size_t)(n - at));
			if (m < 0 && errno == EINTR)
				m = 0;
			else if (m < 0)
				return err_sys(e, "cannot write");
		}
	}
}

struct copy {
	uid_t uid;
	gid_t gid;
	uint64_t max, bytes;
};

static int copy_one(struct copy *c, int from, int to, const char *name,
		    int depth, struct err *e);

static int copy_dir(struct copy *c, int from, int to, int depth,
		    struct err *e)
{
	DIR *d = open_stream(from);
	struct dirent *de;
	int r = 0;

	if (!d)
		return err_sys(e, "cannot list a directory of the job");
	while (r == 0 && (de = readdir(d)))
		if (!is_dots(de->d_name))
			r = copy_one(c, from, to, de->d_name, depth, e);
	closedir(d);
	return r;
}

static int copy_sub(struct copy *c, int from, int to, const char *name,
		    int depth, struct err *e)
{
	if (depth >= DIRS_DEPTH)
		return err_set(e, ERR_INVALID, "too many directories");
	if (mkdirat(to, name, 0755) < 0)
		return err_sys(e, "cannot make %s", name);
	cleanup_fd int below = openat(to, name, DIR_FLAGS);
	if (below < 0 || fchown(below, c->uid, c->gid) < 0)
		return err_sys(e, "cannot make %s", name);
	return copy_dir(c, from, below, depth + 1, e);
}

static int copy_one(struct copy *c, int from, int to, const char *name,
		    int depth, struct err *e)
{
	struct stat st;
	cleanup_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW |
				   O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (in < 0 || fstat(in, &st) < 0)
		return err_sys(e, "cannot open %s", name);
	if (S_ISDIR(st.st_mode))
		return copy_sub(c, in, to, name, depth, e);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is no regular file", name);
	c->bytes += (uint64_t)st.st_size;
	if (c->bytes > c->max)
		return err_set(e, ERR_SIZE, "the job's inputs are too large");
	cleanup_fd int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL |
				    O_NOFOLLOW | O_CLOEXEC, 0644);
	if (out < 0 || fchown(out, c->uid, c->gid) < 0 ||
	    fchmod(out, 0644) < 0)
		return err_sys(e, "cannot write %s", name);
	return dirs_copy_file(in, out, e);
}

int dirs_copy_in(int from, int to, uid_t uid, gid_t gid, uint64_t max_bytes,
		 uint64_t *bytes, struct err *e)
{
	struct copy c = { uid, gid, max_bytes, 0 };
	int r = copy_dir(&c, from, to, 0, e);
	*bytes = c.bytes;
	return r;
}
