/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "airloxfs/print.h"
#include "core/clear.h"
#include "core/host/tell.h"

void print_bytes(struct buf *b, struct bytes s)
{
	cleanup_buf struct buf clean = { 0 };
	if (clear_utf8(s)) {
		json_put_string(b, s);
		return;
	}
	clear_escape(&clean, s);
	json_put_string(b, buf_bytes(&clean));
}

void print_member(struct buf *b, const char *key, const char *text)
{
	json_put_key(b, key);
	if (text)
		print_bytes(b, bytes_str(text));
	else
		buf_add_str(b, "null");
}

/* Canonical JSON leaves DEL, C1 and bidi characters as they are; they are
 * escaped here, so that they neither steer a terminal nor change a value. */
static void put_raw(struct bytes s)
{
	for (size_t at = 0; at < s.n;) {
		size_t from = at;
		uint32_t c = clear_next(s, &at);
		if (c == UINT32_MAX)
			fputs("\\ufffd", stdout);
		else if (c >= 0x20 && !clear_hidden(c))
			fwrite(s.p + from, 1, at - from, stdout);
		else if (c < 0x10000)
			printf("\\u%04x", c);
		else
			printf("\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
			       0xdc00 + ((c - 0x10000) & 0x3ff));
	}
}

static void indent(unsigned depth)
{
	printf("\n%*s", (int)(2 * depth), "");
}

static void print_value(const struct json *v, unsigned depth)
{
	bool object = v->type == JSON_OBJECT;
	if ((!object && v->type != JSON_ARRAY) || !v->child) {
		put_raw(v->raw);
		return;
	}
	putchar(object ? '{' : '[');
	for (const struct json *c = v->child; c; c = c->next) {
		indent(depth + 1);
		if (object)
			printf("\"%.*s\": ", (int)c->key.n,
			       (const char *)c->key.p);
		print_value(c, depth + 1);
		if (c->next)
			putchar(',');
	}
	indent(depth);
	putchar(object ? '}' : ']');
}

int print_line(const struct buf *doc)
{
	put_raw(buf_bytes(doc));
	putchar('\n');
	return tell_flush();
}

int print_doc(const struct buf *doc)
{
	struct err e = { .code = ERR_MEMORY, .why = "out of memory" };
	struct json *v = buf_failed(doc) ? NULL :
		json_parse(buf_bytes(doc), &e);
	if (!v)
		return tell_fail(&e);
	print_value(v, 0);
	putchar('\n');
	json_free(v);
	return tell_flush();
}
