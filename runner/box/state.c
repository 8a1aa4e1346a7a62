/* SPDX-License-Identifier: MIT */
#include "runner/box/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int put_path(struct buf *b, struct err *e)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (state && *state == '/')
		buf_addf(b, "%s/airlox-box", state);
	else if (home && *home == '/')
		buf_addf(b, "%s/.local/state/airlox-box", home);
	else
		return err_set(e, ERR_USAGE, "set HOME: runs and the key that "
			       "signs records are kept there");
	return 0;
}

static int check_ours(int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    !(st.st_mode & 0077))
		return 0;
	return err_set(e, ERR_FORBIDDEN, "airlox-box's state directory is not "
		       "yours alone; chmod 700 it");
}

int state_open(struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	if (put_path(&b, e) < 0)
		return -1;
	char *path = buf_cstr(&b);
	for (char *s = path ? strchr(path + 1, '/') : NULL; s;
	     s = strchr(s + 1, '/')) {
		*s = 0;
		(void)mkdir(path, 0700);
		*s = '/';
	}
	if (!path || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return err_sys(e, "cannot make %s", path ? path : "it");
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot open %s", path);
	if (check_ours(fd, e) == 0)
		return fd;
	close(fd);
	return -1;
}

int state_open_below(const char *name, struct err *e)
{
	cleanup_fd int top = state_open(e);
	if (top < 0)
		return -1;
	if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "cannot make %s of the state directory",
			       name);
	int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot open %s of the state directory",
			       name);
	if (check_ours(fd, e) == 0)
		return fd;
	close(fd);
	return -1;
}
