/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/http.h"

int http_query_number(struct bytes query, const char *name, int64_t *value)
{
	size_t len = strlen(name);
	while (query.n) {
		const uint8_t *amp = memchr(query.p, '&', query.n);
		struct bytes pair = { query.p,
				      amp ? (size_t)(amp - query.p) : query.n };
		query.p += pair.n + (amp ? 1 : 0);
		query.n -= pair.n + (amp ? 1 : 0);
		if (pair.n > len && pair.p[len] == '=' &&
		    memcmp(pair.p, name, len) == 0)
			return http_number((struct bytes){ pair.p + len + 1,
							   pair.n - len - 1 },
					   value);
	}
	return 1;
}

static enum http_method method_of(struct bytes s)
{
	static const char *const words[] = { "GET", "POST", "PUT" };
	for (int i = 0; i < HTTP_OTHER; i++)
		if (s.n == strlen(words[i]) && !memcmp(s.p, words[i], s.n))
			return (enum http_method)i;
	return HTTP_OTHER;
}

/* method SP origin-form SP HTTP/1.x.  Only the origin form: a relay is no
 * proxy, and CONNECT or an absolute URI means that somebody takes it for
 * one. */
static int parse_request_line(struct http_head *h, struct bytes line,
			      struct http_fault *f)
{
	size_t n = http_token_len(line);
	if (n == 0 || n >= line.n || line.p[n] != ' ')
		return http_refuse(f, 400, "malformed request line");
	h->method = method_of((struct bytes){ line.p, n });
	struct bytes rest = { line.p + n + 1, line.n - n - 1 };
	const uint8_t *sp = memchr(rest.p, ' ', rest.n);
	if (!sp || rest.p[0] != '/')
		return http_refuse(f, 400, "the target must be a path");
	struct bytes target = { rest.p, (size_t)(sp - rest.p) };
	struct bytes version = { sp + 1, rest.n - target.n - 1 };
	if (!http_is_target(target))
		return http_refuse(f, 400, "malformed target");
	if (http_version(version, &h->http10, f) < 0)
		return -1;
	h->keep_alive = !h->http10;
	const uint8_t *q = memchr(target.p, '?', target.n);
	h->path = (struct bytes){ target.p,
				  q ? (size_t)(q - target.p) : target.n };
	if (q)
		h->query = (struct bytes){ q + 1, target.n - h->path.n - 1 };
	return 0;
}

struct framing {
	struct bytes host, length, coding, expect;
};

static int read_field(struct http_head *h, struct framing *fr,
		      struct bytes name, struct bytes v, struct http_fault *f)
{
	if (http_is(name, "host"))
		return http_once(&fr->host, v, f);
	if (http_is(name, "content-length"))
		return http_once(&fr->length, v, f);
	if (http_is(name, "transfer-encoding"))
		return http_once(&fr->coding, v, f);
	if (http_is(name, "expect"))
		return http_once(&fr->expect, v, f);
	if (http_is(name, "authorization"))
		return http_once(&h->authorization, v, f);
	if (http_is(name, "last-event-id"))
		return http_once(&h->last_event_id, v, f);
	if (http_is(name, "airlox-target"))
		return http_once(&h->target, v, f);
	if (http_is(name, "airlox-refs"))
		return http_once(&h->refs, v, f);
	if (http_is(name, "x-forwarded-for"))
		h->forwarded = v;
	if (http_is(name, "connection"))
		h->keep_alive &= !http_has(v, "close");
	return 0;
}

static int parse_field(struct http_head *h, struct framing *fr,
		       struct bytes line, struct http_fault *f)
{
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return http_refuse(f, 400, "folded header line");
	size_t n = http_token_len(line);
	if (n == 0 || n >= line.n || line.p[n] != ':')
		return http_refuse(f, 400, "malformed header field");
	struct bytes v = { line.p + n + 1, line.n - n - 1 };
	/* spaces only: parsers differ on tabs, so they stay, and spoil what
	 * they stand beside */
	while (v.n && *v.p == ' ')
		v.p++, v.n--;
	while (v.n && v.p[v.n - 1] == ' ')
		v.n--;
	return read_field(h, fr, (struct bytes){ line.p, n }, v, f);
}

/* name or [IPv6], and maybe a port.  What else a proxy might route by is not
 * guessed at. */
static bool is_host(struct bytes s)
{
	size_t i = 0;
	if (s.n && s.p[0] == '[') {
		while (i < s.n && s.p[i] != ']')
			if (!strchr("[0123456789abcdefABCDEF:.", s.p[i++]))
				return false;
		if (i++ == s.n)
			return false;
	} else {
		for (; i < s.n && s.p[i] != ':'; i++)
			if (!http_is_token(s.p[i]) ||
			    strchr("#|^`", s.p[i]) ||
			    (s.p[i] == '.' && (i == 0 || s.p[i - 1] == '.')))
				return false;
	}
	if (i == 0 || (i < s.n && s.p[i++] != ':'))
		return false;
	for (; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return true;
}

static int check_framing(struct http_head *h, const struct framing *fr,
			 struct http_fault *f)
{
	if (!fr->host.p || fr->host.n == 0)
		return http_refuse(f, 400, "no Host");
	if (!is_host(fr->host))
		return http_refuse(f, 400, "malformed Host");
	if (fr->coding.p) {
		if (fr->length.p || h->http10)
			return http_refuse(f, 400, "the body's length is given "
				      "in two ways");
		if (!http_is(fr->coding, "chunked"))
			return http_refuse(f, 501, "only the chunked coding");
		h->chunked = true;
	}
	if (fr->length.p) {
		int64_t v;
		if (http_number(fr->length, &v) < 0)
			return http_refuse(f, 400, "malformed Content-Length");
		h->has_length = true;
		h->length = (uint64_t)v;
	}
	if (fr->expect.p) {
		if (!http_is(fr->expect, "100-continue"))
			return http_refuse(f, 417, "only 100-continue");
		h->expect = !h->http10;
	}
	return 0;
}

int http_head_parse(struct http_head *h, const uint8_t *p, size_t size,
		    struct http_fault *f)
{
	struct framing fr = { 0 };
	unsigned fields = 0;
	*h = (struct http_head){ .size = size };
	for (size_t at = 0; at + 2 < size;) {
		const uint8_t *lf = memchr(p + at, '\n', size - at);
		if (!lf || lf == p + at)
			return http_refuse(f, 400, "malformed head");
		struct bytes line = { p + at, (size_t)(lf - p) - at - 1 };
		if (at == 0) {
			if (parse_request_line(h, line, f) < 0)
				return -1;
		} else {
			if (++fields > HTTP_FIELDS_MAX)
				return http_refuse(f, 431, "too many header fields");
			if (line.n == 0 || parse_field(h, &fr, line, f) < 0)
				return line.n ? -1 :
				       http_refuse(f, 400, "malformed head");
		}
		at = (size_t)(lf - p) + 1;
	}
	return check_framing(h, &fr, f);
}

enum { CHUNK_SIZE, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_CR, CHUNK_LF, LAST_CR,
       LAST_LF, CHUNKS_DONE };

/* One byte of the framing. */
static int chunk_frame(struct http_chunks *c, uint8_t b)
{
	int v;
	switch (c->state) {
	case CHUNK_SIZE:
		v = http_hex(b);
		if (v >= 0 && c->digits < 12) {
			c->left = c->left << 4 | (unsigned)v;
			c->digits++;
			return 0;
		}
		if (b != '\r' || c->digits == 0)
			return -1;
		c->state = CHUNK_SIZE_LF;
		return 0;
	case CHUNK_SIZE_LF:
		c->state = c->left ? CHUNK_DATA : LAST_CR;
		c->digits = 0;
		return b == '\n' ? 0 : -1;
	case CHUNK_CR:
	case LAST_CR:
		c->state++;
		return b == '\r' ? 0 : -1;
	case CHUNK_LF:
		c->state = CHUNK_SIZE;
		return b == '\n' ? 0 : -1;
	case LAST_LF:
		c->state = CHUNKS_DONE;
		return b == '\n' ? 1 : -1;
	default:
		return -1;
	}
}

int http_chunks_read(struct http_chunks *c, const uint8_t *p, size_t n,
		     size_t *used, struct bytes *out)
{
	*out = (struct bytes){ p, 0 };
	*used = 0;
	while (*used < n) {
		if (c->state == CHUNK_DATA) {
			size_t room = n - *used;
			out->p = p + *used;
			out->n = c->left < room ? (size_t)c->left : room;
			*used += out->n;
			c->left -= out->n;
			if (c->left == 0)
				c->state = CHUNK_CR;
			return 0;
		}
		int rc = chunk_frame(c, p[(*used)++]);
		if (rc)
			return rc;
	}
	return 0;
}
