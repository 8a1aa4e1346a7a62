/* SPDX-License-Identifier: MIT */
#include "runner/box/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/prim.h"
#include "runner/put.h"

static const char *name_in(const char *file)
{
	const char *slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

int place_open(const char *file, bool plainly, struct err *e)
{
	const char *name = name_in(file);
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = plainly ? RESOLVE_NO_SYMLINKS : 0,
	};
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%.*s", (int)(name - file), file);
	if (n >= (int)sizeof path || !*name)
		return err_set(e, ERR_USAGE, "%s is no name for a record",
			       file);
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, n ? path : ".", &how,
			      sizeof how);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "cannot write %s: its "
			       "directory is not there", file);
	return err_sys(e, "cannot write %s", file);
}

int place_check(int dir, const char *file, struct err *e)
{
	struct stat st;
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_sys(e, "cannot write %s", file);
	if (fstatat(dir, name_in(file), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "cannot write the record as %s: "
			       "it is there, and no regular file", file);
	return 0;
}

int place_write(int dir, const char *file, struct bytes data, struct err *e)
{
	char tmp[40];
	uint64_t tag;
	prim_random(&tag, sizeof tag);
	snprintf(tmp, sizeof tmp, ".airlox-box.%016llx",
		 (unsigned long long)tag);
	cleanup_fd int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL |
				   O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "cannot write %s", file);
	if (put_whole(fd, data) == 0 &&
	    renameat(dir, tmp, dir, name_in(file)) == 0)
		return 0;
	err_sys(e, "cannot write %s", file);
	unlinkat(dir, tmp, 0);
	return -1;
}
