/* SPDX-License-Identifier: MIT */
#include "core/aead.h"
#include "core/seal.h"
#include "tests/unit/party.h"

static struct item_header header(const struct party *p, size_t size)
{
	struct item_header h = { .created_at_ms = PARTY_BEGIN,
				 .kind = ITEM_TEXT, .type = TYPE_NONE,
				 .size = (int64_t)size };

	memcpy(h.author, p->cert[ROLE_SENDER].pub, 32);
	strcpy(h.session_id, p->m.session_id);
	strcpy(h.id, "AAAAAAAAAAAAAAAAAAAAAA");
	return h;
}

static const uint8_t nonce[12] = "nonce nonce";

/* The same through the stream, in steps. */
static int seal_steps(struct buf *blob, struct buf *env, const struct party *p,
		      struct bytes payload, size_t step, struct err *e)
{
	struct item_header h = header(p, payload.n);
	uint8_t sha[32], want[32];
	uint8_t *to = buf_room(blob, payload.n + BLOB_OVERHEAD);
	struct sealer *s = sealer_new(&h, p->keys.session_key, nonce, to, e);
	int r = s ? 0 : -1;

	for (size_t at = 0; r == 0 && at < payload.n; at += step) {
		size_t n = payload.n - at < step ? payload.n - at : step;
		r = sealer_update(s, to + 12 + at, payload.p + at, n, e);
	}
	if (r == 0)
		r = sealer_final(s, to + 12 + payload.n, env, sha,
				 p->seed[ROLE_SENDER], e);
	sealer_free(s);
	blob->len += payload.n + BLOB_OVERHEAD;
	hash_sha256(want, blob->data, blob->len);
	return r == 0 && memcmp(sha, want, 32) == 0 ? 0 : -1;
}

static int open_steps(uint8_t *out, const struct envelope *v,
		      struct bytes blob, const uint8_t key[32], size_t step,
		      struct err *e)
{
	size_t n = blob.n - BLOB_OVERHEAD;
	struct opener *o = opener_new(v, key, blob.p, e);
	int r = o ? 0 : -1;

	for (size_t at = 0; r == 0 && at < n; at += step)
		r = opener_update(o, out + at, blob.p + 12 + at,
				  n - at < step ? n - at : step);
	if (r == 0)
		r = opener_final(o, blob.p + 12 + n, e);
	opener_free(o);
	return r;
}

static void size(const struct party *p, size_t n, size_t step)
{
	struct buf data = { 0 }, blob = { 0 }, env = { 0 }, sblob = { 0 };
	struct buf senv = { 0 }, back = { 0 };
	struct item_header h = header(p, n);
	struct envelope v = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_add_byte(&data, (uint8_t)(i * 31 + i / 251));
	ok(seal_blob(&blob, &env, &h, buf_bytes(&data), p->keys.session_key,
		     p->seed[ROLE_SENDER], nonce, &e) == 0 &&
	   blob.len == n + BLOB_OVERHEAD, "%zu bytes sealed", n);
	ok(seal_steps(&sblob, &senv, p, buf_bytes(&data), step, &e) == 0 &&
	   bytes_eq(buf_bytes(&sblob), buf_bytes(&blob)) &&
	   bytes_eq(buf_bytes(&senv), buf_bytes(&env)),
	   "in steps of %zu the same", step);
	ok(envelope_parse(&v, buf_bytes(&env), &e) == 0, "the envelope");
	ok(seal_open(&back, &v, buf_bytes(&blob), p->keys.session_key,
		     &e) == 0 && bytes_eq(buf_bytes(&back), buf_bytes(&data)),
	   "opened: %s", e.why);
	uint8_t *out = buf_room(&back, n + 1);
	ok(open_steps(out, &v, buf_bytes(&blob), p->keys.session_key, step,
		      &e) == 0 &&
	   bytes_eq((struct bytes){ out, n }, buf_bytes(&data)),
	   "opened in steps");
	envelope_free(&v);
	buf_free(&data);
	buf_free(&blob);
	buf_free(&env);
	buf_free(&sblob);
	buf_free(&senv);
	buf_free(&back);
}

static void tampering(const struct party *p)
{
	struct item_header h = header(p, 5);
	struct buf blob = { 0 }, env = { 0 }, back = { 0 };
	struct envelope v;
	struct err e = { 0 };
	uint8_t key[32], sha[32];

	seal_blob(&blob, &env, &h, bytes_str("hello"), p->keys.session_key,
		  p->seed[ROLE_SENDER], NULL, &e);
	envelope_parse(&v, buf_bytes(&env), &e);
	memcpy(key, p->keys.session_key, 32);
	key[0] ^= 1;
	ok(seal_open(&back, &v, buf_bytes(&blob), key, &e) < 0 &&
	   e.code == ERR_DECRYPT && back.len == 0, "another key: %s", e.why);
	blob.data[14] ^= 1;
	ok(seal_open(&back, &v, buf_bytes(&blob), p->keys.session_key,
		     &e) < 0 && e.code == ERR_SIGNATURE, "a bit: %s", e.why);
	struct bytes cut = { blob.data, blob.len - 1 };
	ok(seal_open(&back, &v, cut, p->keys.session_key, &e) < 0 &&
	   e.code == ERR_INVALID, "cut short: %s", e.why);
	ok(seal_open(&back, &v, (struct bytes){ blob.data, 0 },
		     p->keys.session_key, &e) < 0 && e.code == ERR_INVALID,
	   "nothing at all");
	/* signed by its author, and still not what was sealed */
	struct buf again = { 0 };
	hash_sha256(sha, blob.data, blob.len);
	envelope_build(&again, v.raw_header, sha, p->seed[ROLE_SENDER]);
	struct envelope w;
	envelope_parse(&w, buf_bytes(&again), &e);
	ok(seal_open(&back, &w, buf_bytes(&blob), p->keys.session_key,
		     &e) < 0 && e.code == ERR_DECRYPT, "signed anew: %s",
	   e.why);
	envelope_free(&v);
	envelope_free(&w);
	buf_free(&again);
	buf_free(&blob);
	buf_free(&env);
	buf_free(&back);
}

static void misuse(const struct party *p)
{
	struct item_header h = header(p, 5);
	struct buf blob = { 0 }, env = { 0 };
	struct err e = { 0 };

	ok(seal_blob(&blob, &env, &h, bytes_str("hell"), p->keys.session_key,
		     p->seed[ROLE_SENDER], NULL, &e) < 0 && !env.len,
	   "shorter than announced: %s", e.why);
	ok(seal_blob(&blob, &env, &h, bytes_str("hello!"),
		     p->keys.session_key, p->seed[ROLE_SENDER], NULL,
		     &e) < 0 && !env.len, "longer: %s", e.why);
	ok(seal_blob(&blob, &env, &h, bytes_str("hello"),
		     p->keys.session_key, p->seed[ROLE_OWNER], NULL,
		     &e) < 0 && !env.len, "by another author: %s", e.why);
	h.kind = ITEM_FILE;
	ok(seal_blob(&blob, &env, &h, bytes_str("hello"),
		     p->keys.session_key, p->seed[ROLE_SENDER], NULL,
		     &e) < 0 && !env.len && !blob.len,
	   "a header nobody would take: %s", e.why);
	buf_free(&blob);
	buf_free(&env);
	sealer_free(NULL);
	opener_free(NULL);
}

/* A range of a sealed item reads as the whole does. */
static void item_range(const struct party *p)
{
	struct item_header h = header(p, 9000);
	struct buf data = { 0 }, blob = { 0 }, env = { 0 };
	uint8_t key[32], got[100];
	struct err e = { 0 };

	for (int i = 0; i < 9000; i++)
		buf_add_byte(&data, (uint8_t)(i % 253));
	seal_blob(&blob, &env, &h, buf_bytes(&data), p->keys.session_key,
		  p->seed[ROLE_SENDER], NULL, &e);
	session_item_key(key, p->keys.session_key, h.session_id, h.id);
	ok(aead_range(key, blob.data, 4097, got, blob.data + 12 + 4097,
		      100) == 0 && memcmp(got, data.data + 4097, 100) == 0,
	   "a range with the item's key");
	buf_free(&data);
	buf_free(&blob);
	buf_free(&env);
}

int main(void)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 4096, 65537 };
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size(&p, sizes[i], 4096);
		size(&p, sizes[i], 7);
	}
	tampering(&p);
	misuse(&p);
	item_range(&p);
	party_end(&p);
	return done_testing();
}
