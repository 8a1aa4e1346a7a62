/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/enc.h"
#include "core/item.h"
#include "core/json.h"

static const char *const kinds[] = {
	[ITEM_TEXT] = "text", [ITEM_FILE] = "file", [ITEM_JOB] = "job",
	[ITEM_RESULT] = "result", [ITEM_EVENT] = "event",
};
#define KINDS (sizeof kinds / sizeof *kinds)

const char *item_kind_word(enum item_kind kind)
{
	return (unsigned)kind < KINDS ? kinds[kind] : "";
}

bool item_is_id(struct bytes s)
{
	uint8_t id[16];

	return enc_b64_fixed(id, sizeof id, s) == 0;
}

void item_new_id(char out[ITEM_ID + 1])
{
	cleanup_buf struct buf b = { 0 };
	uint8_t id[16];

	prim_random(id, sizeof id);
	enc_b64(&b, id, sizeof id);
	memset(out, 0, ITEM_ID + 1);
	if (!buf_failed(&b))
		memcpy(out, b.data, ITEM_ID);
}

/* --- reading --- */

static void take_id(struct json_reader *r, const char *key,
		    char out[ITEM_ID + 1])
{
	struct bytes id = json_take_string(r, key);

	if (item_is_id(id))
		memcpy(out, id.p, ITEM_ID);
	else
		json_fail(r, key, "is not an item id");
}

static int take_ref(struct item_ref *ref, const struct json *v, struct err *e)
{
	struct json_reader r;

	*ref = (struct item_ref){ 0 };
	json_open(&r, v, "reference");
	json_take_fixed(&r, "blob_sha256", ref->sha256, HASH_SIZE);
	take_id(&r, "id", ref->id);
	return json_close(&r, e);
}

static int take_refs(struct item_ref **refs, size_t *n,
		     const struct json *list, struct err *e)
{
	*refs = NULL;
	*n = 0;
	if (!list || list->count == 0)
		return 0;
	struct item_ref *v = calloc(list->count, sizeof *v);
	if (!v)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (const struct json *at = list->child; at; at = at->next) {
		if (take_ref(&v[*n], at, e) < 0) {
			free(v);
			*n = 0;
			return -1;
		}
		++*n;
	}
	*refs = v;
	return 0;
}

static void take_kind(struct item_header *h, struct json_reader *r)
{
	struct bytes word = json_take_string(r, "kind");

	for (unsigned i = 0; i < KINDS; i++) {
		if (bytes_eq(word, bytes_str(kinds[i]))) {
			h->kind = (enum item_kind)i;
			return;
		}
	}
	json_fail(r, "kind", "is unknown");
}

static void take_subkind(struct item_header *h, struct json_reader *r)
{
	const struct json *v = json_take(r, "subkind");
	bool good = false;

	h->type = TYPE_NONE;
	if (!v)
		return;
	if (h->kind == ITEM_FILE) {
		if (v->type == JSON_STRING)
			h->type = type_parse(v->str);
		good = h->type != TYPE_NONE && h->type != TYPE_TEXT;
	} else if (h->kind == ITEM_JOB) {
		good = v->type == JSON_STRING &&
		       bytes_eq(v->str, bytes_str("py"));
	} else {
		good = json_is_null(v);
	}
	if (!good)
		json_fail(r, "subkind", "does not go with the kind");
}

static int take_header(struct item_header *h, const struct json *v,
		       const uint8_t *known_author, struct err *e)
{
	struct json_reader r;

	json_open(&r, v, "item header");
	key_take_known(&r, "author", h->author, known_author);
	h->created_at_ms = json_take_int(&r, "created_at_ms", 0, JSON_INT_MAX);
	take_id(&r, "id", h->id);
	take_kind(h, &r);
	const struct json *refs = json_take_array(&r, "refs");
	if (refs && refs->count > ITEM_REFS_MAX)
		json_fail(&r, "refs", "are more than 64");
	struct bytes session = json_take_string(&r, "session_id");
	if (key_is_session_id(session))
		memcpy(h->session_id, session.p, SESSION_ID);
	else
		json_fail(&r, "session_id", "is none");
	h->size = json_take_int(&r, "size", 0, JSON_INT_MAX);
	take_subkind(h, &r);
	json_take_int(&r, "v", 1, 1);
	if (json_close(&r, e) < 0)
		return -1;
	return take_refs(&h->refs, &h->ref_n, refs, e);
}

int item_parse_header(struct item_header *h, struct bytes in, struct err *e)
{
	*h = (struct item_header){ 0 };
	struct json *doc = json_parse(in, e);
	if (!doc)
		return err_prefix(e, "item header");
	int r = take_header(h, doc, NULL, e);
	json_free(doc);
	return r;
}

void item_free_header(struct item_header *h)
{
	if (!h)
		return;
	free(h->refs);
	*h = (struct item_header){ 0 };
}

static int read_envelope(struct envelope *v, const struct json *doc,
			 const uint8_t *known_author, struct err *e)
{
	struct json_reader r;

	json_open(&r, doc, "envelope");
	const struct json *header = json_take_object(&r, "header");
	json_take_fixed(&r, "sig", v->sig, PRIM_SIG);
	if (json_close(&r, e) < 0)
		return -1;
	v->raw_header = header->raw;
	return take_header(&v->header, header, known_author, e);
}

int envelope_parse(struct envelope *v, struct bytes in, struct err *e)
{
	return envelope_parse_from(v, in, NULL, e);
}

int envelope_parse_from(struct envelope *v, struct bytes in,
			const struct cert *expected, struct err *e)
{
	*v = (struct envelope){ 0 };
	struct json *doc = json_parse(in, e);
	if (!doc)
		return err_prefix(e, "envelope");
	int r = read_envelope(v, doc, expected ? expected->pub : NULL, e);
	json_free(doc);
	if (r < 0)
		envelope_free(v);
	return r;
}

void envelope_free(struct envelope *v)
{
	if (!v)
		return;
	item_free_header(&v->header);
	*v = (struct envelope){ 0 };
}

/* --- signing --- */

static void put_signed(struct buf *b, struct bytes raw_header,
		       const uint8_t blob_sha256[HASH_SIZE])
{
	buf_add(b, raw_header.p, raw_header.n);
	buf_add(b, blob_sha256, HASH_SIZE);
}

int envelope_verify(const struct envelope *v,
		    const uint8_t blob_sha256[HASH_SIZE], struct err *e)
{
	cleanup_buf struct buf msg = { 0 };

	put_signed(&msg, v->raw_header, blob_sha256);
	if (buf_failed(&msg))
		return err_set(e, ERR_MEMORY, "out of memory");
	return key_verify(v->sig, v->header.author, KEY_ITEM, buf_bytes(&msg),
			  e);
}

void envelope_build(struct buf *out, struct bytes raw_header,
		    const uint8_t blob_sha256[HASH_SIZE],
		    const uint8_t seed[PRIM_SEED])
{
	cleanup_buf struct buf msg = { 0 };
	uint8_t sig[PRIM_SIG];

	put_signed(&msg, raw_header, blob_sha256);
	if (buf_failed(&msg)) {
		out->failed = true;
		return;
	}
	key_sign(sig, seed, KEY_ITEM, buf_bytes(&msg));
	buf_add_str(out, "{\"header\":");
	buf_add(out, raw_header.p, raw_header.n);
	json_put_key(out, "sig");
	json_put_b64(out, sig, sizeof sig);
	buf_add_byte(out, '}');
}

/* --- writing --- */

void item_put_ref(struct buf *out, const struct item_ref *ref)
{
	buf_add_byte(out, '{');
	json_put_key(out, "blob_sha256");
	json_put_b64(out, ref->sha256, HASH_SIZE);
	json_put_key(out, "id");
	json_put_string(out, bytes_str(ref->id));
	buf_add_byte(out, '}');
}

static void put_subkind(struct buf *out, const struct item_header *h)
{
	const char *word = h->kind == ITEM_FILE ? type_word(h->type) : "py";

	json_put_key(out, "subkind");
	if (h->kind == ITEM_FILE || h->kind == ITEM_JOB)
		json_put_string(out, bytes_str(word));
	else
		buf_add_str(out, "null");
}

void item_put_header(struct buf *out, const struct item_header *h)
{
	buf_add_byte(out, '{');
	json_put_key(out, "author");
	json_put_b64(out, h->author, PRIM_PUB);
	json_put_key(out, "created_at_ms");
	json_put_int(out, h->created_at_ms);
	json_put_key(out, "id");
	json_put_string(out, bytes_str(h->id));
	json_put_key(out, "kind");
	json_put_string(out, bytes_str(item_kind_word(h->kind)));
	json_put_key(out, "refs");
	buf_add_byte(out, '[');
	for (size_t i = 0; i < h->ref_n; i++) {
		json_put_sep(out);
		item_put_ref(out, &h->refs[i]);
	}
	buf_add_byte(out, ']');
	json_put_key(out, "session_id");
	json_put_string(out, bytes_str(h->session_id));
	json_put_key(out, "size");
	json_put_int(out, h->size);
	put_subkind(out, h);
	json_put_key(out, "v");
	json_put_int(out, 1);
	buf_add_byte(out, '}');
}

/* --- policy --- */

int item_check_author(const struct item_header *h, const struct cert *author,
		      struct err *e)
{
	if (memcmp(h->author, author->pub, PRIM_PUB) != 0)
		return err_set(e, ERR_POLICY, "item: the author is not the "
			       "participant of the certificate");
	return 0;
}

/* An event of a sender may be one that only the owner may post: who reads the
 * payload looks (payload_check). */
static bool role_may(enum role role, enum item_kind kind, enum mode mode)
{
	static const unsigned char may[ROLES] = {
		[ROLE_OWNER] = 0xff,
		[ROLE_SENDER] = 1 << ITEM_TEXT | 1 << ITEM_FILE |
				1 << ITEM_JOB | 1 << ITEM_EVENT,
		[ROLE_RUNNER] = 1 << ITEM_FILE | 1 << ITEM_RESULT,
	};

	if (mode != MODE_EXECUTE && (role == ROLE_RUNNER ||
	    kind == ITEM_JOB || kind == ITEM_RESULT))
		return false;
	return may[role] >> kind & 1;
}

static bool type_allowed(const struct item_header *h, const struct manifest *m)
{
	switch (h->kind) {
	case ITEM_TEXT: return m->allowed[TYPE_TEXT];
	case ITEM_FILE: return h->type < TYPE_NONE && m->allowed[h->type];
	case ITEM_JOB: return m->allowed[TYPE_PY];
	case ITEM_RESULT: case ITEM_EVENT: return true;
	}
	return false;
}

int item_check_header(const struct item_header *h, const struct cert *author,
		      const struct manifest *m, struct err *e)
{
	if (strcmp(h->session_id, m->session_id) != 0)
		return err_set(e, ERR_POLICY, "item: of another session");
	if (item_check_author(h, author, e) < 0)
		return -1;
	if (!role_may(author->role, h->kind, m->mode))
		return err_set(e, ERR_ROLE, "item: this session's %s may not "
			       "post a %s", role_word(author->role),
			       item_kind_word(h->kind));
	if (h->created_at_ms < m->created_at_ms ||
	    h->created_at_ms >= m->expires_at_ms)
		return err_set(e, ERR_TIME, "item: its time lies outside the "
			       "session's life");
	if (h->size > m->max_item_bytes)
		return err_set(e, ERR_SIZE, "item: %lld bytes, the session "
			       "allows %lld", (long long)h->size,
			       (long long)m->max_item_bytes);
	if (!type_allowed(h, m))
		return err_set(e, ERR_TYPE, "item: this session does not take "
			       "this type");
	return 0;
}
