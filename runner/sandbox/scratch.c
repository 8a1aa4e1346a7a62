/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "core/buf.h"
#include "runner/sandbox/scratch.h"
#include "runner/sandbox/dirs.h"

#define NAME "airlox-runner."

static int make_sub(int top, const char *name, uid_t uid, gid_t gid,
		    struct err *e)
{
	if (mkdirat(top, name, 0700) < 0)
		return err_sys(e, "cannot make a scratch directory");
	int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	if (fd < 0 || fchown(fd, uid, gid) < 0) {
		if (fd >= 0)
			close(fd);
		return err_sys(e, "cannot make a scratch directory");
	}
	return fd;
}

static int fill(struct scratch *s, const char *path, uid_t uid, gid_t gid,
		struct err *e)
{
	cleanup_fd int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
				  O_CLOEXEC);
	/* Nobody but us and the job's user: what a job writes, perhaps with
	 * set-id bits, is within reach of no other user. */
	if (top < 0 || fchown(top, (uid_t)-1, gid) < 0 ||
	    fchmod(top, gid == (gid_t)-1 ? 0700 : 0710) < 0)
		return err_sys(e, "cannot open %s", path);
	s->lock = openat(top, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			 0600);
	if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "cannot lock %s", path);
	s->work = make_sub(top, "work", uid, gid, e);
	if (s->work < 0)
		return -1;
	s->out = make_sub(top, "out", uid, gid, e);
	if (s->out < 0)
		return -1;
	snprintf(s->work_path, PATH_MAX, "%.4000s/work", path);
	snprintf(s->out_path, PATH_MAX, "%.4000s/out", path);
	return 0;
}

int scratch_make(struct scratch *s, const char *base, uid_t uid, gid_t gid,
		 struct err *e)
{
	char path[PATH_MAX];
	*s = (struct scratch){ .lock = -1, .work = -1, .out = -1 };
	s->base = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->base < 0)
		return err_sys(e, "cannot open the scratch directory %s",
			       base);
	if (snprintf(path, sizeof path, "%s/" NAME "XXXXXX", base) >= 4000 ||
	    !mkdtemp(path)) {
		err_sys(e, "cannot make a directory in %s", base);
		scratch_close(s);
		return -1;
	}
	snprintf(s->name, sizeof s->name, "%s", strrchr(path, '/') + 1);
	if (fill(s, path, uid, gid, e) == 0)
		return 0;
	scratch_remove(s);
	scratch_close(s);
	return -1;
}

void scratch_remove(struct scratch *s)
{
	if (s->name[0])
		(void)dirs_remove(s->base, s->name, NULL);
	s->name[0] = 0;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void scratch_close(struct scratch *s)
{
	drop(&s->work);
	drop(&s->out);
	drop(&s->lock);
	drop(&s->base);
}

/* One that was just made has no lock yet: leave it a minute. */
static bool is_left(int base, const char *name)
{
	struct stat st;
	char path[300];
	if (strncmp(name, NAME, sizeof NAME - 1) ||
	    fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return false;
	snprintf(path, sizeof path, "%s/lock", name);
	cleanup_fd int fd = openat(base, path, O_RDWR | O_NOFOLLOW |
				   O_CLOEXEC);
	if (fd < 0)
		return st.st_mtime + 60 < time(NULL);
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void scratch_sweep(const char *base)
{
	DIR *d = opendir(base);
	struct dirent *de;
	while (d && (de = readdir(d)))
		if (is_left(dirfd(d), de->d_name))
			(void)dirs_remove(dirfd(d), de->d_name, NULL);
	if (d)
		closedir(d);
}
