/* SPDX-License-Identifier: MIT
 *
 * How an item gets into in/: verified to the end, described in the index,
 * then made to appear.  What fails is a file in rejected/ with the reason. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/in_private.h"
#include "airloxfs/jobs.h"
#include "airloxfs/notify.h"
#include "airloxfs/queue.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/text.h"
#include "airloxfs/view_hash.h"
#include "core/clear.h"
#include "core/host/check.h"
#include "core/host/clock.h"
#include "core/host/opened.h"
#include "core/name.h"

#define VERIFY_CHUNK (256 * 1024)
#define PREVIEW_MAX 4096	/* a text up to this size is in its event */

struct in_new {
	uint64_t seq, at;
	char id[ITEM_ID + 1];
	int64_t created_ms;
	enum item_kind kind;
	char *name;		/* in in/ */
	char *author;		/* as shown */
	enum role role;
	struct buf original;	/* the file's name */
	uint64_t view_off, view_n;
	bool is_text, wrapped;
	struct buf preview;
	uint8_t sha256[HASH_SIZE];
	struct buf chunks;
	struct buf blob;	/* of a small item, for its record */
	struct opened *opened;	/* of what in/ does not show, */
	uint8_t pub[PRIM_PUB];	/* and its author */
};

static void new_free(struct in_new *v)
{
	if (!v)
		return;
	free(v->name);
	free(v->author);
	buf_free(&v->original);
	buf_free(&v->preview);
	buf_free(&v->chunks);
	buf_free(&v->blob);
	opened_free(v->opened);
	free(v);
}

/* --- chunk tags, while the ciphertext passes --- */

struct chunker {
	struct aead_mac *mac;
	uint64_t n;		/* chunks so far */
	struct buf *tags, part;
	struct buf *blob;	/* keeps a small one; NULL */
};

static int add_tag(struct chunker *c, const uint8_t *p, size_t n)
{
	uint8_t tag[INDEX_TAG];
	if (aead_mac_tag(c->mac, c->n++, tag, p, n) < 0)
		return -1;
	buf_add(c->tags, tag, sizeof tag);
	return 0;
}

static int chunk_end(struct chunker *c)
{
	int r = c->part.len ? add_tag(c, c->part.data, c->part.len) : 0;
	buf_reset(&c->part);
	return r;
}

static int chunk_take(void *arg, const void *p, size_t n)
{
	struct chunker *c = arg;
	const uint8_t *at = p;
	if (c->blob)
		buf_add(c->blob, p, n);
	int r = 0;
	while (n && r == 0) {
		size_t room = INDEX_CHUNK - c->part.len;
		size_t take = n < room ? n : room;
		if (take == INDEX_CHUNK)	/* nearly always */
			r = add_tag(c, at, take);
		else
			buf_add(&c->part, at, take);
		at += take;
		n -= take;
		if (c->part.len == INDEX_CHUNK && r == 0)
			r = chunk_end(c);
	}
	return buf_failed(&c->part) || buf_failed(c->tags) ? -1 : r;
}

/* --- the view --- */

static int hash_view(struct in_new *v, struct opened *o, struct err *e)
{
	struct hash *h = hash_new();
	size_t room = v->view_n < VERIFY_CHUNK ? (size_t)v->view_n + 1
					       : VERIFY_CHUNK;
	uint8_t *to = malloc(room);
	int rc = h && to ? 0 : err_set(e, ERR_MEMORY, "out of memory");
	for (uint64_t at = 0; rc == 0 && at < v->view_n;) {
		uint64_t left = v->view_n - at;
		size_t n = left < VERIFY_CHUNK ? (size_t)left : VERIFY_CHUNK;
		rc = opened_read(o, v->view_off - o->body_off + at, to, n, e);
		if (rc == 0)
			hash_add(h, to, n);
		at += n;
	}
	if (rc == 0)
		hash_final(h, v->sha256);
	if (to)
		prim_wipe(to, room);
	free(to);
	hash_free(h);
	return rc;
}

/* Whether the body is what zip_wrap_* make of a file whose name is ours less
 * ".zip": then in/ shows the file itself.  Compared byte by byte with what we
 * would write, not parsed. */
static bool unwrap(struct in_new *v, struct opened *o)
{
	struct bytes name = { v->original.data, v->original.len - 4 };
	cleanup_buf struct buf head = { 0 }, tail = { 0 }, got = { 0 };
	uint64_t extra = v->original.len > 4 ? zip_wrap_extra(name) : 0;
	uint8_t fixed[30];
	if (!extra || o->body_n < extra ||
	    opened_read(o, 0, fixed, sizeof fixed, NULL) < 0)
		return false;
	struct zip_wrap w = { .size = o->body_n - extra,
		.crc = (uint32_t)fixed[14] | (uint32_t)fixed[15] << 8 |
		       (uint32_t)fixed[16] << 16 | (uint32_t)fixed[17] << 24 };
	zip_wrap_head(&head, name, w);
	zip_wrap_tail(&tail, name, w);
	size_t n = head.len + tail.len;
	uint8_t *to = buf_room(&got, n);
	if (buf_failed(&head) || buf_failed(&tail) || !to || n != extra ||
	    opened_read(o, 0, to, head.len, NULL) < 0 ||
	    opened_read(o, head.len + w.size, to + head.len,
			tail.len, NULL) < 0 ||
	    memcmp(to, head.data, head.len) != 0 ||
	    memcmp(to + head.len, tail.data, tail.len) != 0)
		return false;
	v->view_off = o->body_off + head.len;
	v->view_n = w.size;
	v->original.len -= 4;
	v->wrapped = true;
	return true;
}

static int view_text(struct in_new *v, const struct payload *p)
{
	struct bytes t = p->u.text.text;
	v->is_text = true;
	v->view_n = t.n;
	hash_sha256(v->sha256, t.p, t.n);
	if (t.n <= PREVIEW_MAX)
		buf_add(&v->preview, t.p, t.n);
	return 0;
}

static int view_file(struct in_new *v, struct opened *o, enum item_type type,
		     struct view_hash *seen, struct err *e)
{
	v->view_off = o->body_off;
	v->view_n = o->body_n;
	buf_add(&v->original, o->payload.u.file.name.p,
		o->payload.u.file.name.n);
	if (buf_failed(&v->original))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (type == TYPE_ZIP)
		unwrap(v, o);
	if (view_hash_final(seen, v->view_off, v->view_n, v->sha256))
		return 0;
	return hash_view(v, o, e);
}

/* Jobs, results and events are seen in log and events; they are the jobs
 * room's (jobs.h). */
static int make_view(struct mount *m, struct in_new *v, struct opened *o,
		     const struct incoming *inc, struct view_hash *seen,
		     struct err *e)
{
	switch (o->payload.kind) {
	case ITEM_TEXT: return view_text(v, &o->payload);
	case ITEM_FILE: return view_file(v, o, inc->env.header.type, seen, e);
	case ITEM_JOB: case ITEM_RESULT: case ITEM_EVENT: break;
	}
	return jobs_check(m, inc, o, e);
}

/* --- from a blob to a record --- */

static int name_it(struct mount *m, struct in_new *v, struct err *e)
{
	struct buf b = { 0 };
	struct in *in = m->in;
	pthread_mutex_lock(&in->lock);
	const struct in_item *old = in_find(in, v->id);
	mount_lock(m);
	if (old && old->node)
		v->name = strdup(old->node->name);	/* fetched again */
	mount_unlock(m);
	pthread_mutex_unlock(&in->lock);
	if (v->name)
		return 0;
	name_in(&b, v->seq, v->author, v->is_text ? (struct bytes){ 0 }
						  : buf_bytes(&v->original));
	v->name = buf_steal(&b);
	return v->name ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}

static int append(struct mount *m, struct in_new *v,
		  const struct incoming *inc, const struct opened *o,
		  struct err *e)
{
	struct index_record r = {
		.kind = INDEX_ITEM, .seq = v->seq, .text = buf_bytes(&inc->raw),
		.item = { .name = bytes_str(v->name),
			  .original = buf_bytes(&v->original),
			  .view_off = v->view_off, .view_n = v->view_n,
			  .is_text = v->is_text, .wrapped = v->wrapped,
			  .chunks = buf_bytes(&v->chunks),
			  .blob = buf_bytes(&v->blob) },
	};
	if (o->payload.kind == ITEM_FILE && !v->wrapped)
		r.item.mime = o->payload.u.file.mime;
	memcpy(r.item.sha256, v->sha256, HASH_SIZE);
	memcpy(r.item.blob_sha256, o->ref.sha256, HASH_SIZE);
	return in_append(m->in, &r, &v->at, e);
}

static struct in_new *new_from(const struct incoming *inc)
{
	struct in_new *v = calloc(1, sizeof *v);
	if (!v)
		return NULL;
	v->seq = inc->seq;
	strcpy(v->id, inc->env.header.id);
	v->created_ms = inc->env.header.created_at_ms;
	v->kind = inc->env.header.kind;
	v->role = inc->author.role;
	v->author = strdup(inc->author_shown);
	return v;
}

/* The one pass over the blob: chunk tags of what is encrypted, and the hash
 * of what will be shown. */
static struct opened *pass(struct mount *m, const struct incoming *inc, int fd,
			   const struct in_coming *how, struct in_new *v,
			   struct view_hash *seen, struct err *e)
{
	bool small = inc->env.header.size <= INDEX_BLOB_MAX - BLOB_OVERHEAD;
	uint8_t key[AEAD_KEY];
	in_chunk_key(m, key, v->id);
	struct chunker c = { .mac = aead_mac_new(key), .tags = &v->chunks,
			     .blob = small ? &v->blob : NULL };
	const struct zip_sink cipher = { chunk_take, &c },
			      plain = view_hash_sink(seen);
	const struct opened_tap tap = {
		.cipher = &cipher,
		.plain = inc->env.header.kind == ITEM_FILE ? &plain : NULL,
		.await = how ? how->await : NULL,
		.await_arg = how ? how->arg : NULL,
	};
	prim_wipe(key, sizeof key);
	struct opened *o = NULL;
	if (c.mac)
		o = opened_tapped(m->peer, inc, fd, check_content, &tap, e);
	if (!c.mac || (o && chunk_end(&c) < 0)) {
		err_set(e, ERR_MEMORY, "out of memory");
		opened_free(o);
		o = NULL;
	}
	buf_free(&c.part);
	aead_mac_free(c.mac);
	return o;
}

/* Jobs, results and events go on with what was opened. */
static void keep_opened(struct in_new *v, const struct incoming *inc,
			struct opened *o)
{
	if (o->payload.kind == ITEM_TEXT || o->payload.kind == ITEM_FILE) {
		opened_free(o);
		return;
	}
	v->opened = o;
	memcpy(v->pub, inc->author.pub, PRIM_PUB);
}

struct in_new *in_verify_coming(struct mount *m, const struct incoming *inc,
				int fd, const struct in_coming *how,
				struct err *e)
{
	struct in_new *v = new_from(inc);
	const struct item_header *h = &inc->env.header;
	struct view_hash *seen = view_hash_new((uint64_t)h->size,
					       h->type == TYPE_ZIP);
	struct opened *o = NULL;
	int rc = -1;
	if (!v || !v->author || !seen)
		err_set(e, ERR_MEMORY, "out of memory");
	else
		o = pass(m, inc, fd, how, v, seen, e);
	if (o && make_view(m, v, o, inc, seen, e) == 0 &&
	    queue_event(m, &o->payload, &inc->author, e) == 0 &&
	    name_it(m, v, e) == 0)
		rc = append(m, v, inc, o, e);
	if (rc == 0)
		keep_opened(v, inc, o);
	else
		opened_free(o);
	view_hash_free(seen);
	if (rc == 0)
		return v;
	new_free(v);
	return NULL;
}

struct in_new *in_verify(struct mount *m, const struct incoming *inc, int fd,
			 struct err *e)
{
	return in_verify_coming(m, inc, fd, NULL, e);
}

bool in_is_whole(const struct in_new *v) { return v->blob.len > 0; }

/* --- appearing --- */

struct node *in_show(struct mount *m, struct in_item *i, const char *name,
		     uint64_t size, int64_t created_ms, bool hidden)
{
	struct node *n = tree_add(m->tree, m->dir_in, name, S_IFREG | 0444,
				  &item_ops, i);
	if (!n)
		return NULL;
	n->hidden = hidden;
	n->size = size;
	n->mtime = (struct timespec){ created_ms / 1000,
				      created_ms % 1000 * 1000000 };
	i->node = n;
	text_latest(m, name);
	return n;
}

static bool appear(struct mount *m, struct in_new *v)
{
	struct in *in = m->in;
	bool shown = false;
	pthread_mutex_lock(&in->lock);
	struct in_item *i = in_find(in, v->id);
	bool again = i && i->at;
	if (!i)
		i = in_add(in, v->id, v->seq);
	if (i)
		i->at = v->at;
	mount_lock(m);
	if (i && !again && (v->kind == ITEM_TEXT || v->kind == ITEM_FILE))
		shown = in_show(m, i, v->name, v->view_n, v->created_ms,
				true) != NULL;
	mount_unlock(m);
	pthread_mutex_unlock(&in->lock);
	return shown;
}

static void tell_item(struct mount *m, const struct in_new *v, bool shown)
{
	cleanup_buf struct buf who = { 0 }, line = { 0 };
	clear_escape(&who, bytes_str(v->author));
	mount_log(m, "item %llu: %s from %s (%s)%s%s, %llu bytes",
		  (unsigned long long)v->seq, item_kind_word(v->kind),
		  buf_cstr(&who), role_word(v->role), shown ? ": in/" : "",
		  shown ? v->name : "", (unsigned long long)v->view_n);
	struct tell_json j = tell_json_begin(&line, "item");
	tell_json_int(&j, "seq", (int64_t)v->seq);
	tell_json_str(&j, "id", bytes_str(v->id));
	tell_json_str(&j, "kind", bytes_str(item_kind_word(v->kind)));
	tell_json_str(&j, "from", bytes_str(v->author));
	tell_json_str(&j, "role", bytes_str(role_word(v->role)));
	if (shown) {
		cleanup_buf struct buf path = { 0 };
		buf_addf(&path, "in/%s", v->name);
		tell_json_str(&j, "path", buf_bytes(&path));
	}
	tell_json_int(&j, "size", (int64_t)v->view_n);
	if (v->is_text && v->preview.len)
		tell_json_str(&j, "text", buf_bytes(&v->preview));
	tell_json_end(m, &j);
}

void in_reveal(struct mount *m, struct in_new *v)
{
	bool shown = appear(m, v);
	if (shown) {
		cleanup_buf struct buf path = { 0 };
		buf_addf(&path, "in/%s", v->name);
		notify_post(m->notify, NOTIFY_CREATE, buf_cstr(&path));
		tell_item(m, v, true);
		jobs_item(m, v->id);
	} else if (v->kind != ITEM_TEXT && v->kind != ITEM_FILE) {
		tell_item(m, v, false);
		jobs_heard(m, v->opened, v->pub);
	}
	new_free(v);
}

/* --- refusals --- */

/* With the lock: one more came, one of the oldest goes; not one that the helper
 * was told to take away already. */
static void trim_refusals(struct mount *m, bool mounted)
{
	const struct node *dir = m->dir_rejected;
	size_t n = tree_count(dir);
	struct node *old = tree_next(dir, 0);
	if (n <= REFUSALS_SHOWN || !old)
		return;
	if (!mounted) {
		tree_unlink(m->tree, old);
		return;
	}
	for (n -= REFUSALS_SHOWN; n > 1 && old; n--)
		old = tree_next(dir, old->cookie);
	if (old)
		text_unlink_refusal(m, old->name);
}

void in_show_refusal(struct mount *m, uint64_t seq, const char *author,
		     struct bytes reason, bool hidden)
{
	cleanup_buf struct buf name = { 0 };
	text_refusal_name(&name, seq, author);
	const char *s = buf_cstr(&name);
	struct node *n = s ? text_fixed(m, m->dir_rejected, s, reason) : NULL;
	if (!n)
		return;
	n->hidden = hidden;
	if (m->dir_rejected != m->dir_in)	/* a role that has none */
		trim_refusals(m, hidden);
}

/* A relay or a peer that floods fills neither memory nor disk: most of it is
 * only counted.  No record of those is needed, the cursor passes them. */
static bool is_told(struct mount *m)
{
	struct in *in = m->in;
	int64_t now = clock_mono_ms();
	pthread_mutex_lock(&in->lock);
	if (now - in->told_since_ms > REFUSALS_MS || !in->told_since_ms) {
		in->told_since_ms = now;
		in->told = 0;
	}
	bool told = in->told < REFUSALS_TOLD;
	in->told += told;
	bool flood = !told && in->untold++ % REFUSALS_TOLD == 0;
	pthread_mutex_unlock(&in->lock);
	if (flood)
		mount_log(m, "more than %d refusals within an hour: for the "
			  "rest of it they are only counted, see status",
			  REFUSALS_TOLD);
	return told;
}

void in_refuse(struct mount *m, uint64_t seq, const char *id,
	       const char *author, const struct err *why)
{
	cleanup_buf struct buf who = { 0 }, text = { 0 }, line = { 0 };
	struct index_record r = { .kind = INDEX_REJECTED, .seq = seq,
				  .id = bytes_str(id ? id : ""),
				  .name = bytes_str(author ? author : "") };
	const char *class = err_class(why->code);
	mount_lock(m);
	m->refused++;
	mount_unlock(m);
	if (!is_told(m))
		return;
	clear_escape(&who, r.name);
	buf_addf(&text, "%s%s%s\n", class, *class ? ": " : "", why->why);
	r.text = buf_bytes(&text);
	in_note(m, &r);
	mount_lock(m);
	in_show_refusal(m, seq, author, r.text, true);
	mount_unlock(m);
	text_reveal_refusal(m, seq, author);
	mount_log(m, "refused %llu from %s: %s",
		  (unsigned long long)seq, buf_cstr(&who), why->why);
	struct tell_json j = tell_json_begin(&line, "rejected");
	tell_json_int(&j, "seq", (int64_t)seq);
	tell_json_str(&j, "from", r.name);
	tell_json_str(&j, "reason", bytes_str(why->why));
	tell_json_end(m, &j);
}

struct incoming *in_incoming(struct mount *m, uint64_t seq, struct bytes raw)
{
	struct incoming *inc = calloc(1, sizeof *inc);
	struct err e;
	if (!inc)
		return NULL;
	inc->seq = seq;
	buf_add(&inc->raw, raw.p, raw.n);
	if (buf_failed(&inc->raw) ||
	    envelope_parse(&inc->env, buf_bytes(&inc->raw), &e) < 0) {
		buf_free(&inc->raw);
		free(inc);
		return NULL;
	}
	mount_lock(m);
	const struct participant *who = people_find(&m->peer->people,
						    inc->env.header.author);
	if (who) {
		inc->author = who->join.cert;
		inc->author_shown = strdup(who->shown);
	}
	mount_unlock(m);
	strcpy(inc->ref.id, inc->env.header.id);
	if (inc->author_shown)
		return inc;
	incoming_free(inc);
	return NULL;
}
