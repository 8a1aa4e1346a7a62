/* SPDX-License-Identifier: MIT */
#include "runner/box/snap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clear.h"
#include "runner/box/slurp.h"

struct walk {
	struct snap *s;
	const struct snap *before;
	dev_t dev;
	char path[PATH_MAX];
};

static int by_path(const void *a, const void *b)
{
	const struct snap_entry *x = a, *y = b;
	return strcmp(x->path, y->path);
}

const struct snap_entry *snap_find(const struct snap *s, const char *path)
{
	const struct snap_entry key = { .path = (char *)(uintptr_t)path };
	return s && s->n ? bsearch(&key, s->v, s->n, sizeof *s->v, by_path) :
			   NULL;
}

static struct snap_entry *add(struct snap *s, const char *path)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct snap_entry *v = realloc(s->v, cap * sizeof *v);
		if (!v)
			return NULL;
		s->v = v;
		s->cap = cap;
	}
	struct snap_entry *n = &s->v[s->n];
	*n = (struct snap_entry){ .path = strdup(path) };
	if (!n->path)
		return NULL;
	s->n++;
	return n;
}

static bool is_same(const struct snap_entry *a, const struct snap_entry *b)
{
	return a && a->mode == b->mode && a->size == b->size &&
	       a->ino == b->ino &&
	       a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

static void read_text(struct snap *s, struct snap_entry *n, int fd)
{
	if (n->size > SNAP_TEXT_BYTES ||
	    s->text_bytes + n->size > SNAP_TEXTS_BYTES ||
	    lseek(fd, 0, SEEK_SET) < 0 ||
	    slurp(fd, SNAP_TEXT_BYTES, &n->text, NULL) < 0 ||
	    (n->text.len && (!clear_utf8(buf_bytes(&n->text)) ||
			     memchr(n->text.data, 0, n->text.len)))) {
		buf_free(&n->text);
		return;
	}
	s->text_bytes += n->text.len;
	n->has_text = true;
}

/* What was looked at and what is opened are the same, or it is not read. */
static void read_file(struct snap *s, struct snap_entry *n, int dir,
		      const char *name)
{
	struct stat st;
	uint64_t bytes;
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW |
				   O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (n->size > SNAP_FILE_BYTES ||
	    s->read_bytes + n->size > SNAP_READ_BYTES || fd < 0 ||
	    fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != n->ino)
		return;
	s->read_bytes += n->size;
	if (digest_fd(fd, n->sha256, &bytes, NULL) < 0)
		n->sha256[0] = 0;
	else
		read_text(s, n, fd);
}

static void read_link(struct snap_entry *n, int dir, const char *name)
{
	char to[PATH_MAX];
	ssize_t len = readlinkat(dir, name, to, sizeof to);
	if (len > 0)
		buf_add(&n->text, to, (size_t)len);
}

static void keep(struct snap_entry *n, const struct snap_entry *old)
{
	memcpy(n->sha256, old->sha256, sizeof n->sha256);
	if (S_ISLNK(n->mode))
		buf_add(&n->text, old->text.data, old->text.len);
}

static int walk_dir(struct walk *w, int dir, int depth, struct err *e);

static int look(struct walk *w, int dir, const char *name, int depth,
		struct err *e)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_dev != w->dev)
		return 0;
	if (S_ISDIR(st.st_mode)) {
		cleanup_fd int sub = openat(dir, name, O_RDONLY | O_DIRECTORY |
					    O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 || depth >= SNAP_DEPTH) {
			w->s->cut = true;
			return 0;
		}
		return walk_dir(w, sub, depth + 1, e);
	}
	struct snap_entry *n = add(w->s, w->path);
	if (!n)
		return err_set(e, ERR_MEMORY, "out of memory");
	n->mode = st.st_mode;
	n->size = (uint64_t)st.st_size;
	n->ino = st.st_ino;
	n->changed = st.st_ctim;
	const struct snap_entry *old = snap_find(w->before, w->path);
	if (is_same(old, n))
		keep(n, old);
	else if (S_ISREG(n->mode))
		read_file(w->s, n, dir, name);
	else if (S_ISLNK(n->mode))
		read_link(n, dir, name);
	return 0;
}

static int walk_dir(struct walk *w, int dir, int depth, struct err *e)
{
	size_t end = strlen(w->path);
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	int rc = 0;
	if (!d) {
		if (fd >= 0)
			close(fd);
		w->s->cut = true;
		return 0;
	}
	while (rc == 0 && (de = readdir(d))) {
		size_t n = strlen(de->d_name);
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		if (w->s->n >= SNAP_ENTRIES || end + n + 2 > sizeof w->path) {
			w->s->cut = true;
			break;
		}
		if (end)
			w->path[end] = '/';
		memcpy(w->path + end + (end > 0), de->d_name, n + 1);
		rc = look(w, dir, de->d_name, depth, e);
		w->path[end] = 0;
	}
	closedir(d);
	return rc;
}

int snap_take(struct snap *s, int dir, const struct snap *before,
	      struct err *e)
{
	struct stat st;
	struct walk w = { .s = s, .before = before };
	*s = (struct snap){ 0 };
	if (fstat(dir, &st) < 0)
		return err_sys(e, "cannot look at a directory");
	w.dev = st.st_dev;
	if (walk_dir(&w, dir, 1, e) < 0)
		return -1;
	if (s->n)
		qsort(s->v, s->n, sizeof *s->v, by_path);
	return 0;
}

void snap_free(struct snap *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].path);
		buf_free(&s->v[i].text);
	}
	free(s->v);
	*s = (struct snap){ 0 };
}
