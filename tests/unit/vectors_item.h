/* SPDX-License-Identifier: MIT
 *
 * The sections items and tampered: an item as a client and as a relay see
 * it, and the same item made again. */
#ifndef TESTS_UNIT_VECTORS_ITEM_H
#define TESTS_UNIT_VECTORS_ITEM_H

#include "tests/unit/vectors.h"

/* One item on its way through the checks; zero-initialised. */
struct passage {
	const struct manifest *m;
	struct bytes session_key;
	struct envelope v;
	struct cert author;
	struct buf blob, payload;
	struct payload p;
	bool parsed, opened;
	struct bytes meta, body;
};

static inline void passage_free(struct passage *x)
{
	envelope_free(&x->v);
	payload_free(&x->p);
	buf_free(&x->blob);
	buf_free(&x->payload);
}

static inline int take_payload(struct passage *x, struct err *e)
{
	uint8_t head[4] = { 0 };
	uint32_t n;

	memcpy(head, x->payload.data, x->payload.len < 4 ? x->payload.len : 4);
	if (payload_frame(head, (int64_t)x->payload.len, &n, e) < 0)
		return -1;
	x->meta = (struct bytes){ x->payload.data + 4, n };
	x->body = (struct bytes){ x->payload.data + 4 + n,
				  x->payload.len - 4 - n };
	return payload_parse(&x->p, x->meta, (int64_t)x->body.n, e);
}

static inline int take_content(struct passage *x, struct err *e)
{
	struct zip_source body = zip_source_bytes(&x->body);

	if (payload_check(&x->p, &x->v.header, &x->author, x->m, e) < 0)
		return -1;
	if (x->p.kind != ITEM_FILE)
		return 0;
	struct buf mime = { 0 };
	buf_add(&mime, x->p.u.file.mime.p, x->p.u.file.mime.n);
	int r = content_check(x->v.header.type, buf_cstr(&mime), &body, e);
	buf_free(&mime);
	return r;
}

/* The order of a client: protocol, section 6. */
static inline int client_says(struct passage *x, const char *envelope,
			      const char *cert, struct err *e)
{
	if (envelope_parse(&x->v, bytes_str(envelope), e) < 0)
		return -1;
	x->parsed = true;
	if (cert_parse(&x->author, bytes_str(cert), x->m, e) < 0 ||
	    item_check_author(&x->v.header, &x->author, e) < 0 ||
	    seal_open(&x->payload, &x->v, buf_bytes(&x->blob),
		      x->session_key.p, e) < 0)
		return -1;
	x->opened = true;
	if (take_payload(x, e) < 0 ||
	    item_check_header(&x->v.header, &x->author, x->m, e) < 0)
		return -1;
	return take_content(x, e);
}

/* A relay has no key, and judges the header before the blob is there. */
static inline int relay_says(const struct passage *x, const char *envelope,
			     const char *cert, struct err *e)
{
	struct envelope v;
	struct cert author;
	uint8_t sha256[HASH_SIZE];

	if (envelope_parse(&v, bytes_str(envelope), e) < 0)
		return -1;
	int r = cert_parse(&author, bytes_str(cert), x->m, e);
	if (r == 0)
		r = item_check_header(&v.header, &author, x->m, e);
	hash_sha256(sha256, x->blob.data, x->blob.len);
	if (r == 0)
		r = blob_verify(&v, sha256, (int64_t)x->blob.len, e);
	envelope_free(&v);
	return r;
}

static inline void judge_relay(const struct passage *x, const cJSON *c,
			       const char *envelope, const char *cert)
{
	struct err e = { 0 };
	const char *want = loose_str(c, "relay_verdict");
	const char *got = relay_says(x, envelope, cert, &e) == 0 ? "ok"
								 : "reject";

	if (want && strcmp(want, got) != 0) {
		disagree("relay_verdict", want, got);
		printf("    (%s)\n", e.why);
	}
}

static inline void expect_opened(const struct passage *x, const cJSON *c)
{
	uint8_t sha256[HASH_SIZE];
	char hex[2 * HASH_SIZE + 1];
	struct buf want = { 0 };
	const cJSON *ref = loose_get(c, "ref");

	if (loose_str(c, "meta")) {
		loose_bytes(&want, loose_str(c, "meta"));
		expect(bytes_eq(buf_bytes(&want), x->meta), "meta");
		buf_free(&want);
	}
	if (loose_str(c, "body_sha256")) {
		hash_sha256(sha256, x->body.p, x->body.n);
		enc_hex(hex, sha256, HASH_SIZE);
		expect_text("body_sha256", loose_str(c, "body_sha256"),
			    bytes_str(hex));
	}
	if (ref) {
		hash_sha256(sha256, x->blob.data, x->blob.len);
		expect_b64("ref hash", loose_str(ref, "blob_sha256"), sha256,
			   HASH_SIZE);
		expect_text("ref id", loose_str(ref, "id"),
			    bytes_str(x->v.header.id));
	}
}

/* What we would write for what we read. */
static inline void expect_put(const struct passage *x)
{
	struct buf again = { 0 };

	switch (x->p.kind) {
	case ITEM_TEXT: payload_put_text(&again, x->p.u.text.text); break;
	case ITEM_FILE:
		payload_put_file(&again, x->p.u.file.mime, x->p.u.file.name);
		break;
	case ITEM_JOB: payload_put_job(&again, &x->p); break;
	case ITEM_RESULT: payload_put_result(&again, &x->p); break;
	case ITEM_EVENT: return;	/* the unit test has them */
	}
	expect(again.len == 4 + x->meta.n &&
	       !memcmp(again.data, x->payload.data, again.len), "put again");
	buf_free(&again);
}

/* Everything is derived: with the same nonce the same bytes come out. */
static inline void expect_resealed(const struct passage *x,
				   const char *envelope,
				   const uint8_t seed[32])
{
	struct buf blob = { 0 }, again = { 0 };
	struct err e = { 0 };

	if (seal_blob(&blob, &again, &x->v.header, buf_bytes(&x->payload),
		      x->session_key.p, seed, x->blob.data, &e) < 0) {
		disagree("sealed again", "a blob", e.why);
	} else {
		expect(bytes_eq(buf_bytes(&blob), buf_bytes(&x->blob)),
		       "sealed again: blob");
		expect_text("sealed again: envelope", envelope,
			    buf_bytes(&again));
	}
	buf_free(&blob);
	buf_free(&again);
}

static inline void item_case(const struct world *w, const cJSON *c)
{
	struct passage x = { .session_key = { w->session_key, 32 } };
	const char *manifest = loose_str(c, "manifest");
	const cJSON *who = loose_get(w->participants,
				     loose_str(c, "author_role"));
	const char *envelope = loose_str(c, "envelope");
	const char *cert = loose_str(who, "cert");
	struct err e = { 0 };
	uint8_t seed[32];

	x.m = strcmp(manifest, "relay") == 0 ? &w->relay : &w->execute;
	if (loose_b64(&x.blob, c, "blob") < 0 ||
	    loose_fixed(seed, 32, who, "seed") < 0) {
		disagree("case", "a blob and a known author", "none");
		return;
	}
	if (judge(c, client_says(&x, envelope, cert, &e), &e)) {
		expect_opened(&x, c);
		expect_put(&x);
	}
	judge_relay(&x, c, envelope, cert);
	if (x.opened)
		expect_resealed(&x, envelope, seed);
	passage_free(&x);
}

/* --- what the published client refused to make --- */

static inline int take_refs(struct item_header *h, const cJSON *refs)
{
	const cJSON *r;

	h->refs = calloc((size_t)cJSON_GetArraySize(refs) + 1, sizeof *h->refs);
	cJSON_ArrayForEach(r, refs) {
		struct item_ref *ref = &h->refs[h->ref_n++];
		const char *id = loose_str(r, "id");
		if (!id || !item_is_id(bytes_str(id)) ||
		    loose_fixed(ref->sha256, HASH_SIZE, r, "blob_sha256") < 0)
			return -1;
		memcpy(ref->id, id, ITEM_ID);
	}
	return 0;
}

static inline int take_new(struct item_header *h, uint8_t seed[32],
			   const struct world *w, const cJSON *c)
{
	const char *kind = loose_str(c, "kind");
	const char *subkind = loose_str(c, "subkind");
	const cJSON *who = loose_get(w->participants, loose_str(c, "role"));

	while (h->kind < ITEM_EVENT && strcmp(item_kind_word(h->kind), kind))
		h->kind++;
	h->type = h->kind == ITEM_FILE && subkind ?
		  type_parse(bytes_str(subkind)) : TYPE_NONE;
	h->created_at_ms = w->execute.created_at_ms;
	memcpy(h->session_id, w->execute.session_id, SESSION_ID);
	item_new_id(h->id);
	if (loose_fixed(seed, 32, who, "seed") < 0)
		return -1;
	prim_pub(h->author, seed);
	return take_refs(h, loose_get(c, "refs"));
}

/* 0 if our side would send it. */
static inline int make_item(struct item_header *h, const uint8_t seed[32],
			    const struct world *w, const cJSON *c,
			    struct err *e)
{
	struct buf meta = { 0 }, body = { 0 }, out = { 0 }, blob = { 0 };
	struct buf envelope = { 0 };
	struct payload p;

	loose_canonical(&meta, loose_get(c, "meta"));
	loose_b64(&body, c, "body");
	int r = payload_parse(&p, buf_bytes(&meta), (int64_t)body.len, e);
	if (r == 0) {
		payload_free(&p);
		buf_add_u32be(&out, (uint32_t)meta.len);
		buf_add(&out, meta.data, meta.len);
		buf_add(&out, body.data, body.len);
		h->size = (int64_t)out.len;
		r = seal_blob(&blob, &envelope, h, buf_bytes(&out),
			      w->session_key, seed, NULL, e);
	}
	buf_free(&meta);
	buf_free(&body);
	buf_free(&out);
	buf_free(&blob);
	buf_free(&envelope);
	return r;
}

static inline void unsealable_case(const struct world *w, const cJSON *c)
{
	struct item_header h = { 0 };
	struct err e = { 0 };
	uint8_t seed[32];

	if (take_new(&h, seed, w, c) < 0)
		disagree("case", "an item", "nothing we understand");
	else if (make_item(&h, seed, w, c, &e) == 0)
		disagree("sealing", "refused", "sealed");
	free(h.refs);
}

static inline void section_items(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "items")) {
		begin("items", c, "?");
		if (cJSON_IsTrue(loose_get(c, "unsealable")))
			unsealable_case(w, c);
		else
			item_case(w, c);
		end();
	}
}

static inline void section_tampered(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "tampered")) {
		struct passage x = { .m = &w->execute };
		const char *envelope = loose_str(c, "envelope");
		const char *cert = loose_str(c, "author_cert");
		struct err e = { 0 };
		uint8_t key[32];

		begin("tampered", c, "?");
		x.session_key = (struct bytes){ key, 32 };
		if (loose_b64(&x.blob, c, "blob") < 0 ||
		    loose_fixed(key, 32, c, "session_key") < 0) {
			disagree("case", "a blob and a key", "none");
		} else {
			judge(c, client_says(&x, envelope, cert, &e), &e);
			judge_relay(&x, c, envelope, cert);
		}
		passage_free(&x);
		end();
	}
}

#endif
