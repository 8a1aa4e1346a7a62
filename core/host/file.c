/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/enc.h"
#include "core/host/file.h"
#include "core/prim.h"

#define TREE_DEPTH_MAX 64

int file_read_fd(int fd, size_t cap, struct buf *out, struct err *e)
{
	size_t start = out->len;
	for (;;) {
		uint8_t *to = buf_room(out, 16384);
		if (!to)
			return err_set(e, ERR_MEMORY, "out of memory");
		ssize_t n = read(fd, to, 16384);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read");
		if (n == 0)
			return 0;
		out->len += (size_t)n;
		if (out->len - start > cap)
			return err_set(e, ERR_SIZE,
				       "more than %zu bytes, refused", cap);
	}
}

int file_read(int dir, const char *name, size_t cap, struct buf *out,
	      struct err *e)
{
	/* O_NONBLOCK: a fifo of that name must not hold us up */
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC |
				   O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 && errno == ENOENT) {
		err_set(e, ERR_NOT_FOUND, "%s: no such file", name);
		return 1;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "cannot open %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is not a regular file",
			       name);
	if (file_read_fd(fd, cap, out, e) < 0)
		return err_prefix(e, "%s", name);
	return 0;
}

int file_put(int fd, const void *p, size_t n, struct err *e)
{
	const uint8_t *from = p;
	while (n) {
		ssize_t m = write(fd, from, n);
		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			return err_sys(e, "cannot write");
		from += m;
		n -= (size_t)m;
	}
	return 0;
}

int file_put_at(int fd, const void *p, size_t n, uint64_t off, struct err *e)
{
	const uint8_t *from = p;
	while (n) {
		ssize_t m = pwrite(fd, from, n, (off_t)off);
		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			return err_sys(e, "cannot write");
		from += m;
		off += (uint64_t)m;
		n -= (size_t)m;
	}
	return 0;
}

int file_get_at(int fd, void *p, size_t n, uint64_t off, struct err *e)
{
	uint8_t *to = p;
	while (n) {
		ssize_t m = pread(fd, to, n, (off_t)off);
		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			return err_sys(e, "cannot read");
		if (m == 0)
			return err_set(e, ERR_INVALID,
				       "the file is shorter than it should be");
		to += m;
		off += (uint64_t)m;
		n -= (size_t)m;
	}
	return 0;
}

int64_t file_size(int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "cannot look at a file");
	return st.st_size;
}

static void tmp_name(char tmp[FILE_TMP])
{
	uint8_t r[8];
	prim_random(r, sizeof r);
	memcpy(tmp, ".tmp-", 5);
	enc_hex(tmp + 5, r, sizeof r);
}

int file_tmp(int dir, char tmp[FILE_TMP], struct err *e)
{
	for (int try = 0; try < 8; try++) {
		tmp_name(tmp);
		int fd = openat(dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
				0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	return err_sys(e, "cannot create a file");
}

int file_begin(int dir, char tmp[FILE_TMP], struct err *e)
{
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	tmp[0] = 0;
	/* or a file system without O_TMPFILE */
	return fd >= 0 ? fd : file_tmp(dir, tmp, e);
}

/* A link replaces nothing: where the name is taken, by way of another. */
static int link_over(int dir, int fd, const char *name)
{
	char path[40], tmp[FILE_TMP];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	tmp_name(tmp);
	if (errno != EEXIST ||
	    linkat(AT_FDCWD, path, dir, tmp, AT_SYMLINK_FOLLOW) < 0)
		return -1;
	if (renameat(dir, tmp, dir, name) == 0)
		return 0;
	file_discard(dir, tmp);
	return -1;
}

int file_keep(int dir, int fd, const char *tmp, const char *name,
	      struct err *e)
{
	if ((*tmp ? renameat(dir, tmp, dir, name)
		  : link_over(dir, fd, name)) < 0)
		return err_sys(e, "cannot write %s", name);
	return 0;
}

void file_discard(int dir, const char *tmp)
{
	if (*tmp)
		unlinkat(dir, tmp, 0);
}

int file_unnamed(int dir, struct err *e)
{
	char tmp[FILE_TMP];
	int fd = file_begin(dir, tmp, e);
	if (fd >= 0)
		file_discard(dir, tmp);
	return fd;
}

int file_fsync_dir(int dir, struct err *e)
{
	cleanup_fd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY |
				   O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return err_sys(e, "cannot sync a directory");
	return 0;
}

int file_write(int dir, const char *name, struct bytes data, mode_t mode,
	       struct err *e)
{
	char tmp[FILE_TMP];
	cleanup_fd int fd = file_begin(dir, tmp, e);
	if (fd < 0)
		return err_prefix(e, "%s", name);
	int rc = file_put(fd, data.p, data.n, e) < 0
		? err_prefix(e, "%s", name) : 0;
	if (rc == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		rc = err_sys(e, "cannot write %s", name);
	if (rc == 0)
		rc = file_keep(dir, fd, tmp, name, e);
	if (rc == 0)
		return file_fsync_dir(dir, e);
	file_discard(dir, tmp);
	return -1;
}

int file_write_new(int dir, const char *name, struct bytes data, mode_t mode,
		   struct err *e)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL |
				   O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_EXISTS, "%s is there already", name);
	if (fd < 0)
		return err_sys(e, "cannot create %s", name);
	if (fchmod(fd, mode) < 0)
		return err_sys(e, "cannot create %s", name);
	if (file_put(fd, data.p, data.n, e) < 0)
		return err_prefix(e, "%s", name);
	if (fsync(fd) < 0)
		return err_sys(e, "cannot write %s", name);
	return 0;
}

int file_mkdirs(const char *path, struct err *e)
{
	cleanup_free char *p = strdup(path);
	if (!p)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (char *s = p + 1; *p && *s; s++) {
		if (*s != '/')
			continue;
		*s = 0;
		if (mkdir(p, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "cannot create %s", p);
		*s = '/';
	}
	if (mkdir(p, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "cannot create %s", p);
	return 0;
}

int file_open_dir(int dir, const char *name, struct err *e)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
			O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "%s: no such directory", name);
	if (fd < 0)
		return err_sys(e, "cannot open %s", name);
	return fd;
}

int file_make_dir(int dir, const char *name, struct err *e)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "cannot create %s", name);
	return file_open_dir(dir, name, e);
}

static pid_t lock_pid(int fd)
{
	char text[24] = "";
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

int file_lock(int dir, const char *name, struct err *e)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			0600);
	if (fd < 0)
		return err_sys(e, "cannot open %s", name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			err_set(e, ERR_LOCKED, "process %ld holds it",
				(long)lock_pid(fd));
		else
			err_sys(e, "cannot lock %s", name);
		close(fd);
		return -1;
	}
	char text[24];
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n) {
		err_sys(e, "cannot write %s", name);
		close(fd);
		return -1;
	}
	return fd;
}

pid_t file_lock_holder(int dir, const char *name)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC |
				   O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
		return 0;
	return lock_pid(fd);
}

static int remove_at(int dir, const char *name, dev_t dev, int depth,
		     struct err *e);

static int remove_entries(int fd, dev_t dev, int depth, struct err *e)
{
	DIR *d = fdopendir(fd);
	int r = 0;
	if (!d) {
		close(fd);
		return err_sys(e, "cannot read a directory");
	}
	for (struct dirent *de; r == 0 && (de = readdir(d));)
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			r = remove_at(dirfd(d), de->d_name, dev, depth, e);
	closedir(d);
	return r;
}

static int remove_at(int dir, const char *name, dev_t dev, int depth,
		     struct err *e)
{
	struct stat st;
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, "cannot remove %s", name);
	int fd = file_open_dir(dir, name, e);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_dev != dev || depth == 0) {
		close(fd);
		return err_set(e, ERR_INVALID, "%s is left alone: %s", name,
			       depth ? "something is mounted there"
				     : "it is too deep");
	}
	if (remove_entries(fd, dev, depth - 1, e) < 0)
		return -1;
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(e, "cannot remove %s", name);
	return 0;
}

int file_remove_tree(int dir, const char *name, struct err *e)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 :
			err_sys(e, "cannot look at %s", name);
	return remove_at(dir, name, st.st_dev, TREE_DEPTH_MAX, e);
}

char *file_home(const char *var, const char *home_part, const char *tail,
		struct err *e)
{
	const char *base = getenv(var), *home = getenv("HOME");
	char *path = NULL;
	int n = -1;
	if (base && base[0] == '/')
		n = asprintf(&path, "%s/%s", base, tail);
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/%s/%s", home, home_part, tail);
	else
		err_set(e, ERR_USAGE, "HOME is not set; set it, or %s", var);
	if (n < 0)
		return NULL;
	return path;
}
