/* SPDX-License-Identifier: MIT */
#include "runner/hand/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "core/clear.h"
#include "runner/hand/reply.h"

void files_add_root(struct files *f, const char *path)
{
	int fd = f->n < FILES_ROOTS ? open(path, O_PATH | O_DIRECTORY |
					   O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	f->root[f->n].path = path;
	f->root[f->n++].fd = fd;
}

static int open_below(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 :
				    O_NONBLOCK | O_NOCTTY)),
		.mode = flags & O_CREAT ? 0644 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* The longest root that the path is below, and what follows it; NULL: none. */
static const char *root_of(const struct files *f, const char *path, int *dir)
{
	const char *rest = NULL;
	size_t most = 0;
	for (size_t i = 0; i < f->n; i++) {
		size_t n = strlen(f->root[i].path);
		if (strncmp(path, f->root[i].path, n) != 0 || path[n] != '/' ||
		    n < most)
			continue;
		most = n;
		*dir = f->root[i].fd;
		rest = path + n + strspn(path + n, "/");
	}
	return rest && *rest ? rest : NULL;
}

/* A directory that is missing is made, as an editor would. */
static void make_parents(int root, char *path)
{
	for (char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		*s = 0;
		int dir = open_below(root, path, O_PATH | O_DIRECTORY);
		char *name = strrchr(path, '/');
		if (dir < 0 && errno == ENOENT) {
			if (name)
				*name = 0;
			cleanup_fd int above = open_below(root, name ? path :
				".", O_PATH | O_DIRECTORY);
			if (above >= 0)
				(void)mkdirat(above, name ? name + 1 : path,
					      0755);
			if (name)
				*name = '/';
		}
		if (dir >= 0)
			close(dir);
		*s = '/';
	}
}

static void refuse(struct bytes id, const char *path, int number)
{
	char text[600];
	const char *why = number == EXDEV || number == ELOOP ?
			  "outside of the workspace" : strerror(number);
	snprintf(text, sizeof text, "%.500s: %s", path, why);
	reply_error(id, number == ENOENT ? REPLY_NOT_FOUND : REPLY_FAILED,
		    text);
}

static char *path_of(const struct wire *params)
{
	struct bytes p = wire_text(wire_get(params, "path"));
	return p.n && p.n < 4096 && !memchr(p.p, 0, p.n) ?
	       strndup((const char *)p.p, p.n) : NULL;
}

/* An open file of the workspace that is one, or -1 after an answer. */
static int open_file(struct files *f, struct bytes id, const char *path,
		     int flags)
{
	struct stat st;
	int dir = -1;
	const char *rest = path ? root_of(f, path, &dir) : NULL;
	if (!rest) {
		reply_error(id, REPLY_INVALID, "outside of the workspace");
		return -1;
	}
	if (flags & O_CREAT) {
		cleanup_free char *all = strdup(rest);
		if (all)
			make_parents(dir, all);
	}
	int fd = open_below(dir, rest, flags);
	if (fd < 0) {
		refuse(id, path, errno);
		return -1;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		reply_error(id, REPLY_FAILED, "not a file");
		return -1;
	}
	return fd;
}

/* From line (1 is the first), at most limit of them; -1: all. */
static struct bytes cut_lines(struct bytes s, int64_t line, int64_t limit)
{
	const uint8_t *end = s.p + s.n, *p = s.p, *lf;
	while (line-- > 1 && (lf = memchr(p, '\n', (size_t)(end - p))))
		p = lf + 1;
	if (line > 0)
		return bytes_str("");
	s = (struct bytes){ p, (size_t)(end - p) };
	while (limit-- > 0 && (lf = memchr(p, '\n', (size_t)(end - p))))
		p = lf + 1;
	if (limit < -1 || p == end)	/* no limit, or all of it */
		return s;
	return limit == -1 ? (struct bytes){ s.p, (size_t)(p - s.p) } : s;
}

void files_read(struct files *f, struct bytes id, const struct wire *params)
{
	cleanup_free char *path = path_of(params);
	cleanup_buf struct buf text = { 0 }, out = { 0 };
	int64_t line = 0, limit = -1;
	cleanup_fd int fd = open_file(f, id, path, O_RDONLY);
	if (fd < 0)
		return;
	for (;;) {
		uint8_t *to = buf_room(&text, 65536);
		ssize_t n = to ? read(fd, to, 65536) : -1;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			refuse(id, path, to ? errno : ENOMEM);
			return;
		}
		if (n == 0)
			break;
		text.len += (size_t)n;
		if (text.len > FILES_MAX_BYTES) {
			reply_error(id, REPLY_FAILED, "larger than 8 MiB");
			return;
		}
	}
	if (!clear_utf8(buf_bytes(&text))) {
		reply_error(id, REPLY_FAILED, "not a text in UTF-8");
		return;
	}
	wire_int(wire_get(params, "line"), &line);
	wire_int(wire_get(params, "limit"), &limit);
	struct bytes all = text.len ? buf_bytes(&text) : bytes_str("");
	buf_add_str(&out, "{\"content\":");
	reply_put_text(&out, cut_lines(all, line, limit));
	buf_add_byte(&out, '}');
	reply_result(id, buf_bytes(&out));
}

/* What a close says counts: a file of a session is sent by it. */
void files_write(struct files *f, struct bytes id, const struct wire *params)
{
	cleanup_free char *path = path_of(params);
	const struct wire *content = wire_get(params, "content");
	struct bytes s = wire_text(content);
	if (!content || content->type != WIRE_TEXT) {
		reply_error(id, REPLY_INVALID, "content must be a text");
		return;
	}
	int fd = open_file(f, id, path, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return;
	int number = 0;
	while (s.n && !number) {
		ssize_t n = write(fd, s.p, s.n);
		if (n < 0) {
			number = errno == EINTR ? 0 : errno;
			continue;
		}
		s.p += n;
		s.n -= (size_t)n;
	}
	if (close(fd) < 0 && !number)
		number = errno;
	if (number)
		refuse(id, path, number);
	else
		reply_result(id, bytes_str("{}"));
}
