/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "relay/http.h"

static int refuse(struct http_fault *f, int status, const char *why)
{
	*f = (struct http_fault){ status, why };
	return -1;
}

long http_head_end(const uint8_t *p, size_t n, size_t *seen,
		   struct http_fault *f)
{
	for (size_t i = *seen; i < n; i++) {
		if (i >= HTTP_HEAD_MAX)
			return refuse(f, 431, "the request head is too large");
		uint8_t c = p[i];
		bool after_cr = i > 0 && p[i - 1] == '\r';
		if (c == '\n') {
			if (!after_cr)
				return refuse(f, 400, "bare line feed");
			if (i < 2)
				return refuse(f, 400, "empty request line");
			if (i >= 3 && p[i - 2] == '\n')
				return (long)i + 1;
		} else if (after_cr) {
			return refuse(f, 400, "bare carriage return");
		} else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
			return refuse(f, 400, "control byte in the head");
		}
		*seen = i + 1;
	}
	return 0;
}

/* RFC 9110: tchar. */
static bool is_token_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is(struct bytes s, const char *word)
{
	return s.n == strlen(word) &&
	       strncasecmp((const char *)s.p, word, s.n) == 0;
}

static size_t token_len(struct bytes s)
{
	size_t i = 0;
	while (i < s.n && is_token_byte(s.p[i]))
		i++;
	return i;
}

int http_number(struct bytes s, int64_t *value)
{
	int64_t v = 0;
	if (s.n == 0 || s.n > 16)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -1;
		v = v * 10 + (s.p[i] - '0');
	}
	if (v > (INT64_C(1) << 53) - 1)
		return -1;
	*value = v;
	return 0;
}

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
	size_t n = token_len(line);
	if (n == 0 || n >= line.n || line.p[n] != ' ')
		return refuse(f, 400, "malformed request line");
	h->method = method_of((struct bytes){ line.p, n });
	struct bytes rest = { line.p + n + 1, line.n - n - 1 };
	const uint8_t *sp = memchr(rest.p, ' ', rest.n);
	if (!sp || rest.p[0] != '/')
		return refuse(f, 400, "the target must be a path");
	struct bytes target = { rest.p, (size_t)(sp - rest.p) };
	struct bytes version = { sp + 1, rest.n - target.n - 1 };
	for (size_t i = 0; i < target.n; i++)
		if (target.p[i] <= 0x20 || target.p[i] >= 0x7f ||
		    target.p[i] == '#')
			return refuse(f, 400, "malformed target");
	if (version.n != 8 || memcmp(version.p, "HTTP/", 5) != 0)
		return refuse(f, 400, "malformed request line");
	if (memcmp(version.p + 5, "1.", 2) != 0 ||
	    (version.p[7] != '0' && version.p[7] != '1'))
		return refuse(f, 505, "only HTTP/1.1 is spoken here");
	h->http10 = version.p[7] == '0';
	h->keep_alive = !h->http10;
	const uint8_t *q = memchr(target.p, '?', target.n);
	h->path = (struct bytes){ target.p,
				  q ? (size_t)(q - target.p) : target.n };
	if (q)
		h->query = (struct bytes){ q + 1, target.n - h->path.n - 1 };
	return 0;
}

static int once(struct bytes *slot, struct bytes value, struct http_fault *f)
{
	if (slot->p)
		return refuse(f, 400, "a header field is given twice");
	*slot = value;
	return 0;
}

static void read_connection(struct http_head *h, struct bytes v)
{
	while (v.n) {
		const uint8_t *comma = memchr(v.p, ',', v.n);
		struct bytes w = { v.p, comma ? (size_t)(comma - v.p) : v.n };
		v.n -= w.n + (comma ? 1 : 0);
		v.p += w.n + (comma ? 1 : 0);
		while (w.n && (*w.p == ' ' || *w.p == '\t'))
			w.p++, w.n--;
		while (w.n && (w.p[w.n - 1] == ' ' || w.p[w.n - 1] == '\t'))
			w.n--;
		if (is(w, "close"))
			h->keep_alive = false;
	}
}

struct framing {
	struct bytes host, length, coding, expect;
};

static int read_field(struct http_head *h, struct framing *fr,
		      struct bytes name, struct bytes v, struct http_fault *f)
{
	if (is(name, "host"))
		return once(&fr->host, v, f);
	if (is(name, "content-length"))
		return once(&fr->length, v, f);
	if (is(name, "transfer-encoding"))
		return once(&fr->coding, v, f);
	if (is(name, "expect"))
		return once(&fr->expect, v, f);
	if (is(name, "authorization"))
		return once(&h->authorization, v, f);
	if (is(name, "last-event-id"))
		return once(&h->last_event_id, v, f);
	if (is(name, "airlox-target"))
		return once(&h->target, v, f);
	if (is(name, "airlox-refs"))
		return once(&h->refs, v, f);
	if (is(name, "x-forwarded-for"))
		h->forwarded = v;
	if (is(name, "connection"))
		read_connection(h, v);
	return 0;
}

static int parse_field(struct http_head *h, struct framing *fr,
		       struct bytes line, struct http_fault *f)
{
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return refuse(f, 400, "folded header line");
	size_t n = token_len(line);
	if (n == 0 || n >= line.n || line.p[n] != ':')
		return refuse(f, 400, "malformed header field");
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
			if (!is_token_byte(s.p[i]) ||
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
		return refuse(f, 400, "no Host");
	if (!is_host(fr->host))
		return refuse(f, 400, "malformed Host");
	if (fr->coding.p) {
		if (fr->length.p || h->http10)
			return refuse(f, 400, "the body's length is given "
				      "in two ways");
		if (!is(fr->coding, "chunked"))
			return refuse(f, 501, "only the chunked coding");
		h->chunked = true;
	}
	if (fr->length.p) {
		int64_t v;
		if (http_number(fr->length, &v) < 0)
			return refuse(f, 400, "malformed Content-Length");
		h->has_length = true;
		h->length = (uint64_t)v;
	}
	if (fr->expect.p) {
		if (!is(fr->expect, "100-continue"))
			return refuse(f, 417, "only 100-continue");
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
			return refuse(f, 400, "malformed head");
		struct bytes line = { p + at, (size_t)(lf - p) - at - 1 };
		if (at == 0) {
			if (parse_request_line(h, line, f) < 0)
				return -1;
		} else {
			if (++fields > HTTP_FIELDS_MAX)
				return refuse(f, 431, "too many header fields");
			if (line.n == 0 || parse_field(h, &fr, line, f) < 0)
				return line.n ? -1 :
				       refuse(f, 400, "malformed head");
		}
		at = (size_t)(lf - p) + 1;
	}
	return check_framing(h, &fr, f);
}

enum { CHUNK_SIZE, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_CR, CHUNK_LF, LAST_CR,
       LAST_LF, CHUNKS_DONE };

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

/* One byte of the framing. */
static int chunk_frame(struct http_chunks *c, uint8_t b)
{
	int v;
	switch (c->state) {
	case CHUNK_SIZE:
		v = hex_value(b);
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

const char *http_reason(int status)
{
	static const struct { int status; const char *word; } t[] = {
		{ 100, "Continue" }, { 200, "OK" }, { 201, "Created" },
		{ 204, "No Content" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" },
		{ 404, "Not Found" }, { 405, "Method Not Allowed" },
		{ 408, "Request Timeout" }, { 409, "Conflict" },
		{ 410, "Gone" }, { 411, "Length Required" },
		{ 413, "Content Too Large" },
		{ 417, "Expectation Failed" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
		if (t[i].status == status)
			return t[i].word;
	return "Error";
}
