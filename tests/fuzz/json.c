/* SPDX-License-Identifier: MIT
 *
 * What the reader takes, the writer writes again byte for byte: that is what
 * "canonical" means. */
#include <stdlib.h>

#include "core/json.h"

static void put(struct buf *b, const struct json *v)
{
	switch (v->type) {
	case JSON_NULL: buf_add_str(b, "null"); return;
	case JSON_BOOL: buf_add_str(b, v->num ? "true" : "false"); return;
	case JSON_INT: json_put_int(b, v->num); return;
	case JSON_STRING: json_put_string(b, v->str); return;
	case JSON_ARRAY: case JSON_OBJECT: break;
	}
	size_t n = 0;
	buf_add_byte(b, v->type == JSON_ARRAY ? '[' : '{');
	for (const struct json *m = v->child; m; m = m->next, n++) {
		json_put_sep(b);
		if (v->type == JSON_OBJECT) {
			json_put_string(b, m->key);
			buf_add_byte(b, ':');
		}
		size_t from = b->len;
		put(b, m);
		if (!bytes_eq(m->raw, (struct bytes){ b->data + from,
						      b->len - from }))
			abort();
	}
	buf_add_byte(b, v->type == JSON_ARRAY ? ']' : '}');
	if (n != v->count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct bytes in = { p, n };
	struct buf out = { 0 };
	struct err e = { 0 };
	struct json *doc = json_parse(in, &e);

	if (!doc && e.code != ERR_INVALID)
		abort();
	if (doc) {
		put(&out, doc);
		if (!bytes_eq(buf_bytes(&out), in))
			abort();
	}
	json_free(doc);
	buf_free(&out);
	return 0;
}
