/* SPDX-License-Identifier: MIT */
#include "runner/box/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clear.h"
#include "core/json.h"
#include "runner/record/diff.h"

static int put(struct changes *c, size_t *cap, enum change_kind kind,
	       const struct snap_entry *was, const struct snap_entry *is,
	       struct err *e)
{
	if (c->n == *cap) {
		*cap = *cap ? 2 * *cap : 64;
		struct change *v = realloc(c->v, *cap * sizeof *v);
		if (!v)
			return err_set(e, ERR_MEMORY, "out of memory");
		c->v = v;
	}
	c->v[c->n++] = (struct change){ .kind = kind, .was = was, .is = is };
	return 0;
}

/* Of a file that was not read its place and times speak. */
static bool is_content_same(const struct snap_entry *a,
			    const struct snap_entry *b)
{
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT) || a->size != b->size)
		return false;
	if (S_ISLNK(a->mode))
		return bytes_eq(buf_bytes(&a->text), buf_bytes(&b->text));
	if (!S_ISREG(a->mode))
		return true;
	if (a->sha256[0] && b->sha256[0])
		return !strcmp(a->sha256, b->sha256);
	return a->ino == b->ino && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

int changes_find(struct changes *c, const struct snap *was,
		 const struct snap *is, struct err *e)
{
	size_t i = 0, j = 0, cap = 0;
	int rc = 0;
	*c = (struct changes){ .cut = was->cut || is->cut };
	while (rc == 0 && (i < was->n || j < is->n)) {
		const struct snap_entry *a = i < was->n ? &was->v[i] : NULL;
		const struct snap_entry *b = j < is->n ? &is->v[j] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
		if (order < 0)
			rc = put(c, &cap, CHANGE_REMOVED, a, NULL, e);
		else if (order > 0)
			rc = put(c, &cap, CHANGE_ADDED, NULL, b, e);
		else if (!is_content_same(a, b))
			rc = put(c, &cap, CHANGE_CHANGED, a, b, e);
		else if (!S_ISLNK(a->mode) && a->mode != b->mode)
			rc = put(c, &cap, CHANGE_MODE, a, b, e);
		i += order <= 0;
		j += order >= 0;
	}
	return rc;
}

void changes_free(struct changes *c)
{
	free(c->v);
	*c = (struct changes){ 0 };
}

const char *change_path(const struct change *c)
{
	return c->is ? c->is->path : c->was->path;
}

const char *change_word(const struct change *c)
{
	static const char *const words[] = { "added", "changed", "removed",
					     "mode" };
	return words[c->kind];
}

static bool is_text(const struct snap_entry *n)
{
	return !n || (S_ISREG(n->mode) && n->has_text);
}

void change_diff(struct buf *out, const struct change *c)
{
	const struct bytes none = { 0 };
	if (c->kind != CHANGE_MODE && is_text(c->was) && is_text(c->is))
		diff_put(out, c->was ? buf_bytes(&c->was->text) : none,
			 c->is ? buf_bytes(&c->is->text) : none,
			 CHANGES_DIFF_BYTES);
}

static const char *type_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "file";
	case S_IFLNK: return "link";
	case S_IFIFO: return "fifo";
	case S_IFSOCK: return "socket";
	default: return "device";
	}
}

static void put_clean(struct buf *out, const char *key, struct bytes s)
{
	cleanup_buf struct buf clean = { 0 };
	clear_escape(&clean, s);
	json_put_key_string(out, key, buf_bytes(&clean));
	out->failed |= clean.failed;
}

static void put_hash(struct buf *out, const char *key,
		     const struct snap_entry *n)
{
	if (n && S_ISREG(n->mode))
		json_put_key_string(out, key, bytes_str(n->sha256[0] ?
				    n->sha256 : "not read"));
}

void change_put(struct buf *out, const struct change *c, const char *at)
{
	const struct snap_entry *n = c->is ? c->is : c->was;
	cleanup_buf struct buf diff = { 0 }, path = { 0 };
	char mode[24];
	change_diff(&diff, c);
	buf_addf(&path, "%s/%s", at, n->path);
	snprintf(mode, sizeof mode, "%o", (unsigned)(n->mode & 07777));
	buf_add_byte(out, '{');
	if (c->applied)
		json_put_key_string(out, "applied", bytes_str(c->applied));
	json_put_key_int(out, "bytes", (int64_t)n->size);
	json_put_key_string(out, "change", bytes_str(change_word(c)));
	if (diff.len)
		json_put_key_string(out, "diff", buf_bytes(&diff));
	if (c->kind == CHANGE_MODE || (c->is && n->mode & 06000))
		json_put_key_string(out, "mode", bytes_str(mode));
	put_clean(out, "path", buf_bytes(&path));
	put_hash(out, "sha256", c->is);
	if (S_ISLNK(n->mode))
		put_clean(out, "to", buf_bytes(&n->text));
	json_put_key_string(out, "type", bytes_str(type_word(n->mode)));
	put_hash(out, "was", c->was);
	buf_add_byte(out, '}');
	out->failed |= diff.failed || path.failed;
}
