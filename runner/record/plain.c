/* SPDX-License-Identifier: MIT */
#include "runner/record/plain.h"

#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "runner/record/chain.h"
#include "runner/record/page.h"

static const struct json *member(const struct json *object, const char *key)
{
	for (const struct json *v = object->child; v; v = v->next) {
		if (bytes_eq(v->key, bytes_str(key)))
			return v;
	}
	return NULL;
}

static void put_value(struct buf *out, const struct json *v)
{
	if (v->type == JSON_ARRAY) {
		for (v = v->child; v; v = v->next) {
			clear_escape(out, v->type == JSON_STRING ? v->str :
				     v->raw);
			buf_add_str(out, v->next ? " " : "");
		}
		return;
	}
	clear_escape(out, v->type == JSON_STRING ? v->str : v->raw);
}

static bool is_long(const struct json *v)
{
	return v->type == JSON_STRING && v->str.n &&
	       memchr(v->str.p, '\n', v->str.n);
}

/* A text of lines, below what it belongs to. */
static void put_lines(struct buf *out, const struct json *v)
{
	struct bytes rest = v->str;
	while (rest.n) {
		const uint8_t *lf = memchr(rest.p, '\n', rest.n);
		size_t n = lf ? (size_t)(lf - rest.p) : rest.n;
		buf_addf(out, "%14s", "| ");
		clear_escape(out, (struct bytes){ rest.p, n });
		buf_add_byte(out, '\n');
		n += lf != NULL;
		rest.p += n;
		rest.n -= n;
	}
}

static void put_members(struct buf *out, const struct json *data)
{
	const struct json *v;
	for (v = data->child; v; v = v->next) {
		if (is_long(v))
			continue;
		buf_add_str(out, "  ");
		clear_escape(out, v->key);
		buf_add_byte(out, '=');
		put_value(out, v);
	}
	buf_add_byte(out, '\n');
	for (v = data->child; v; v = v->next)
		if (is_long(v))
			put_lines(out, v);
}

/* A line of text a line, each with its stream. */
static void put_text(struct buf *out, const char *when, const struct json *data)
{
	const struct json *stream = member(data, "stream");
	const struct json *text = member(data, "text");
	struct bytes rest = text && text->type == JSON_STRING ? text->str
		: (struct bytes){ 0 };
	do {
		size_t n = 0;
		while (n < rest.n && rest.p[n] != '\n')
			n++;
		buf_addf(out, "%s  ", when);
		if (stream)
			put_value(out, stream);
		buf_add_str(out, "  ");
		clear_escape(out, (struct bytes){ rest.p, n });
		buf_add_byte(out, '\n');
		n += n < rest.n;
		rest.p += n;
		rest.n -= n;
	} while (rest.n);
}

static void put_part(struct buf *out, const struct part *p, int64_t began_ms)
{
	char when[32];
	int64_t ms = p->at_ms > began_ms ? p->at_ms - began_ms : 0;
	cleanup_buf struct buf b = { 0 };
	buf_addf(&b, "+%lld:%02lld.%03lld", (long long)(ms / 60000),
		 (long long)(ms / 1000 % 60), (long long)(ms % 1000));
	snprintf(when, sizeof when, "%10s", buf_cstr(&b) ? buf_cstr(&b) : "");
	if (p->kind == PART_TEXT) {
		put_text(out, when, p->data);
		return;
	}
	buf_addf(out, "%s  %s", when, part_word(p->kind));
	put_members(out, p->data);
}

int plain_put(struct buf *out, const struct proof *p, struct err *e)
{
	cleanup_buf struct buf lines = { 0 };
	if (page_unescape(&lines, p->lines) < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	struct chain_walk w;
	struct part part;
	int rc;
	int64_t began_ms = 0;
	chain_begin(&w, p->run, buf_bytes(&lines));
	while ((rc = chain_next(&w, &part, e)) > 0) {
		if (part.at == 1)
			began_ms = part.at_ms;
		put_part(out, &part, began_ms);
		part_free(&part);
	}
	if (rc == 0 && buf_failed(out))
		return err_set(e, ERR_MEMORY, "out of memory");
	return rc;
}
