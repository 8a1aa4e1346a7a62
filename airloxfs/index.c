/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "airloxfs/index.h"
#include "core/enc.h"

/* Every record has all fields, in the order of their names, empty where its
 * kind has no use for them: one shape to write, one to read. */
static void put_b64(struct buf *b, const char *key, const void *p, size_t n)
{
	json_put_key(b, key);
	json_put_b64(b, p, n);
}

void index_put(struct buf *out, const struct index_record *r)
{
	const struct index_item *i = &r->item;
	buf_add_byte(out, '{');
	put_b64(out, "blob", i->blob_sha256, HASH_SIZE);
	put_b64(out, "content", i->blob.p, i->blob.n);
	json_put_key_int(out, "cursor", r->cursor + 1);
	json_put_key_string(out, "id", r->id);
	json_put_key_int(out, "is_text", i->is_text);
	json_put_key_int(out, "kind", (int64_t)r->kind);
	json_put_key_string(out, "mime", i->mime);
	json_put_key_string(out, "name",
			    r->kind == INDEX_ITEM ? i->name : r->name);
	json_put_key_string(out, "original", i->original);
	put_b64(out, "pub", r->pub, PRIM_PUB);
	json_put_key_int(out, "seq", (int64_t)r->seq);
	put_b64(out, "sha256", i->sha256, HASH_SIZE);
	put_b64(out, "tags", i->chunks.p, i->chunks.n);
	json_put_key_string(out, "text", r->text);
	json_put_key_int(out, "view_n", (int64_t)i->view_n);
	json_put_key_int(out, "view_off", (int64_t)i->view_off);
	json_put_key_int(out, "wrapped", i->wrapped);
	buf_add_byte(out, '}');
}

static void read_fields(struct index_record *r, struct json_reader *j,
			struct bytes *chunks, struct bytes *content)
{
	struct index_item *i = &r->item;
	json_take_fixed(j, "blob", i->blob_sha256, HASH_SIZE);
	*content = json_take_string(j, "content");
	r->cursor = json_take_int(j, "cursor", 0, JSON_INT_MAX) - 1;
	r->id = json_take_string(j, "id");
	i->is_text = json_take_int(j, "is_text", 0, 1);
	r->kind = (enum index_kind)json_take_int(j, "kind", 0,
						 INDEX_KINDS - 1);
	i->mime = json_take_string(j, "mime");
	i->name = r->name = json_take_string(j, "name");
	i->original = json_take_string(j, "original");
	json_take_fixed(j, "pub", r->pub, PRIM_PUB);
	r->seq = (uint64_t)json_take_int(j, "seq", 0, JSON_INT_MAX);
	json_take_fixed(j, "sha256", i->sha256, HASH_SIZE);
	*chunks = json_take_string(j, "tags");
	r->text = json_take_string(j, "text");
	i->view_n = (uint64_t)json_take_int(j, "view_n", 0, JSON_INT_MAX);
	i->view_off = (uint64_t)json_take_int(j, "view_off", 0, JSON_INT_MAX);
	i->wrapped = json_take_int(j, "wrapped", 0, 1);
}

int index_parse(struct index_record *r, struct bytes record, struct err *e)
{
	*r = (struct index_record){ 0 };
	r->doc = json_parse(record, e);
	if (!r->doc)
		return -1;
	struct json_reader j;
	struct bytes chunks, content;
	json_open(&j, r->doc, "index record");
	read_fields(r, &j, &chunks, &content);
	if (json_close(&j, e) < 0 ||
	    ((enc_b64_decode(&r->raw_chunks, chunks) < 0 ||
	      enc_b64_decode(&r->raw_blob, content) < 0) &&
	     err_set(e, ERR_INVALID, "index record: bad chunk tags") < 0)) {
		index_free(r);
		return -1;
	}
	r->item.chunks = buf_bytes(&r->raw_chunks);
	r->item.blob = buf_bytes(&r->raw_blob);
	return 0;
}

void index_free(struct index_record *r)
{
	json_free(r->doc);
	buf_free(&r->raw_chunks);
	buf_free(&r->raw_blob);
	r->doc = NULL;
}
