/* SPDX-License-Identifier: MIT */
#include "runner/agent/wire.h"

#include <string.h>

#include "core/clear.h"

#define DEPTH_MAX 64
#define VALUES_MAX (1 << 18)
#define INT_MOST (INT64_C(1) << 53)
#define BLOCK 64

struct block {
	struct block *next;
	struct wire value[BLOCK];
};

struct document {
	struct wire root;	/* first: wire_free gets its address */
	struct block *blocks;
	size_t n;
	uint8_t *text;		/* decoded strings, no longer than the input */
	size_t text_n;
};

struct reader {
	struct document *doc;
	const uint8_t *at, *end;
	size_t room;		/* bytes of the input */
	const char *why;
};

static int fail(struct reader *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return -1;
}

static struct wire *value_new(struct reader *r)
{
	struct document *d = r->doc;
	if (d->n >= VALUES_MAX) {
		fail(r, "too many values");
		return NULL;
	}
	if (d->n % BLOCK == 0) {
		struct block *b = malloc(sizeof *b);
		if (!b) {
			fail(r, "out of memory");
			return NULL;
		}
		b->next = d->blocks;
		d->blocks = b;
	}
	struct wire *v = &d->blocks->value[d->n++ % BLOCK];
	*v = (struct wire){ 0 };
	return v;
}

static void skip_space(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' ||
				  *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool take(struct reader *r, uint8_t c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static int word(struct reader *r, const char *s)
{
	size_t n = strlen(s);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, s, n) != 0)
		return fail(r, "not a value");
	r->at += n;
	return 0;
}

/* --- strings --- */

static int hex4(struct reader *r, uint32_t *c)
{
	*c = 0;
	if (r->end - r->at < 4)
		return fail(r, "a string does not end");
	for (int i = 0; i < 4; i++) {
		uint8_t x = *r->at++;
		uint32_t d = x >= '0' && x <= '9' ? x - '0' + 0u :
			     x >= 'a' && x <= 'f' ? x - 'a' + 10u :
			     x >= 'A' && x <= 'F' ? x - 'A' + 10u : 16;
		if (d > 15)
			return fail(r, "not an escape");
		*c = *c << 4 | d;
	}
	return 0;
}

static void put_char(struct document *d, uint32_t c)
{
	uint8_t *to = d->text + d->text_n;
	int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (int i = n - 1; i > 0; i--, c >>= 6)
		to[i] = (uint8_t)(0x80 | (c & 0x3f));
	to[0] = (uint8_t)(lead[n] | c);
	d->text_n += (size_t)n;
}

/* After \u: half of a pair is no character. */
static int take_unicode(struct reader *r)
{
	uint32_t c, low;
	if (hex4(r, &c) < 0)
		return -1;
	if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 &&
	    r->at[0] == '\\' && r->at[1] == 'u') {
		const uint8_t *back = r->at;
		r->at += 2;
		if (hex4(r, &low) < 0)
			return -1;
		if (low >= 0xdc00 && low < 0xe000)
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		else
			r->at = back;
	}
	put_char(r->doc, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return 0;
}

static int take_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (r->at == r->end)
		return fail(r, "a string does not end");
	uint8_t c = *r->at++;
	if (c == 'u')
		return take_unicode(r);
	const char *s = c ? strchr(from, c) : NULL;
	if (!s)
		return fail(r, "not an escape");
	put_char(r->doc, (uint8_t)to[s - from]);
	return 0;
}

/* What is decoded is never longer than what it was written as, but for what is
 * no UTF-8, which is refused as a whole before. */
static int take_string(struct reader *r, struct bytes *out)
{
	struct document *d = r->doc;
	if (!take(r, '"'))
		return fail(r, "not a string");
	if (!d->text && !(d->text = malloc(r->room)))
		return fail(r, "out of memory");
	size_t begin = d->text_n;
	for (;;) {
		if (r->at == r->end)
			return fail(r, "a string does not end");
		uint8_t c = *r->at++;
		if (c == '"')
			break;
		if (c < 0x20)
			return fail(r, "a raw control character");
		if (c != '\\')
			d->text[d->text_n++] = c;
		else if (take_escape(r) < 0)
			return -1;
	}
	*out = (struct bytes){ d->text + begin, d->text_n - begin };
	return 0;
}

/* --- values --- */

static size_t digits(struct reader *r)
{
	const uint8_t *from = r->at;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t)(r->at - from);
}

static int take_number(struct reader *r)
{
	take(r, '-');
	const uint8_t *from = r->at;
	size_t n = digits(r);
	if (n == 0 || (n > 1 && *from == '0'))
		return fail(r, "not a value");
	if (take(r, '.') && digits(r) == 0)
		return fail(r, "not a number");
	if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
		r->at++;
		if (!take(r, '+'))
			take(r, '-');
		if (digits(r) == 0)
			return fail(r, "not a number");
	}
	return 0;
}

static int take_value(struct reader *r, struct wire *v, int depth);

static int take_item(struct reader *r, struct wire *v, struct wire ***link,
		     int depth)
{
	struct wire *m = value_new(r);
	if (!m)
		return -1;
	skip_space(r);
	if (v->type == WIRE_MAP) {
		if (take_string(r, &m->key) < 0)
			return -1;
		skip_space(r);
		if (!take(r, ':'))
			return fail(r, "no colon after a key");
	}
	if (take_value(r, m, depth + 1) < 0)
		return -1;
	**link = m;
	*link = &m->next;
	skip_space(r);
	return 0;
}

static int take_items(struct reader *r, struct wire *v, int depth)
{
	const uint8_t close = v->type == WIRE_MAP ? '}' : ']';
	struct wire **link = &v->child;
	if (depth >= DEPTH_MAX)
		return fail(r, "nested too deep");
	r->at++;
	skip_space(r);
	if (take(r, close))
		return 0;
	do {
		if (take_item(r, v, &link, depth) < 0)
			return -1;
	} while (take(r, ','));
	return take(r, close) ? 0 : fail(r, "a list or map does not end");
}

static int take_scalar(struct reader *r, struct wire *v)
{
	switch (*r->at) {
	case '"':
		v->type = WIRE_TEXT;
		return take_string(r, &v->text);
	case 'n':
		return word(r, "null");
	case 't':
	case 'f':
		v->type = WIRE_BOOL;
		v->truth = *r->at == 't';
		return word(r, v->truth ? "true" : "false");
	default:
		v->type = WIRE_NUMBER;
		return take_number(r);
	}
}

static int take_value(struct reader *r, struct wire *v, int depth)
{
	skip_space(r);
	if (r->at == r->end)
		return fail(r, "ends too early");
	const uint8_t *from = r->at;
	bool many = *from == '{' || *from == '[';
	if (many)
		v->type = *from == '{' ? WIRE_MAP : WIRE_LIST;
	int rc = many ? take_items(r, v, depth) : take_scalar(r, v);
	v->raw = (struct bytes){ from, (size_t)(r->at - from) };
	return rc;
}

struct wire *wire_read(struct bytes in, struct err *e)
{
	struct document *d = calloc(1, sizeof *d);
	if (!d) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	struct reader r = { .doc = d, .at = in.p, .end = in.p + in.n,
			    .room = in.n };
	if (in.n == 0)
		fail(&r, "nothing");
	else if (!clear_utf8(in))
		fail(&r, "no UTF-8");
	else if (take_value(&r, &d->root, 0) == 0) {
		skip_space(&r);
		if (r.at != r.end)
			fail(&r, "bytes after the value");
	}
	if (!r.why)
		return &d->root;
	err_set(e, ERR_INVALID, "no JSON: %s at byte %zu", r.why,
		(size_t)(r.at - in.p));
	wire_free(&d->root);
	return NULL;
}

void wire_free(struct wire *root)
{
	struct document *d = (struct document *)root;
	if (!d)
		return;
	while (d->blocks) {
		struct block *b = d->blocks;
		d->blocks = b->next;
		free(b);
	}
	free(d->text);
	free(d);
}

/* --- looking --- */

const struct wire *wire_get(const struct wire *map, const char *key)
{
	if (!map || map->type != WIRE_MAP)
		return NULL;
	for (const struct wire *v = map->child; v; v = v->next)
		if (bytes_eq(v->key, bytes_str(key)))
			return v;
	return NULL;
}

struct bytes wire_text(const struct wire *v)
{
	return v && v->type == WIRE_TEXT ? v->text : bytes_str("");
}

bool wire_is(const struct wire *v, const char *text)
{
	return v && v->type == WIRE_TEXT && bytes_eq(v->text, bytes_str(text));
}

bool wire_int(const struct wire *v, int64_t *n)
{
	if (!v || v->type != WIRE_NUMBER)
		return false;
	bool minus = v->raw.p[0] == '-';
	int64_t sum = 0;
	for (size_t i = minus; i < v->raw.n; i++) {
		uint8_t c = v->raw.p[i];
		if (c < '0' || c > '9' || sum > INT_MOST / 10)
			return false;
		sum = sum * 10 + (c - '0');
	}
	*n = minus ? -sum : sum;
	return sum <= INT_MOST;
}
