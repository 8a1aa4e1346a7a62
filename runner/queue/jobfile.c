/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "runner/queue/jobfile.h"

int jobfile_read(int dir, const char *name, size_t cap, struct buf *to,
		 struct err *e)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW |
				   O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot open %s", name);
	for (;;) {
		uint8_t *room = buf_room(to, 4096);
		if (!room)
			return err_set(e, ERR_MEMORY, "no memory for %s",
				       name);
		ssize_t n = read(fd, room, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read %s", name);
		if (n == 0)
			return 0;
		to->len += (size_t)n;
		if (to->len > cap)
			return err_set(e, ERR_SIZE, "%s is too long", name);
	}
}

static int put(int dir, const char *name, int flags, const char *text,
	       struct err *e)
{
	size_t n = strlen(text);
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW |
			O_CLOEXEC | flags, 0644);
	if (fd < 0)
		return err_sys(e, "cannot open %s", name);
	ssize_t m = write(fd, text, n);
	int sys = m == (ssize_t)n ? 0 : m < 0 ? errno : EIO;
	if (close(fd) < 0 && !sys)
		sys = errno;
	errno = sys;
	return sys ? err_sys(e, "cannot write %s", name) : 0;
}

int jobfile_write(int dir, const char *name, const char *text, struct err *e)
{
	return put(dir, name, O_TRUNC, text, e);
}

int jobfile_verb(int dir, const char *verb, const char *reason, struct err *e)
{
	cleanup_buf struct buf line = { 0 };
	buf_addf(&line, "%s%s%s", verb, reason ? " " : "",
		 reason ? reason : "");
	for (size_t i = 0; i < line.len; i++)
		if (line.data[i] == '\n')
			line.data[i] = ' ';
	buf_add_byte(&line, '\n');
	if (!buf_cstr(&line))
		return err_set(e, ERR_MEMORY, "no memory for a verb");
	return put(dir, "ctl", O_APPEND, buf_cstr(&line), e);
}
