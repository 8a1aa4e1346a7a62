/* SPDX-License-Identifier: MIT
 *
 * One pass over the stored blob hashes and decrypts it together; nothing of
 * it is believed, and only the meta is kept, until length, signature and tag
 * have been checked, in that order. */
#include <string.h>

#include "core/host/opened.h"
#include "core/seal.h"

#define CHUNK (64 * 1024)	/* of ciphertext; also the index's unit */

struct pass {
	const struct incoming *in;
	const uint8_t *session_key;
	struct opened *o;
	struct hash *hash;	/* NULL: the blob is verified already */
	struct opener *opener;
	const struct opened_tap *tap;
	uint64_t text_n;	/* of the plaintext */
	uint64_t got;		/* of the plaintext so far */
	uint8_t frame[4];
	uint8_t *plain;
	uint8_t tail[AEAD_TAG];
};

/* Frame and meta are kept, the body is dropped.  A frame that is not right is
 * told only after the tag. */
static int keep_meta(struct pass *s, const uint8_t *p, size_t n)
{
	for (; n && s->got < 4; n--)
		s->frame[s->got++] = *p++;
	uint32_t meta_n = load_u32be(s->frame);
	if (n && meta_n <= PAYLOAD_META_MAX && s->got - 4 < meta_n) {
		size_t want = meta_n - (size_t)(s->got - 4);
		buf_add(&s->o->meta, p, n < want ? n : want);
	}
	s->got += n;
	return buf_failed(&s->o->meta) ? -1 : 0;
}

/* Ciphertext of the payload, from off on, n bytes. */
static int take_text(struct pass *s, const uint8_t *p, size_t n, struct err *e)
{
	if (opener_update(s->opener, s->plain, p, n) < 0)
		return err_set(e, ERR_DECRYPT, "the item cannot be decrypted");
	if (keep_meta(s, s->plain, n) < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	const struct zip_sink *plain = s->tap->plain;
	if (plain && plain->take(plain->arg, s->plain, n) < 0)
		return err_set(e, ERR_SYS, "stopped");
	return 0;
}

/* A chunk of the blob at off: which part of it is what. */
static int take_chunk(struct pass *s, const uint8_t *p, uint64_t off, size_t n,
		      struct err *e)
{
	uint64_t tail_at = AEAD_NONCE + s->text_n;
	if (s->hash)
		hash_add(s->hash, p, n);
	const struct zip_sink *cipher = s->tap->cipher;
	if (cipher && cipher->take(cipher->arg, p, n) < 0)
		return err_set(e, ERR_SYS, "stopped");
	if (off == 0) {
		memcpy(s->o->nonce, p, AEAD_NONCE);
		s->opener = opener_new(&s->in->env,
				       s->session_key, p, e);
		if (!s->opener)
			return -1;
		p += AEAD_NONCE;
		n -= AEAD_NONCE;
		off = AEAD_NONCE;
	}
	size_t text = off >= tail_at ? 0 :
		n < tail_at - off ? n : (size_t)(tail_at - off);
	if (text && take_text(s, p, text, e) < 0)
		return -1;
	if (n > text)
		memcpy(s->tail + (off + text - tail_at), p + text, n - text);
	return 0;
}

static int read_blob(struct pass *s, uint8_t *chunk, uint64_t blob_n,
		     struct err *e)
{
	for (uint64_t at = 0; at < blob_n;) {
		size_t n = blob_n - at < CHUNK ? (size_t)(blob_n - at) : CHUNK;
		if (s->tap->await &&
		    s->tap->await(s->tap->await_arg, at + n, e) < 0)
			return -1;
		if (file_get_at(s->o->fd, chunk, n, at, e) < 0 ||
		    take_chunk(s, chunk, at, n, e) < 0)
			return -1;
		at += n;
	}
	return 0;
}

/* Length, signature, tag: in that order, whatever the pass has seen. */
static int verify_blob(struct pass *s, uint64_t blob_n, struct err *e)
{
	uint8_t sum[HASH_SIZE];
	if (s->hash) {
		hash_final(s->hash, sum);
		if (blob_verify(&s->in->env, sum, (int64_t)blob_n, e) < 0)
			return -1;
		memcpy(s->o->ref.sha256, sum, sizeof sum);
	} else if (s->tap->await) {
		if (s->tap->await(s->tap->await_arg, 0, e) < 0)
			return -1;
		s->o->ref = s->in->ref;
	}
	return opener_final(s->opener, s->tail, e);
}

static int run_pass(struct pass *s, struct err *e)
{
	int64_t n = s->tap->await ? s->in->env.header.size + BLOB_OVERHEAD
				  : file_size(s->o->fd, e);
	if (n < 0)
		return -1;
	size_t room = n < CHUNK ? (size_t)n + 1 : CHUNK;
	cleanup_free uint8_t *chunk = malloc(room);
	cleanup_free uint8_t *plain = malloc(room);
	if (!chunk || !plain)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (n != s->in->env.header.size + BLOB_OVERHEAD)
		return err_set(e, ERR_INVALID, "item: the blob is not as long "
			       "as its header says");
	s->plain = plain;
	s->text_n = (uint64_t)s->in->env.header.size;
	int r = read_blob(s, chunk, (uint64_t)n, e);
	if (r == 0)
		r = verify_blob(s, (uint64_t)n, e);
	prim_wipe(plain, room);
	return r;
}

/* --- reading by range --- */

int opened_read(struct opened *o, uint64_t off, void *to, size_t n,
		struct err *e)
{
	if (off > o->body_n || n > o->body_n - off)
		return err_set(e, ERR_INVALID, "a read past the item's end");
	if (file_get_at(o->fd, to, n, AEAD_NONCE + o->body_off + off, e) < 0)
		return -1;
	if (aead_range(o->key, o->nonce, o->body_off + off, to, to, n) < 0)
		return err_set(e, ERR_DECRYPT, "the item cannot be decrypted");
	return 0;
}

static int source_read(void *arg, uint64_t off, void *to, size_t n)
{
	return opened_read(arg, off, to, n, NULL);
}

/* --- the payload --- */

static int open_payload(const struct peer *p, struct pass *s,
			opened_content_fn *content, struct err *e)
{
	const struct item_header *h = &s->in->env.header;
	struct opened *o = s->o;
	uint32_t meta_n;

	if (payload_frame(s->frame, h->size, &meta_n, e) < 0)
		return -1;
	o->body_off = 4 + (uint64_t)meta_n;
	o->body_n = s->text_n - o->body_off;
	if (payload_parse(&o->payload, buf_bytes(&o->meta),
			  (int64_t)o->body_n, e) < 0)
		return -1;
	if (payload_check(&o->payload, h, &s->in->author, &p->manifest,
			  e) < 0)
		return -1;
	o->body = (struct zip_source){ source_read, o, o->body_n };
	if (o->payload.kind != ITEM_FILE)
		return 0;
	cleanup_free char *mime = strndup(
		(const char *)o->payload.u.file.mime.p,
		o->payload.u.file.mime.n);
	if (!mime)
		return err_set(e, ERR_MEMORY, "out of memory");
	return (content ? content : content_check)(h->type, mime, &o->body, e);
}

static int open_all(const struct peer *p, struct pass *s,
		    opened_content_fn *content, struct err *e)
{
	if (item_check_header(&s->in->env.header, &s->in->author,
			      &p->manifest, e) < 0)
		return -1;
	if (run_pass(s, e) < 0)
		return -1;
	session_item_key(s->o->key, s->session_key,
			 s->in->env.header.session_id, s->in->env.header.id);
	return open_payload(p, s, content, e);
}

struct opened *opened_new(const struct peer *p, const struct incoming *in,
			  int fd, opened_content_fn *content,
			  const struct zip_sink *cipher, struct err *e)
{
	const struct opened_tap tap = { .cipher = cipher };
	return opened_tapped(p, in, fd, content, &tap, e);
}

struct opened *opened_tapped(const struct peer *p, const struct incoming *in,
			     int fd, opened_content_fn *content,
			     const struct opened_tap *tap, struct err *e)
{
	struct opened *o = calloc(1, sizeof *o);
	bool hashes = !tap->await && !in->verified;
	struct pass s = {
		.in = in, .session_key = p->invite.keys.session_key, .o = o,
		.hash = hashes ? hash_new() : NULL, .tap = tap,
	};
	if (!o || (!s.hash && hashes)) {
		free(o);
		hash_free(s.hash);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	o->fd = fd;
	if (!tap->await)
		o->ref = in->ref;
	int r = open_all(p, &s, content, e);
	opener_free(s.opener);
	hash_free(s.hash);
	if (r == 0)
		return o;
	opened_free(o);
	return NULL;
}

/* --- copying --- */

struct copy {
	struct opened *o;
	struct hash *hash;
	int to;
	uint64_t at;		/* in the blob */
};

/* The part of this chunk that is body, decrypted in place. */
static int copy_chunk(struct copy *c, uint8_t *p, size_t n, struct err *e)
{
	struct opened *o = c->o;
	uint64_t from = AEAD_NONCE + o->body_off, end = from + o->body_n;
	uint64_t a = c->at > from ? c->at : from;
	uint64_t b = c->at + n < end ? c->at + n : end;

	hash_add(c->hash, p, n);
	if (a < b) {
		uint8_t *part = p + (a - c->at);
		size_t m = (size_t)(b - a);
		if (aead_range(o->key, o->nonce, a - AEAD_NONCE, part, part,
			       m) < 0)
			return err_set(e, ERR_DECRYPT, "cannot decrypt");
		if (file_put(c->to, part, m, e) < 0)
			return -1;
	}
	c->at += n;
	return 0;
}

static int copy_all(struct copy *c, uint8_t *chunk, uint64_t blob_n,
		    struct err *e)
{
	uint8_t sum[HASH_SIZE];
	while (c->at < blob_n) {
		uint64_t left = blob_n - c->at;
		size_t n = left < CHUNK ? (size_t)left : CHUNK;
		if (file_get_at(c->o->fd, chunk, n, c->at, e) < 0 ||
		    copy_chunk(c, chunk, n, e) < 0)
			return -1;
	}
	hash_final(c->hash, sum);
	if (memcmp(sum, c->o->ref.sha256, sizeof sum) != 0)
		return err_set(e, ERR_SIGNATURE, "the cached item was changed "
			       "while it was read");
	return 0;
}

int opened_copy(struct opened *o, const struct incoming *in, int to_fd,
		struct err *e)
{
	struct copy c = { .o = o, .hash = hash_new(), .to = to_fd };
	uint8_t *chunk = malloc(CHUNK);
	int r = c.hash && chunk ?
		copy_all(&c, chunk, (uint64_t)in->env.header.size +
			 BLOB_OVERHEAD, e) :
		err_set(e, ERR_MEMORY, "out of memory");
	hash_free(c.hash);
	if (chunk)
		prim_wipe(chunk, CHUNK);
	free(chunk);
	return r;
}

void opened_free(struct opened *o)
{
	if (!o)
		return;
	payload_free(&o->payload);
	buf_free(&o->meta);
	prim_wipe(o, sizeof *o);
	free(o);
}
