/* SPDX-License-Identifier: MIT
 *
 * Reading, hiding, describing what is in in/.  How an item gets here is
 * verify.c; what the index remembers is loaded in load.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/deliver.h"
#include "airloxfs/in_private.h"
#include "airloxfs/notify.h"
#include "airloxfs/text.h"
#include "core/enc.h"
#include "core/host/cache.h"
#include "core/host/file.h"
#include "core/payload.h"

/* --- the table of items; called with in->lock --- */

static size_t slot_of(const char *id)
{
	size_t h = 0;
	for (; *id; id++)
		h = h * 31 + (unsigned char)*id;
	return h % IN_SLOTS;
}

struct in_item *in_find(struct in *in, const char *id)
{
	struct in_item *i = in->items[slot_of(id)];
	while (i && strcmp(i->id, id) != 0)
		i = i->next;
	return i;
}

struct in_item *in_add(struct in *in, const char *id, uint64_t seq)
{
	struct in_item *i = calloc(1, sizeof *i);
	if (!i)
		return NULL;
	i->seq = seq;
	strcpy(i->id, id);
	i->next = in->items[slot_of(id)];
	in->items[slot_of(id)] = i;
	return i;
}

static struct in_item *find_seq(struct in *in, uint64_t seq)
{
	for (size_t s = 0; s < IN_SLOTS; s++)
		for (struct in_item *i = in->items[s]; i; i = i->next)
			if (i->seq == seq)
				return i;
	return NULL;
}

static uint64_t record_of(struct in *in, const struct in_item *i)
{
	pthread_mutex_lock(&in->lock);
	uint64_t at = i->at;
	pthread_mutex_unlock(&in->lock);
	return at;
}

int in_record(struct in *in, uint64_t at, struct index_record *r,
	      struct buf *raw, struct err *e)
{
	if (journal_read(in->journal, at, raw, e) < 0)
		return -1;
	return index_parse(r, buf_bytes(raw), e);
}

/* --- reading --- */

struct view {
	int fd;			/* the blob */
	uint64_t blob_n;
	uint8_t key[AEAD_KEY], nonce[AEAD_NONCE];
	uint8_t chunk_key[AEAD_KEY];
	uint64_t off, n;	/* within the payload */
	struct buf chunks;	/* their tags */
	char id[ITEM_ID + 1];
};

static void view_free(struct view *v)
{
	if (!v)
		return;
	if (v->fd >= 0)
		close(v->fd);
	prim_wipe(v->key, sizeof v->key);
	prim_wipe(v->chunk_key, sizeof v->chunk_key);
	buf_free(&v->chunks);
	free(v);
}

void in_chunk_key(const struct mount *m, uint8_t key[AEAD_KEY], const char *id)
{
	char label[sizeof "chunks/" + ITEM_ID];
	snprintf(label, sizeof label, "chunks/%s", id);
	session_local_key(key, AEAD_KEY, m->peer->invite.keys.session_key,
			  m->peer->manifest.session_id, label);
}

/* From chunk i on.  Several readers may be at one view: a mac each. */
static int check_chunks(const struct view *v, uint64_t i, const uint8_t *p,
			size_t n)
{
	struct aead_mac *mac = aead_mac_new(v->chunk_key);
	int r = mac ? 0 : -1;
	for (size_t len; n && r == 0; i++, p += len, n -= len) {
		uint8_t tag[INDEX_TAG];
		len = n < INDEX_CHUNK ? n : INDEX_CHUNK;
		if ((i + 1) * INDEX_TAG > v->chunks.len ||
		    aead_mac_tag(mac, i, tag, p, len) < 0 ||
		    !prim_equal(tag, v->chunks.data + i * INDEX_TAG,
				INDEX_TAG))
			r = -1;
	}
	aead_mac_free(mac);
	return r;
}

/* Ciphertext [off, off+n) of the blob into `to`, each chunk checked.  off is
 * a multiple of INDEX_CHUNK; n reaches to a chunk's end or the blob's. */
static int read_chunks(const struct view *v, uint64_t off, uint8_t *to,
		       size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = pread(v->fd, to + got, n - got,
				  (off_t)(off + got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -1;
		got += (size_t)r;
	}
	return check_chunks(v, off / INDEX_CHUNK, to, n);
}

/* Plaintext [off, off+n) of the payload: a pointer into *mem, which the
 * caller frees, or NULL. */
static uint8_t *read_range(const struct view *v, uint64_t off, size_t n,
			   uint8_t **mem)
{
	uint64_t first = (AEAD_NONCE + off) / INDEX_CHUNK * INDEX_CHUNK;
	uint64_t end = AEAD_NONCE + off + n;
	*mem = NULL;
	if (end > v->blob_n)	/* somebody cut the file short */
		return NULL;
	end = (end + INDEX_CHUNK - 1) / INDEX_CHUNK * INDEX_CHUNK;
	if (end > v->blob_n)
		end = v->blob_n;
	size_t len = (size_t)(end - first);
	uint8_t *p = *mem = malloc(len);
	if (!p || read_chunks(v, first, p, len) < 0)
		return NULL;
	p += AEAD_NONCE + off - first;
	return aead_range(v->key, v->nonce, off, p, p, n) < 0 ? NULL : p;
}

/* The blob is not what was verified: nothing of it is given out. */
static void damaged(struct mount *m, const char *id, const char *what)
{
	mount_log(m, "in/: the stored copy of item %s %s; fetching it again",
		  id, what);
	deliver_refetch(m, id);
}

/* The nonce decides over every byte: it comes out of a chunk that was checked
 * like those of the content. */
static int read_nonce(struct view *v)
{
	size_t n = v->blob_n < INDEX_CHUNK ? (size_t)v->blob_n : INDEX_CHUNK;
	cleanup_free uint8_t *chunk = malloc(n + 1);
	if (!chunk)
		return ENOMEM;
	if (n < BLOB_OVERHEAD || read_chunks(v, 0, chunk, n) < 0)
		return EIO;
	memcpy(v->nonce, chunk, AEAD_NONCE);
	return 0;
}

static int write_blob(struct cache *c, const char *id, struct bytes blob,
		      struct err *e)
{
	struct cache_stage s;
	if (cache_stage(c, &s, e) < 0)
		return -1;
	int rc = file_put(s.fd, blob.p, blob.n, e);
	if (rc == 0)
		rc = cache_keep(c, &s, id, e);
	if (rc < 0)
		cache_drop(c, &s);
	close(s.fd);
	return rc;
}

int in_restore(struct mount *m, const char *id, struct err *e)
{
	struct in *in = m->in;
	struct index_record r;
	cleanup_buf struct buf raw = { 0 };
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = in_find(in, id);
	uint64_t at = i ? i->at : 0;
	pthread_mutex_unlock(&in->lock);
	if (!at)
		return err_set(e, ERR_NOT_FOUND, "no such item");
	if (in_record(in, at, &r, &raw, e) < 0)
		return -1;
	int rc = r.item.blob.n
		? write_blob(m->peer->cache, id, r.item.blob, e)
		: err_set(e, ERR_NOT_FOUND, "its record has no blob");
	index_free(&r);
	return rc;
}

/* A small blob that is gone (a machine that lost its power, a cache that
 * somebody emptied) comes back from its record. */
static int find_blob(struct mount *m, struct view *v, struct stat *st)
{
	struct err e;
	for (int tries = 0; tries < 2; tries++) {
		v->fd = cache_open_blob(m->peer->cache, v->id, &e);
		if (v->fd >= 0 && fstat(v->fd, st) == 0 && st->st_size > 0)
			return 0;
		if (v->fd >= 0)
			close(v->fd);
		v->fd = -1;
		if (in_restore(m, v->id, &e) < 0)
			break;
	}
	return -1;
}

static int open_blob(struct mount *m, struct view *v)
{
	struct stat st;
	if (find_blob(m, v, &st) < 0) {
		damaged(m, v->id, "is gone");
		return EIO;
	}
	v->blob_n = (uint64_t)st.st_size;
	in_chunk_key(m, v->chunk_key, v->id);
	int err = read_nonce(v);
	if (err == EIO)
		damaged(m, v->id, "was changed");
	if (err)
		return err;
	session_item_key(v->key, m->peer->invite.keys.session_key,
			 m->peer->manifest.session_id, v->id);
	return 0;
}

/* A text is inside the meta, escaped: the whole of it is decrypted once. */
static int load_text(struct mount *m, struct handle *h, struct view *v)
{
	uint64_t n = v->blob_n - BLOB_OVERHEAD;
	uint8_t *mem;
	struct payload p;
	struct err e;
	uint8_t *plain = v->blob_n < BLOB_OVERHEAD + 4 ? NULL :
		read_range(v, 0, (size_t)n, &mem);
	int err = EIO;
	if (plain && payload_parse(&p, (struct bytes){ plain + 4, n - 4 }, 0,
				   &e) == 0) {
		if (p.kind == ITEM_TEXT) {
			buf_add(&h->bytes, p.u.text.text.p, p.u.text.text.n);
			err = buf_failed(&h->bytes) ? ENOMEM : 0;
		}
		payload_free(&p);
	}
	if (v->blob_n >= BLOB_OVERHEAD + 4 && mem) {
		prim_wipe(mem, (size_t)n);
		free(mem);
	}
	if (err == EIO)
		damaged(m, v->id, "was changed");
	return err;
}

static int fill_view(struct mount *m, struct handle *h, struct view *v)
{
	const struct in_item *i = h->node->data;
	struct index_record r;
	struct err e;
	cleanup_buf struct buf raw = { 0 };
	strcpy(v->id, i->id);
	if (in_record(m->in, record_of(m->in, i), &r, &raw, &e) < 0) {
		mount_failed(m, &e);
		return EIO;
	}
	v->off = r.item.view_off;
	v->n = r.item.view_n;
	buf_add(&v->chunks, r.item.chunks.p, r.item.chunks.n);
	bool is_text = r.item.is_text;
	index_free(&r);
	int err = open_blob(m, v);
	return !err && is_text ? load_text(m, h, v) : err;
}

static int item_open(struct mount *m, struct handle *h)
{
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EPERM;
	struct view *v = calloc(1, sizeof *v);
	if (!v)
		return ENOMEM;
	v->fd = -1;
	int err = fill_view(m, h, v);
	if (err) {
		view_free(v);
		return err;
	}
	h->data = v;
	h->keep = true;
	return 0;
}

static void item_release(struct mount *m, struct handle *h)
{
	(void)m;
	view_free(h->data);
}

static void item_read(struct mount *m, struct fuse_req *req, struct handle *h,
		      size_t n, uint64_t off)
{
	const struct view *v = h->data;
	if (!v || off >= v->n) {
		fs_reply_data(req, NULL, 0);
		return;
	}
	if (n > v->n - off)
		n = (size_t)(v->n - off);
	if (h->bytes.len) {
		fs_reply_data(req, h->bytes.data + off, n);
		return;
	}
	uint8_t *mem;
	const uint8_t *p = read_range(v, v->off + off, n, &mem);
	if (p) {
		fs_reply_data(req, p, n);
	} else {
		damaged(m, v->id, "was changed");
		fs_reply_error(req, EIO);
	}
	free(mem);
}

/* --- attributes --- */

static void put_refs(struct buf *out, const struct envelope *v)
{
	for (size_t i = 0; i < v->header.ref_n; i++)
		buf_addf(out, "%s%s", i ? " " : "", v->header.refs[i].id);
}

static void put_hex(struct buf *out, const uint8_t hash[HASH_SIZE])
{
	char hex[2 * HASH_SIZE + 1];
	enc_hex(hex, hash, HASH_SIZE);
	buf_add_str(out, hex);
}

static const char *const attr_names[] = {
	"seq", "id", "kind", "author", "role", "fingerprint", "name", "mime",
	"created", "sha256", "refs", "wrapped",
};

/* The value of one attribute of a record.  False: there is none. */
static bool put_attr(struct mount *m, struct buf *out, const char *name,
		     const struct index_record *r, const struct envelope *v)
{
	mount_lock(m);
	const struct participant *who = people_find(&m->peer->people,
						    v->header.author);
	mount_unlock(m);
	if (!strcmp(name, "seq"))
		buf_addf(out, "%llu", (unsigned long long)r->seq);
	else if (!strcmp(name, "id"))
		buf_add_str(out, v->header.id);
	else if (!strcmp(name, "kind"))
		buf_add_str(out, item_kind_word(v->header.kind));
	else if (!strcmp(name, "author") && who)
		buf_add_str(out, who->shown);
	else if (!strcmp(name, "role") && who)
		buf_add_str(out, role_word(who->join.cert.role));
	else if (!strcmp(name, "fingerprint") && who)
		buf_add_str(out, who->fingerprint);
	else if (!strcmp(name, "name") && !r->item.is_text)
		buf_add(out, r->item.original.p, r->item.original.n);
	else if (!strcmp(name, "mime") && r->item.mime.n)
		buf_add(out, r->item.mime.p, r->item.mime.n);
	else if (!strcmp(name, "created"))
		buf_addf(out, "%lld", (long long)v->header.created_at_ms);
	else if (!strcmp(name, "sha256"))
		put_hex(out, r->item.sha256);
	else if (!strcmp(name, "refs") && v->header.ref_n)
		put_refs(out, v);
	else if (!strcmp(name, "wrapped") && r->item.wrapped)
		buf_add_str(out, "zip");
	else
		return false;
	return true;
}

/* Calls put_attr for `name`, or lists those there are (name NULL). */
static int read_attrs(struct mount *m, const struct node *n, const char *name,
		      struct buf *out)
{
	const struct in_item *i = n->data;
	struct index_record r;
	struct envelope v;
	struct err e;
	int err = EIO;
	cleanup_buf struct buf raw = { 0 }, skip = { 0 };
	if (in_record(m->in, record_of(m->in, i), &r, &raw, &e) < 0)
		return EIO;
	if (envelope_parse(&v, r.text, &e) == 0) {
		err = name && put_attr(m, out, name, &r, &v) ? 0 : ENODATA;
		for (size_t k = 0; !name && k < sizeof attr_names /
		     sizeof *attr_names; k++)
			if (put_attr(m, &skip, attr_names[k], &r, &v))
				buf_addf(out, "user.airlox.%s%c",
					 attr_names[k], 0);
		envelope_free(&v);
	}
	index_free(&r);
	return err;
}

static int item_getxattr(struct mount *m, struct node *n, const char *name,
			 struct buf *out)
{
	if (strncmp(name, "user.airlox.", 12) != 0)
		return ENODATA;
	return read_attrs(m, n, name + 12, out);
}

static void item_listxattr(struct mount *m, struct node *n, struct buf *out)
{
	read_attrs(m, n, NULL, out);
}

const struct node_ops item_ops = {
	.open = item_open, .read = item_read, .release = item_release,
	.getxattr = item_getxattr, .listxattr = item_listxattr,
	.timeout_s = 86400,
};

/* --- hiding --- */

/* rm in/x: it is hidden here for good, and its blob is freed. */
static int item_unlink(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	struct in_item *i = n->data;
	struct index_record r = { .kind = INDEX_HIDDEN, .seq = i->seq,
				  .id = bytes_str(i->id) };
	struct err e;
	if (in_append(m->in, &r, NULL, &e) < 0 || in_sync(m->in, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	cache_remove_blob(m->peer->cache, i->id);
	mount_lock(m);
	i->node = NULL;
	tree_unlink(m->tree, n);
	text_latest_gone(m, n->name);
	bool waiting = m->waiting;
	mount_unlock(m);
	if (waiting)
		deliver_kick(m);	/* there may be room now */
	return 0;
}

const struct node_ops in_dir_ops = { .unlink = item_unlink,
				     .timeout_s = 86400 };

/* --- for others --- */

int in_envelope(struct mount *m, const char *id, uint64_t *seq,
		struct buf *out)
{
	struct in *in = m->in;
	struct index_record r;
	struct err e;
	cleanup_buf struct buf raw = { 0 };
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = in_find(in, id);
	uint64_t at = i ? i->at : 0;
	pthread_mutex_unlock(&in->lock);
	if (!i || !at || in_record(in, at, &r, &raw, &e) < 0)
		return -1;
	*seq = r.seq;
	buf_add(out, r.text.p, r.text.n);
	index_free(&r);
	return buf_failed(out) ? -1 : 0;
}

bool in_is_own(struct in *in, const char *id)
{
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = in_find(in, id);
	bool own = i && !i->at;
	pthread_mutex_unlock(&in->lock);
	return own;
}

bool in_seq(struct in *in, const char *id, uint64_t *seq)
{
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = in_find(in, id);
	if (i)
		*seq = i->seq;
	pthread_mutex_unlock(&in->lock);
	return i != NULL;
}

static struct in_item *find_word(struct in *in, const char *word)
{
	char *end;
	unsigned long long seq = strtoull(word, &end, 10);
	if (*word >= '0' && *word <= '9' && !*end)
		return find_seq(in, seq);
	return item_is_id(bytes_str(word)) ? in_find(in, word) : NULL;
}

int in_ref(struct mount *m, const char *word, struct item_ref *ref,
	   struct err *e)
{
	struct in *in = m->in;
	struct index_record r;
	cleanup_buf struct buf raw = { 0 };
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = find_word(in, word);
	uint64_t at = i ? i->at : 0;
	pthread_mutex_unlock(&in->lock);
	if (!i || !at)
		return err_set(e, ERR_NOT_FOUND, "%s is no item of in/: give "
			       "its number or id", word);
	if (in_record(in, at, &r, &raw, e) < 0)
		return -1;
	strcpy(ref->id, i->id);
	memcpy(ref->sha256, r.item.blob_sha256, HASH_SIZE);
	index_free(&r);
	return 0;
}

int in_fetch(struct mount *m, uint64_t seq, struct err *e)
{
	struct in *in = m->in;
	char id[ITEM_ID + 1] = "";
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = find_seq(in, seq);
	if (i && i->at)
		strcpy(id, i->id);
	pthread_mutex_unlock(&in->lock);
	if (*id) {
		deliver_refetch(m, id);
		return 0;
	}
	if (deliver_want(m, seq))
		return 0;
	return err_set(e, ERR_VERB, "no item %llu is known here: see log",
		       (unsigned long long)seq);
}
