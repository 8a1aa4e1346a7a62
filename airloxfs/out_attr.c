/* SPDX-License-Identifier: MIT
 *
 * What a draft carries beside its bytes: name, state, references, extended
 * attributes; and how its header on disk holds them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "airloxfs/in.h"
#include "airloxfs/out_private.h"
#include "core/enc.h"
#include "core/json.h"

#define OURS "user.airlox."
#define XATTR_WORDS 4096	/* bytes of a refs value */

/* --- foreign attributes; with f->lock --- */

static struct out_xattr **find_xattr(struct outgoing *f, const char *name)
{
	struct out_xattr **at = &f->xattrs;
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static void drop_xattr(struct out_xattr **at)
{
	struct out_xattr *gone = *at;
	*at = gone->next;
	buf_free(&gone->value);
	free(gone->name);
	free(gone);
}

void out_drop_xattrs(struct outgoing *f)
{
	while (f->xattrs)
		drop_xattr(&f->xattrs);
}

static int put_xattr(struct outgoing *f, const char *name, struct bytes value)
{
	struct out_xattr *x = calloc(1, sizeof *x);
	char *copy = strdup(name);
	if (!x || !copy) {
		free(x);
		free(copy);
		return ENOMEM;
	}
	x->name = copy;
	buf_add(&x->value, value.p, value.n);
	struct out_xattr **at = find_xattr(f, name);
	if (*at)
		drop_xattr(at);
	x->next = f->xattrs;
	f->xattrs = x;
	return 0;
}

/* --- the header, as canonical JSON --- */

static void put_xattrs(const struct outgoing *f, struct buf *out)
{
	json_put_key(out, "xattrs");
	buf_add_byte(out, '[');
	for (const struct out_xattr *x = f->xattrs; x; x = x->next) {
		if (x != f->xattrs)
			buf_add_byte(out, ',');
		buf_add_byte(out, '[');
		json_put_b64(out, x->name, strlen(x->name));
		buf_add_byte(out, ',');
		json_put_b64(out, x->value.data, x->value.len);
		buf_add_byte(out, ']');
	}
	buf_add_byte(out, ']');
}

static void put_refs(const struct outgoing *f, struct buf *out)
{
	json_put_key(out, "refs");
	buf_add_byte(out, '[');
	for (size_t i = 0; i < f->ref_n; i++) {
		if (i)
			buf_add_byte(out, ',');
		item_put_ref(out, &f->refs[i]);
	}
	buf_add_byte(out, ']');
}

void out_encode(struct mount *m, const struct outgoing *f, struct buf *out)
{
	cleanup_buf struct buf path = { 0 };
	mount_lock(m);
	out_path(m, f->node, &path);
	mode_t mode = f->node->mode & 07777;
	struct timespec t = f->node->mtime;
	mount_unlock(m);
	buf_add_byte(out, '{');
	json_put_key(out, "dirty"), json_put_int(out, f->dirty);
	json_put_key(out, "error"), json_put_string(out, bytes_str(f->error));
	json_put_key(out, "gen"), json_put_int(out, (int64_t)f->gen);
	json_put_key(out, "id"), json_put_string(out, bytes_str(f->id));
	json_put_key(out, "mode"), json_put_int(out, mode);
	json_put_key(out, "mtime_ms"), json_put_int(out, t.tv_sec < 0 ? 0 :
		(int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);
	json_put_key(out, "path"), json_put_string(out, buf_bytes(&path));
	json_put_key(out, "poisoned"), json_put_int(out, f->poisoned);
	put_refs(f, out);
	json_put_key(out, "seq"), json_put_int(out, (int64_t)f->seq);
	json_put_key(out, "state"), json_put_int(out, f->state);
	json_put_key(out, "temporary"), json_put_int(out, f->temporary);
	put_xattrs(f, out);
	buf_add_byte(out, '}');
}

static int read_ref(struct outgoing *f, const struct json *v, struct err *e)
{
	struct json_reader r;
	struct item_ref *ref = &f->refs[f->ref_n];
	json_open(&r, v, "reference");
	json_take_fixed(&r, "blob_sha256", ref->sha256, HASH_SIZE);
	struct bytes id = json_take_string(&r, "id");
	if (json_close(&r, e) < 0 || !item_is_id(id))
		return -1;
	memcpy(ref->id, id.p, ITEM_ID);
	f->ref_n++;
	return 0;
}

static int read_refs(struct outgoing *f, const struct json *list,
		     struct err *e)
{
	if (!list || list->count > ITEM_REFS_MAX)
		return -1;
	f->refs = calloc(list->count + 1, sizeof *f->refs);
	if (!f->refs)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (const struct json *v = list->child; v; v = v->next)
		if (read_ref(f, v, e) < 0)
			return -1;
	return 0;
}

static void read_xattrs(struct outgoing *f, const struct json *list)
{
	for (const struct json *v = list ? list->child : NULL; v;
	     v = v->next) {
		cleanup_buf struct buf name = { 0 }, value = { 0 };
		if (v->type != JSON_ARRAY || v->count != 2 ||
		    enc_b64_decode(&name, v->child->str) < 0 ||
		    enc_b64_decode(&value, v->child->next->str) < 0)
			continue;
		if (buf_cstr(&name))
			put_xattr(f, buf_cstr(&name), buf_bytes(&value));
	}
}

static void copy_text(char *to, size_t room, struct bytes s)
{
	size_t n = s.n < room ? s.n : room - 1;
	memcpy(to, s.p, n);
	to[n] = 0;
}

int out_decode(struct outgoing *f, struct bytes record, struct buf *path,
	       struct stat *st, struct err *e)
{
	struct json_reader r;
	struct json *doc = json_parse(record, e);
	if (!doc)
		return -1;
	json_open(&r, doc, "draft");
	f->dirty = json_take_int(&r, "dirty", 0, 1);
	struct bytes error = json_take_string(&r, "error");
	f->gen = (uint64_t)json_take_int(&r, "gen", 0, JSON_INT_MAX);
	struct bytes id = json_take_string(&r, "id");
	st->st_mode = (mode_t)json_take_int(&r, "mode", 0, 07777);
	int64_t ms = json_take_int(&r, "mtime_ms", 0, JSON_INT_MAX);
	struct bytes p = json_take_string(&r, "path");
	f->poisoned = json_take_int(&r, "poisoned", 0, 1);
	const struct json *refs = json_take_array(&r, "refs");
	f->seq = (uint64_t)json_take_int(&r, "seq", 0, JSON_INT_MAX);
	f->state = (enum out_state)json_take_int(&r, "state", 0, OUT_FAILED);
	f->temporary = json_take_int(&r, "temporary", 0, 1);
	const struct json *xattrs = json_take_array(&r, "xattrs");
	int rc = json_close(&r, e);
	if (rc == 0) {
		copy_text(f->error, sizeof f->error, error);
		copy_text(f->id, sizeof f->id, id);
		buf_add(path, p.p, p.n);
		st->st_mtim = (struct timespec){ ms / 1000,
						 ms % 1000 * 1000000 };
		read_xattrs(f, xattrs);
		rc = read_refs(f, refs, e);
	}
	json_free(doc);
	return rc;
}

/* --- ours: state, id, seq, error, refs --- */

static bool put_ours(const struct outgoing *f, const char *name,
		     struct buf *out)
{
	if (!strcmp(name, "state"))
		buf_add_str(out, out_state_word(f->state));
	else if (!strcmp(name, "id") && f->id[0])
		buf_add_str(out, f->id);
	else if (!strcmp(name, "seq") && f->seq)
		buf_addf(out, "%llu", (unsigned long long)f->seq);
	else if (!strcmp(name, "error") && f->error[0])
		buf_add_str(out, f->error);
	else if (!strcmp(name, "refs") && f->ref_n)
		for (size_t i = 0; i < f->ref_n; i++)
			buf_addf(out, "%s%s", i ? " " : "", f->refs[i].id);
	else
		return false;
	return true;
}

int out_getxattr(struct mount *m, struct node *n, const char *name,
		 struct buf *out)
{
	(void)m;
	struct outgoing *f = n->data;
	bool found = false;
	pthread_mutex_lock(&f->lock);
	if (strncmp(name, OURS, strlen(OURS)) == 0) {
		found = put_ours(f, name + strlen(OURS), out);
	} else {
		struct out_xattr *x = *find_xattr(f, name);
		if (x)
			buf_add(out, x->value.data, x->value.len);
		found = x != NULL;
	}
	pthread_mutex_unlock(&f->lock);
	return found ? 0 : ENODATA;
}

void out_listxattr(struct mount *m, struct node *n, struct buf *out)
{
	(void)m;
	static const char *const ours[] = { "state", "id", "seq", "error",
					    "refs" };
	struct outgoing *f = n->data;
	cleanup_buf struct buf skip = { 0 };
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (put_ours(f, ours[i], &skip))
			buf_addf(out, OURS "%s%c", ours[i], 0);
	for (const struct out_xattr *x = f->xattrs; x; x = x->next)
		buf_addf(out, "%s%c", x->name, 0);
	pthread_mutex_unlock(&f->lock);
}

/* Words of seqs or ids become references; all of them or none. */
static int parse_refs(struct mount *m, struct bytes value,
		      struct item_ref **refs, size_t *n, struct err *e)
{
	char text[XATTR_WORDS], *save, *word;
	if (value.n >= sizeof text)
		return err_set(e, ERR_INVALID, "too many references");
	copy_text(text, sizeof text, value);
	*refs = calloc(ITEM_REFS_MAX, sizeof **refs);
	*n = 0;
	if (!*refs)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (word = strtok_r(text, " ,\n", &save); word;
	     word = strtok_r(NULL, " ,\n", &save)) {
		if (*n == ITEM_REFS_MAX) {
			free(*refs);
			return err_set(e, ERR_INVALID, "more than %d "
				       "references", ITEM_REFS_MAX);
		}
		if (in_ref(m, word, &(*refs)[(*n)++], e) < 0) {
			free(*refs);
			return -1;
		}
	}
	return 0;
}

static int set_refs(struct mount *m, struct outgoing *f, struct bytes value)
{
	struct item_ref *refs;
	size_t n;
	struct err e;
	if (parse_refs(m, value, &refs, &n, &e) < 0) {
		mount_failed(m, &e);
		return e.code == ERR_MEMORY ? ENOMEM : EINVAL;
	}
	pthread_mutex_lock(&f->lock);
	free(f->refs);
	f->refs = refs;
	f->ref_n = n;
	f->header_stale = true;
	pthread_mutex_unlock(&f->lock);
	return 0;
}

/* The header must still fit: ENOSPC as a file system says it. */
static int set_foreign(struct mount *m, struct outgoing *f, const char *name,
		       struct bytes value, int flags)
{
	struct err e;
	pthread_mutex_lock(&f->lock);
	bool there = *find_xattr(f, name) != NULL;
	int err = flags & XATTR_CREATE && there ? EEXIST :
		  flags & XATTR_REPLACE && !there ? ENODATA :
		  put_xattr(f, name, value);
	if (!err && out_put_header(m, f, &e) < 0) {
		drop_xattr(find_xattr(f, name));
		err = ENOSPC;
	}
	pthread_mutex_unlock(&f->lock);
	return err;
}

int out_setxattr(struct mount *m, struct node *n, const char *name,
		 struct bytes value, int flags)
{
	struct outgoing *f = n->data;
	if (strcmp(name, OURS "refs") == 0)
		return set_refs(m, f, value);
	if (strncmp(name, OURS, strlen(OURS)) == 0)
		return EOPNOTSUPP;
	return set_foreign(m, f, name, value, flags);
}

int out_removexattr(struct mount *m, struct node *n, const char *name)
{
	(void)m;
	struct outgoing *f = n->data;
	int err = ENODATA;
	pthread_mutex_lock(&f->lock);
	struct out_xattr **at = find_xattr(f, name);
	if (strcmp(name, OURS "refs") == 0) {
		f->ref_n = 0;
		err = 0;
	} else if (*at) {
		drop_xattr(at);
		err = 0;
	}
	f->header_stale |= !err;
	pthread_mutex_unlock(&f->lock);
	return err;
}
