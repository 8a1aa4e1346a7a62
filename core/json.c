/* SPDX-License-Identifier: MIT
 *
 * The parser refuses at the first byte that a canonical writer would not have
 * written, so there is nothing to compare afterwards.  Nodes come in blocks,
 * decoded strings share one buffer no longer than the input: what a peer
 * sends costs a bounded multiple of its size. */
#include <inttypes.h>
#include <string.h>

#include "core/enc.h"
#include "core/json.h"

#define DEPTH_MAX 32
#define NODES_MAX (1 << 18)	/* far above any valid structure */
#define BLOCK 64

struct block {
	struct block *next;
	struct json node[BLOCK];
};

struct document {
	struct json root;	/* first: json_free gets its address */
	struct block *blocks;
	size_t node_n;
	uint8_t *text;		/* decoded strings; NULL until one is */
	size_t text_n, text_cap;
};

struct parser {
	struct document *doc;
	const uint8_t *at, *end;
	enum err_code code;
	const char *why;
};

static int fail(struct parser *p, const char *why)
{
	if (!p->why) {
		p->why = why;
		p->code = ERR_INVALID;
	}
	return -1;
}

static int fail_memory(struct parser *p)
{
	fail(p, "out of memory");
	p->code = ERR_MEMORY;
	return -1;
}

static struct json *node_new(struct parser *p)
{
	struct document *d = p->doc;
	size_t used = d->node_n % BLOCK;

	if (d->node_n >= NODES_MAX) {
		fail(p, "too many values");
		return NULL;
	}
	if (used == 0) {
		struct block *b = malloc(sizeof *b);
		if (!b) {
			fail_memory(p);
			return NULL;
		}
		b->next = d->blocks;
		d->blocks = b;
	}
	d->node_n++;
	struct json *v = &d->blocks->node[used];
	*v = (struct json){ 0 };
	return v;
}

static bool next_is(const struct parser *p, uint8_t c)
{
	return p->at < p->end && *p->at == c;
}

static int word(struct parser *p, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(p->end - p->at) < n || memcmp(p->at, s, n) != 0)
		return fail(p, "not a value");
	p->at += n;
	return 0;
}

/* --- strings --- */

/* The length of the well-formed UTF-8 sequence at s (RFC 3629), or 0. */
static size_t utf8_length(const uint8_t *s, size_t n)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 :
		     s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static const char short_escape[][2] = {
	{ '"', '"' }, { '\\', '\\' }, { 'b', '\b' }, { 't', '\t' },
	{ 'n', '\n' }, { 'f', '\f' }, { 'r', '\r' },
};
#define SHORT_ESCAPES (sizeof short_escape / sizeof *short_escape)

/* The byte that has no other way to be written than `s`, at p->at; -1. */
static int unescape(struct parser *p)
{
	size_t n = (size_t)(p->end - p->at);
	uint8_t c;

	if (n < 2)
		return fail(p, "string does not end");
	for (size_t i = 0; i < SHORT_ESCAPES; i++) {
		if (p->at[1] == (uint8_t)short_escape[i][0]) {
			p->at += 2;
			return (uint8_t)short_escape[i][1];
		}
	}
	if (n < 6 || memcmp(p->at, "\\u00", 4) != 0 ||
	    enc_hex_decode(&c, 1, (struct bytes){ p->at + 4, 2 }) < 0 ||
	    c >= 0x20 || (c >= 8 && c <= 13 && c != 11))
		return fail(p, "escape is not canonical");
	p->at += 6;
	return c;
}

/* Moves over raw characters up to a quote or a backslash. */
static int skip_raw(struct parser *p)
{
	while (p->at < p->end && *p->at != '"' && *p->at != '\\') {
		size_t n = utf8_length(p->at, (size_t)(p->end - p->at));
		if (n == 0)
			return fail(p, "not UTF-8");
		if (*p->at < 0x20)
			return fail(p, "raw control character");
		p->at += n;
	}
	return p->at < p->end ? 0 : fail(p, "string does not end");
}

static void text_add(struct document *d, const void *s, size_t n)
{
	/* never more than text_cap: no escape is shorter than its byte */
	memcpy(d->text + d->text_n, s, n);
	d->text_n += n;
}

static int parse_escaped(struct parser *p, const uint8_t *from,
			 struct bytes *out)
{
	struct document *d = p->doc;

	if (!d->text && !(d->text = malloc(d->text_cap)))
		return fail_memory(p);
	size_t begin = d->text_n;
	text_add(d, from, (size_t)(p->at - from));
	while (*p->at != '"') {
		int c = unescape(p);
		if (c < 0)
			return -1;
		text_add(d, &(uint8_t){ (uint8_t)c }, 1);
		from = p->at;
		if (skip_raw(p) < 0)
			return -1;
		text_add(d, from, (size_t)(p->at - from));
	}
	*out = (struct bytes){ d->text + begin, d->text_n - begin };
	return 0;
}

static int parse_string(struct parser *p, struct bytes *out)
{
	if (!next_is(p, '"'))
		return fail(p, "not a string");
	const uint8_t *from = ++p->at;
	if (skip_raw(p) < 0)
		return -1;
	if (*p->at == '"')
		*out = (struct bytes){ from, (size_t)(p->at - from) };
	else if (parse_escaped(p, from, out) < 0)
		return -1;
	p->at++;
	return 0;
}

/* --- values --- */

static int parse_int(struct parser *p, int64_t *out)
{
	bool minus = next_is(p, '-');
	int64_t v = 0;

	p->at += minus;
	const uint8_t *from = p->at;
	for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
		v = v * 10 + (*p->at - '0');
		if (v > JSON_INT_MAX)
			return fail(p, "integer is too large");
	}
	if (p->at == from)
		return fail(p, "not a value");
	if ((*from == '0' && p->at - from > 1) || (minus && v == 0))
		return fail(p, "integer is not canonical");
	*out = minus ? -v : v;
	return 0;
}

static int parse_value(struct parser *p, struct json *v, int depth);

/* Names in strictly rising byte order: no two are the same. */
static int key_follows(struct parser *p, struct bytes last, struct bytes key,
		       bool first)
{
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] >= 0x80)
			return fail(p, "key is not ASCII");
	if (first)
		return 0;
	size_t n = last.n < key.n ? last.n : key.n;
	int order = n ? memcmp(last.p, key.p, n) : 0;
	if (order > 0 || (order == 0 && last.n >= key.n))
		return fail(p, "keys are not in order");
	return 0;
}

static int parse_member(struct parser *p, struct json *m, struct bytes last,
			bool first)
{
	if (parse_string(p, &m->key) < 0 ||
	    key_follows(p, last, m->key, first) < 0)
		return -1;
	return word(p, ":");
}

/* What stands between the brackets, the closing one included. */
static int parse_items(struct parser *p, struct json *v, int depth)
{
	uint8_t close = v->type == JSON_OBJECT ? '}' : ']';
	struct json **link = &v->child;
	struct bytes last = { 0 };

	if (depth >= DEPTH_MAX)
		return fail(p, "nested too deep");
	p->at++;
	if (next_is(p, close)) {
		p->at++;
		return 0;
	}
	for (;;) {
		struct json *m = node_new(p);
		if (!m)
			return -1;
		if (v->type == JSON_OBJECT &&
		    parse_member(p, m, last, v->count == 0) < 0)
			return -1;
		if (parse_value(p, m, depth + 1) < 0)
			return -1;
		last = m->key;
		*link = m;
		link = &m->next;
		v->count++;
		if (!next_is(p, ','))
			break;
		p->at++;
	}
	return word(p, close == '}' ? "}" : "]");
}

static int parse_scalar(struct parser *p, struct json *v)
{
	switch (*p->at) {
	case '"':
		v->type = JSON_STRING;
		return parse_string(p, &v->str);
	case 'n':
		v->type = JSON_NULL;
		return word(p, "null");
	case 't':
		v->type = JSON_BOOL;
		v->num = 1;
		return word(p, "true");
	case 'f':
		v->type = JSON_BOOL;
		return word(p, "false");
	default:
		v->type = JSON_INT;
		return parse_int(p, &v->num);
	}
}

static int parse_value(struct parser *p, struct json *v, int depth)
{
	const uint8_t *from = p->at;
	int r;

	if (p->at >= p->end)
		return fail(p, "ends too early");
	if (*from == '{' || *from == '[') {
		v->type = *from == '{' ? JSON_OBJECT : JSON_ARRAY;
		r = parse_items(p, v, depth);
	} else {
		r = parse_scalar(p, v);
	}
	v->raw = (struct bytes){ from, (size_t)(p->at - from) };
	return r;
}

struct json *json_parse(struct bytes in, struct err *e)
{
	struct document *d = calloc(1, sizeof *d);
	if (!d) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	if (!in.p)
		in = bytes_str("");	/* an empty buffer has no address */
	d->text_cap = in.n;
	struct parser p = { .doc = d, .at = in.p, .end = in.p + in.n };
	if (parse_value(&p, &d->root, 0) == 0 && p.at != p.end)
		fail(&p, "bytes after the value");
	if (p.why) {
		err_set(e, p.code, "not canonical JSON: %s at byte %zu", p.why,
			(size_t)(p.at - in.p));
		json_free(&d->root);
		return NULL;
	}
	return &d->root;
}

void json_free(struct json *doc)
{
	struct document *d = (struct document *)doc;

	if (!d)
		return;
	while (d->blocks) {
		struct block *b = d->blocks;
		d->blocks = b->next;
		free(b);
	}
	if (d->text)
		explicit_bzero(d->text, d->text_cap);
	free(d->text);
	free(d);
}

/* --- writing --- */

void json_put_sep(struct buf *b)
{
	uint8_t last = b->len ? b->data[b->len - 1] : '{';

	if (last != '{' && last != '[')
		buf_add_byte(b, ',');
}

void json_put_key(struct buf *b, const char *key)
{
	json_put_sep(b);
	json_put_string(b, bytes_str(key));
	buf_add_byte(b, ':');
}

static void put_escape(struct buf *b, uint8_t c)
{
	for (size_t i = 0; i < SHORT_ESCAPES; i++) {
		if (c == (uint8_t)short_escape[i][1]) {
			const char esc[2] = { '\\', short_escape[i][0] };
			buf_add(b, esc, 2);
			return;
		}
	}
	buf_addf(b, "\\u%04x", c);
}

void json_put_string(struct buf *b, struct bytes s)
{
	size_t from = 0;

	buf_add_byte(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(b, s.p + from, i - from);
		put_escape(b, c);
		from = i + 1;
	}
	if (s.n > from)		/* no bytes may be at NULL */
		buf_add(b, s.p + from, s.n - from);
	buf_add_byte(b, '"');
}

void json_put_int(struct buf *b, int64_t v)
{
	buf_addf(b, "%" PRId64, v);
}

void json_put_b64(struct buf *b, const void *p, size_t n)
{
	buf_add_byte(b, '"');
	enc_b64(b, p, n);
	buf_add_byte(b, '"');
}

void json_put_key_string(struct buf *b, const char *key, struct bytes s)
{
	json_put_key(b, key);
	json_put_string(b, s);
}

void json_put_key_int(struct buf *b, const char *key, int64_t v)
{
	json_put_key(b, key);
	json_put_int(b, v);
}

void json_put_key_bool(struct buf *b, const char *key, bool v)
{
	json_put_key(b, key);
	buf_add_str(b, v ? "true" : "false");
}
