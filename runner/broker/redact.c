/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/http.h"
#include "core/prim.h"
#include "runner/broker/redact.h"
#include "runner/broker/text.h"

enum alphabet { PLAIN, BASE64, HEX };

struct pattern {
	uint8_t *p;		/* locked */
	size_t n;
	enum alphabet alphabet;
};

struct redact_set {
	struct pattern pattern[REDACT_SECRETS_MAX * 5];
	size_t n, secrets;
	uint8_t pairs[65536 / 8];	/* which two bytes may begin a match */
};

/* What came of trying a pattern at a place. */
enum tried { NO, YES, MORE };

struct trial {
	const struct pattern *pat;
	const uint8_t *p;	/* the text from the place on */
	size_t n;
	size_t end;		/* of the match */
	unsigned steps;		/* left */
};

/* --- one character of a text, however it is written --- */

/* The number of up to `max` digits at p: how many there are, and its value. */
static size_t number(const uint8_t *p, size_t n, size_t max, unsigned base,
		     unsigned *value)
{
	size_t i = 0;
	*value = 0;
	for (; i < n && i < max; i++) {
		int d = http_hex(p[i]);
		if (d < 0 || (unsigned)d >= base)
			break;
		*value = *value * base + (unsigned)d;
	}
	return i;
}

/* How long the escape at p is that stands for c: 0: none; SIZE_MAX: p may
 * become one. */
static size_t fixed_escape(const uint8_t *p, size_t n, size_t head,
			   size_t size, uint8_t c)
{
	unsigned v;
	size_t have = number(p + head, n - head, size, 16, &v);
	if (have == size)
		return v == c ? head + size : 0;
	return head + have == n ? SIZE_MAX : 0;
}

/* %25XX: an address within an address. */
static size_t escape_twice(const uint8_t *p, size_t n, uint8_t c)
{
	for (size_t i = 0; i < 3; i++) {
		if (i == n)
			return SIZE_MAX;
		if (p[i] != "%25"[i])
			return 0;
	}
	return fixed_escape(p, n, 3, 2, c);
}

static size_t backslash_escape(const uint8_t *p, size_t n, uint8_t c)
{
	if (n < 2)
		return SIZE_MAX;
	if ((p[1] == 'u' || p[1] == 'x')) {
		size_t e = fixed_escape(p, n, 2, p[1] == 'u' ? 4 : 2, c);
		if (e)
			return e;
	}
	return p[1] == c ? 2 : 0;
}

static size_t entity_escape(const uint8_t *p, size_t n, uint8_t c)
{
	static const struct { const char *word; uint8_t c; } named[] = {
		{ "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' },
		{ "&quot;", '"' }, { "&apos;", '\'' },
	};
	for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
		size_t m = strlen(named[i].word);
		size_t k = m < n ? m : n;
		if (named[i].c == c && !memcmp(p, named[i].word, k))
			return k == m ? m : SIZE_MAX;
	}
	if (n < 2)
		return SIZE_MAX;
	if (p[1] != '#')
		return 0;
	if (n < 3)
		return SIZE_MAX;
	bool hex = (p[2] | 0x20) == 'x';
	size_t head = hex ? 3 : 2;
	unsigned v;
	size_t have = number(p + head, n - head, 7, hex ? 16 : 10, &v);
	if (head + have == n)
		return SIZE_MAX;
	return have && v == c && p[head + have] == ';' ? head + have + 1 : 0;
}

static size_t escape_len(const uint8_t *p, size_t n, uint8_t c)
{
	switch (p[0]) {
	case '%':
		return fixed_escape(p, n, 1, 2, c);
	case '\\':
		return backslash_escape(p, n, c);
	case '&':
		return entity_escape(p, n, c);
	default:
		return 0;
	}
}

/* A line end within base64: its length, 0, or SIZE_MAX. */
static size_t line_end(const uint8_t *p, size_t n)
{
	static const char *const ends[] = { "\r\n", "\n", "\\r\\n", "\\n",
					    "%0D%0A", "%0A" };
	size_t maybe = 0;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		size_t m = strlen(ends[i]), k = m < n ? m : n;
		if (memcmp(p, ends[i], k) != 0)
			continue;
		if (k == m)
			return m;
		maybe = SIZE_MAX;
	}
	return maybe;
}

static bool same_char(enum alphabet a, uint8_t want, uint8_t c)
{
	if (want == c)
		return true;
	if (a == BASE64)
		return (want == '+' && c == '-') || (want == '/' && c == '_');
	return a == HEX && want >= 'a' && (c | 0x20) == want;
}

/* The other spelling of a pattern's character, or itself. */
static uint8_t twin(enum alphabet a, uint8_t c)
{
	if (a == BASE64)
		return c == '+' ? '-' : c == '/' ? '_' : c;
	return a == HEX && c >= 'a' ? (uint8_t)(c & ~0x20) : c;
}

static enum tried match_from(struct trial *t, size_t i, size_t at);

/* One way to read the character at `at`, and the rest behind it. */
static enum tried match_past(struct trial *t, size_t i, size_t at, size_t len)
{
	if (len == SIZE_MAX)
		return MORE;
	return len ? match_from(t, i, at + len) : NO;
}

/* pattern[i..] against the text from `at`.  An escape is tried first; where a
 * character of the pattern can begin an escape too, both ways are.  The steps
 * are bounded: a text that uses them up is taken for a match. */
static enum tried match_from(struct trial *t, size_t i, size_t at)
{
	const struct pattern *pat = t->pat;
	for (; i < pat->n; i++, at++) {
		if (at == t->n)
			return MORE;
		if (t->steps == 0) {
			t->end = at;
			return YES;
		}
		t->steps--;
		const uint8_t *p = t->p + at;
		size_t n = t->n - at;
		uint8_t want = pat->p[i];
		enum tried r = NO;
		if (*p == '%' || *p == '\\' || *p == '&') {
			r = match_past(t, i + 1, at, escape_len(p, n, want));
			if (r == NO && twin(pat->alphabet, want) != want)
				r = match_past(t, i + 1, at, escape_len(p, n,
						twin(pat->alphabet, want)));
			if (r == NO)
				r = match_past(t, i + 1, at,
					       escape_twice(p, n, want));
		}
		if (r == NO && pat->alphabet == BASE64 && i)
			r = match_past(t, i, at, line_end(p, n));
		if (r != NO)
			return r;
		if (!same_char(pat->alphabet, want, *p))
			return NO;
	}
	t->end = at;
	return YES;
}

/* --- the set --- */

struct redact_set *redact_new(void)
{
	struct redact_set *s = prim_secret_alloc(sizeof *s);
	if (s)
		memset(s, 0, sizeof *s);
	return s;
}

void redact_free(struct redact_set *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		prim_secret_free(s->pattern[i].p);
	prim_secret_free(s);
}

static void mark(struct redact_set *s, uint8_t a, uint8_t b)
{
	size_t bit = (size_t)a << 8 | b;
	s->pairs[bit / 8] |= (uint8_t)(1u << bit % 8);
}

static void mark_any_second(struct redact_set *s, uint8_t a)
{
	for (int b = 0; b < 256; b++)
		mark(s, a, (uint8_t)b);
}

/* The pairs that the pattern's first two characters can be. */
static void mark_pattern(struct redact_set *s, const struct pattern *p)
{
	static const char starts[] = "%\\&";
	uint8_t a[2] = { p->p[0], twin(p->alphabet, p->p[0]) };
	uint8_t b[2] = { p->p[1], twin(p->alphabet, p->p[1]) };
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 2; j++)
			mark(s, a[i], b[j]);
		for (const char *c = starts; *c; c++)
			mark(s, a[i], (uint8_t)*c);
		if (p->alphabet == BASE64) {
			mark(s, a[i], '\r');
			mark(s, a[i], '\n');
		}
	}
	for (const char *c = starts; *c; c++)
		mark_any_second(s, (uint8_t)*c);
}

static int add_pattern(struct redact_set *s, struct bytes text,
		       enum alphabet alphabet)
{
	struct pattern *to = &s->pattern[s->n];
	if (text.n < 2)
		return 0;
	to->p = prim_secret_alloc(text.n);
	if (!to->p)
		return -1;
	memcpy(to->p, text.p, text.n);
	to->n = text.n;
	to->alphabet = alphabet;
	s->n++;
	mark_pattern(s, to);
	return 0;
}

/* In a longer text a secret can begin at three places of base64's groups of
 * three bytes: the characters that it alone decides are the same each time. */
static int add_base64(struct redact_set *s, struct bytes secret, size_t shift)
{
	cleanup_buf struct buf in = { 0 }, out = { 0 };
	buf_add(&in, "\0\0", shift);
	buf_add(&in, secret.p, secret.n);
	text_base64(&out, buf_bytes(&in));
	if (buf_failed(&out) || buf_failed(&in))
		return -1;
	size_t from = (8 * shift + 5) / 6, to = 8 * (shift + secret.n) / 6;
	return add_pattern(s, (struct bytes){ out.data + from, to - from },
			   BASE64);
}

int redact_add(struct redact_set *s, struct bytes secret)
{
	cleanup_buf struct buf hex = { 0 };
	if (s->secrets == REDACT_SECRETS_MAX || secret.n < 2)
		return -1;
	s->secrets++;
	if (add_pattern(s, secret, PLAIN) < 0)
		return -1;
	for (size_t shift = 0; shift < 3; shift++)
		if (add_base64(s, secret, shift) < 0)
			return -1;
	for (size_t i = 0; i < secret.n; i++) {
		static const char digits[] = "0123456789abcdef";
		buf_add_byte(&hex, (uint8_t)digits[secret.p[i] >> 4]);
		buf_add_byte(&hex, (uint8_t)digits[secret.p[i] & 15]);
	}
	return buf_failed(&hex) ? -1 : add_pattern(s, buf_bytes(&hex), HEX);
}

/* --- texts --- */

/* The longest match at p.  While a longer one may still come, it is waited
 * for: where a stream is cut makes no difference. */
static enum tried try_all(const struct redact_set *s, const uint8_t *p,
			  size_t n, bool end, size_t *len)
{
	bool more = false;
	*len = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct trial t = { &s->pattern[i], p, n, 0,
				   (unsigned)s->pattern[i].n * 4 + 64 };
		enum tried r = match_from(&t, 0, 0);
		if (r == YES && t.end > *len)
			*len = t.end;
		more |= r == MORE;
	}
	return more && !end ? MORE : *len ? YES : NO;
}

static bool may_begin(const struct redact_set *s, const uint8_t *p, size_t n)
{
	size_t bit = n > 1 ? (size_t)p[0] << 8 | p[1] : 0;
	return n < 2 || s->pairs[bit / 8] & 1u << bit % 8;
}

/* Overwrites in p[0..n); gives how far the text is settled. */
static size_t sweep(const struct redact_set *s, uint8_t *p, size_t n,
		    bool end, size_t *found)
{
	size_t at = 0;
	while (at < n) {
		size_t len;
		if (!may_begin(s, p + at, n - at)) {
			at++;
			continue;
		}
		enum tried r = try_all(s, p + at, n - at, end, &len);
		if (r == MORE)
			return at;
		if (r == YES) {
			memset(p + at, '*', len);
			(*found)++;
		}
		at += r == YES ? len : 1;
	}
	return n;
}

size_t redact_whole(const struct redact_set *s, uint8_t *p, size_t n)
{
	size_t found = 0;
	if (s->n)
		sweep(s, p, n, true, &found);
	return found;
}

void redact_feed(struct redact *r, const struct redact_set *s,
		 struct bytes in, bool end, struct buf *out)
{
	if (s->n == 0) {
		buf_add(out, in.p, in.n);
		return;
	}
	if (r->held.len) {
		buf_add(&r->held, in.p, in.n);
		size_t done = sweep(s, r->held.data, r->held.len, end,
				    &r->found);
		buf_add(out, r->held.data, done);
		buf_consume(&r->held, done);
		out->failed |= r->held.failed;
		return;
	}
	size_t from = out->len;
	buf_add(out, in.p, in.n);
	if (buf_failed(out))
		return;
	size_t done = sweep(s, out->data + from, in.n, end, &r->found);
	buf_add(&r->held, out->data + from + done, in.n - done);
	out->len = from + done;
	out->failed |= r->held.failed;
}

void redact_reset(struct redact *r) { buf_free(&r->held); r->found = 0; }
