/* SPDX-License-Identifier: MIT
 *
 * The least that a file system in a process does: what is asked under its
 * mount point is done to the directory behind it.  libfuse's high-level API
 * and its defaults; `passthrough BEHIND [FUSE'S OPTIONS] MOUNTPOINT`. */
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/tool.h"

static int behind;

static const char *relative(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int answer(long r)
{
	return r < 0 ? -errno : 0;
}

static int get_attr(const char *path, struct stat *st,
		    struct fuse_file_info *fi)
{
	return answer(fi ? fstat((int)fi->fh, st) :
		      fstatat(behind, relative(path), st,
			      AT_SYMLINK_NOFOLLOW));
}

static int read_dir(const char *path, void *to, fuse_fill_dir_t fill,
		    off_t off, struct fuse_file_info *fi,
		    enum fuse_readdir_flags flags)
{
	struct dirent *entry;
	int fd = openat(behind, relative(path), O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	(void)off, (void)fi, (void)flags;
	if (!d)
		return -errno;
	while ((entry = readdir(d)))
		if (fill(to, entry->d_name, NULL, 0, 0))
			break;
	closedir(d);
	return 0;
}

static int open_at(const char *path, int flags, mode_t mode,
		   struct fuse_file_info *fi)
{
	int fd = openat(behind, relative(path), flags, mode);
	if (fd >= 0)
		fi->fh = (uint64_t)fd;
	return answer(fd);
}

static int create_file(const char *path, mode_t mode,
		       struct fuse_file_info *fi)
{
	return open_at(path, fi->flags | O_CREAT, mode, fi);
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
	return open_at(path, fi->flags, 0, fi);
}

static int read_file(const char *path, char *to, size_t n, off_t off,
		     struct fuse_file_info *fi)
{
	ssize_t got = pread((int)fi->fh, to, n, off);
	(void)path;
	return got < 0 ? -errno : (int)got;
}

static int write_file(const char *path, const char *from, size_t n, off_t off,
		      struct fuse_file_info *fi)
{
	ssize_t put = pwrite((int)fi->fh, from, n, off);
	(void)path;
	return put < 0 ? -errno : (int)put;
}

static int truncate_file(const char *path, off_t n, struct fuse_file_info *fi)
{
	if (fi)
		return answer(ftruncate((int)fi->fh, n));
	int fd = openat(behind, relative(path), O_WRONLY);
	int r = answer(fd < 0 ? -1 : ftruncate(fd, n));
	if (fd >= 0)
		close(fd);
	return r;
}

static int unlink_file(const char *path)
{
	return answer(unlinkat(behind, relative(path), 0));
}

static int release_file(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return answer(close((int)fi->fh));
}

static const struct fuse_operations operations = {
	.getattr = get_attr, .readdir = read_dir, .create = create_file,
	.open = open_file, .read = read_file, .write = write_file,
	.truncate = truncate_file, .unlink = unlink_file,
	.release = release_file,
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return tool_usage("passthrough BEHIND [OPTIONS] MOUNTPOINT");
	behind = (int)tool_must(open(argv[1], O_RDONLY | O_DIRECTORY),
				argv[1]);
	argv[1] = argv[0];
	return fuse_main(argc - 1, argv + 1, &operations, NULL);
}
