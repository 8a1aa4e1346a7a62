/* SPDX-License-Identifier: MIT
 *
 * A draft becomes a blob in a file, a chunk at a time. */
#include <string.h>
#include <time.h>

#include "core/host/beside.h"
#include "core/host/draft.h"
#include "core/seal.h"

struct sealing {
	struct sealer *sealer;
	struct beside *hash;	/* of what was ciphered */
	int fd;
	uint64_t at;		/* in the blob */
};

static void hash_chunk(void *arg, const void *p, size_t n)
{
	struct sealing *s = arg;
	sealer_hash(s->sealer, p, n);
}

static int put(struct sealing *s, const void *p, size_t n, struct err *e)
{
	if (file_put_at(s->fd, p, n, s->at, e) < 0)
		return -1;
	s->at += n;
	return 0;
}

/* n bytes from `from`, which may be the chunk itself. */
static int put_chunk(struct sealing *s, uint8_t *chunk, const uint8_t *from,
		     size_t n, struct err *e)
{
	if (sealer_cipher(s->sealer, chunk, from, n, e) < 0 ||
	    put(s, chunk, n, e) < 0)
		return -1;
	beside_give(s->hash, n);
	return 0;
}

static int put_bytes(struct sealing *s, struct bytes b, struct err *e)
{
	while (b.n) {
		size_t n = b.n < BESIDE_CHUNK ? b.n : BESIDE_CHUNK;
		if (put_chunk(s, beside_room(s->hash), b.p, n, e) < 0)
			return -1;
		b.p += n;
		b.n -= n;
	}
	return 0;
}

static int put_body(struct sealing *s, const struct zip_source *body,
		    struct err *e)
{
	for (uint64_t at = 0; at < body->size;) {
		size_t n = body->size - at < BESIDE_CHUNK ?
			(size_t)(body->size - at) : BESIDE_CHUNK;
		uint8_t *chunk = beside_room(s->hash);
		if (body->read(body->arg, at, chunk, n) < 0)
			return err_set(e, ERR_SYS, "the file cannot be read; "
				       "it was perhaps cut meanwhile");
		if (put_chunk(s, chunk, chunk, n, e) < 0)
			return -1;
		at += n;
	}
	return 0;
}

static int seal_parts(struct sealing *s, const struct draft *d,
		      const struct peer *p, struct sealed *out, struct err *e)
{
	uint8_t tail[BLOB_OVERHEAD - 12];
	if (put_bytes(s, buf_bytes(&d->front), e) < 0 ||
	    put_body(s, &d->body, e) < 0 ||
	    put_bytes(s, buf_bytes(&d->back), e) < 0)
		return -1;
	beside_wait(s->hash);
	if (sealer_final(s->sealer, tail, &out->envelope, out->ref.sha256,
			 p->identity.seed, e) < 0)
		return -1;
	return put(s, tail, sizeof tail, e);
}

static void fill_header(struct item_header *h, const struct draft *d,
			const struct peer *p)
{
	*h = (struct item_header){ .kind = d->kind, .type = d->type,
				   .refs = d->refs, .ref_n = d->ref_n,
				   .size = draft_size(d) };
	memcpy(h->author, p->pub, PRIM_PUB);
	memcpy(h->session_id, p->manifest.session_id, sizeof h->session_id);
	h->created_at_ms = clock_sign_ms(&p->clock, &p->manifest);
	item_new_id(h->id);
}

int draft_seal(const struct draft *d, const struct peer *p, int fd,
	       struct sealed *out, struct err *e)
{
	struct sealing s = { .fd = fd };
	struct item_header h;
	uint8_t head[12];
	int r = -1;

	*out = (struct sealed){ .blob_fd = fd, .kind = d->kind,
				.type = d->type };
	fill_header(&h, d, p);
	memcpy(out->id, h.id, sizeof out->id);
	memcpy(out->ref.id, h.id, sizeof out->ref.id);
	out->blob_n = (uint64_t)h.size + BLOB_OVERHEAD;
	s.hash = beside_new(out->blob_n, hash_chunk, &s, e);
	if (s.hash)
		s.sealer = sealer_new(&h, p->invite.keys.session_key, NULL,
				      head, e);
	if (s.sealer && put(&s, head, sizeof head, e) == 0)
		r = seal_parts(&s, d, p, out, e);
	beside_free(s.hash);
	sealer_free(s.sealer);
	if (r < 0)
		sealed_free(out);
	return r;
}

static void wait_ms(int64_t ms)
{
	const struct timespec t = { .tv_sec = ms / 1000,
				    .tv_nsec = ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

static int post_until(const struct draft_post *how, const struct sealed *s,
		      uint64_t *seq, struct err *e)
{
	int64_t end = clock_mono_ms() + how->give_up_ms;
	for (unsigned n = 0;; n++) {
		if (peer_post(how->wire, s, seq, how->moved, how->moved_arg,
			      e) == 0)
			return 0;
		int64_t ms = peer_delay_ms(n, wire_retry_after_ms(how->wire));
		if (!peer_may_retry(e) || clock_mono_ms() + ms > end)
			return -1;
		wait_ms(ms);
	}
}

int draft_send(const struct draft *d, struct peer *p,
	       const struct draft_post *how, struct sealed *out,
	       uint64_t *seq, struct err *e)
{
	struct cache_stage st;
	struct err own;

	e = e ? e : &own;
	if (cache_stage(p->cache, &st, e) < 0)
		return -1;
	int r = draft_seal(d, p, st.fd, out, e);
	if (r == 0)
		r = post_until(how, out, seq, e);
	if (r == 0)
		cache_keep(p->cache, &st, out->id, NULL);
	else
		cache_drop(p->cache, &st);
	if (r == 0) {
		out->owns_fd = true;
		return 0;
	}
	sealed_free(out);
	close(st.fd);
	return -1;
}
