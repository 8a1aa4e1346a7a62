/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "runner/broker/http.h"

static int parse_length(struct http_head *h, struct bytes s,
			struct http_fault *f)
{
	int64_t v;
	if (h->has_length)
		return http_refuse(f, 400, "two lengths");
	if (http_number(s, &v) < 0)
		return http_refuse(f, 400, "malformed Content-Length");
	h->has_length = true;
	h->length = (uint64_t)v;
	return 0;
}

static int parse_coding(struct http_head *h, struct bytes v,
			struct http_fault *f)
{
	if (h->chunked)
		return http_refuse(f, 400, "two codings");
	if (!http_is(v, "chunked"))
		return http_refuse(f, 501, "only the chunked coding");
	h->chunked = true;
	return 0;
}

static int read_field(struct http_head *h, struct bytes name, struct bytes v,
		      struct http_fault *f)
{
	if (http_is(name, "content-length"))
		return parse_length(h, v, f);
	if (http_is(name, "transfer-encoding"))
		return parse_coding(h, v, f);
	if (http_is(name, "host"))
		return http_once(&h->host, v, f);
	if (http_is(name, "content-encoding"))
		return http_once(&h->content_encoding, v, f);
	if (http_is(name, "content-type"))
		return http_once(&h->content_type, v, f);
	if (http_is(name, "upgrade"))
		return http_once(&h->upgrade, v, f);
	if (http_is(name, "expect")) {
		h->expect = true;
		return http_is(v, "100-continue") ? 0 :
		       http_refuse(f, 417, "only 100-continue");
	}
	if (http_is(name, "connection") && http_has(v, "close"))
		h->keep_alive = false;
	return 0;
}

static int parse_field(struct http_head *h, struct bytes line,
		       struct http_fault *f)
{
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return http_refuse(f, 400, "folded header line");
	size_t n = http_token_len(line);
	if (n == 0 || n >= line.n || line.p[n] != ':')
		return http_refuse(f, 400, "malformed header field");
	if (h->field_n == HTTP_FIELDS_MAX)
		return http_refuse(f, 431, "too many header fields");
	struct http_field *to = &h->field[h->field_n++];
	to->name = (struct bytes){ line.p, n };
	to->value = http_trim((struct bytes){ line.p + n + 1, line.n - n - 1 });
	return read_field(h, to->name, to->value, f);
}

static int parse_request_line(struct http_head *h, struct bytes line,
			      struct http_fault *f)
{
	size_t n = http_token_len(line);
	if (n == 0 || n > 32 || n >= line.n || line.p[n] != ' ')
		return http_refuse(f, 400, "malformed request line");
	h->method = (struct bytes){ line.p, n };
	struct bytes rest = { line.p + n + 1, line.n - n - 1 };
	const uint8_t *sp = rest.n ? memchr(rest.p, ' ', rest.n) : NULL;
	if (!sp || sp == rest.p)
		return http_refuse(f, 400, "malformed request line");
	h->target = (struct bytes){ rest.p, (size_t)(sp - rest.p) };
	if (!http_is_target(h->target))
		return http_refuse(f, 400, "malformed target");
	return http_version((struct bytes){ sp + 1, rest.n - h->target.n - 1 },
			    &h->http10, f);
}

static int parse_status_line(struct http_head *h, struct bytes line,
			     struct http_fault *f)
{
	if (line.n < 12 || line.p[8] != ' ' ||
	    (line.n > 12 && line.p[12] != ' '))
		return http_refuse(f, 502, "malformed status line");
	for (int i = 9; i < 12; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return http_refuse(f, 502, "malformed status line");
		h->status = h->status * 10 + (line.p[i] - '0');
	}
	if (h->status < 100 || h->status > 599)
		return http_refuse(f, 502, "malformed status line");
	if (line.n > 13)
		h->reason = (struct bytes){ line.p + 13, line.n - 13 };
	return http_version((struct bytes){ line.p, 8 }, &h->http10, f);
}

static int parse_lines(struct http_head *h, const uint8_t *p, size_t size,
		       bool request, struct http_fault *f)
{
	memset(h, 0, offsetof(struct http_head, field));
	memset(&h->field_n, 0, sizeof *h - offsetof(struct http_head, field_n));
	for (size_t at = 0; at + 2 < size;) {
		const uint8_t *lf = memchr(p + at, '\n', size - at);
		if (!lf || (size_t)(lf - p) == at || lf[-1] != '\r')
			return http_refuse(f, 400, "malformed head");
		struct bytes line = { p + at, (size_t)(lf - p) - at - 1 };
		if (line.n == 0)
			return http_refuse(f, 400, "malformed head");
		int rc = at ? parse_field(h, line, f) :
			 request ? parse_request_line(h, line, f) :
			 parse_status_line(h, line, f);
		if (rc < 0)
			return -1;
		if (at == 0)
			h->keep_alive = !h->http10;
		at = (size_t)(lf - p) + 1;
	}
	if (h->chunked && (h->has_length || h->http10))
		return http_refuse(f, 400, "the body's length is given in "
				   "two ways");
	return 0;
}

int http_request_parse(struct http_head *h, const uint8_t *p, size_t size,
		       struct http_fault *f)
{
	if (parse_lines(h, p, size, true, f) < 0)
		return -1;
	/* python's http.client sends a CONNECT without one */
	if (h->host.p ? h->host.n == 0 : !http_is(h->method, "CONNECT"))
		return http_refuse(f, 400, "no Host");
	return 0;
}

int http_answer_parse(struct http_head *h, const uint8_t *p, size_t size,
		      struct http_fault *f)
{
	int rc = parse_lines(h, p, size, false, f);
	if (rc < 0)
		f->status = 502;
	return rc;
}

enum http_framing http_request_framing(const struct http_head *h)
{
	return h->chunked ? HTTP_CHUNKED :
	       h->has_length && h->length ? HTTP_LENGTH : HTTP_NONE;
}

enum http_framing http_answer_framing(const struct http_head *h,
				      struct bytes method)
{
	if (http_is(method, "HEAD") || h->status < 200 || h->status == 204 ||
	    h->status == 304)
		return HTTP_NONE;
	if (h->chunked)
		return HTTP_CHUNKED;
	if (h->has_length)
		return h->length ? HTTP_LENGTH : HTTP_NONE;
	return HTTP_TO_CLOSE;
}

bool http_is_hop(const struct http_head *h, struct bytes name)
{
	static const char *const hop[] = {
		"connection", "keep-alive", "proxy-connection",
		"proxy-authorization", "proxy-authenticate", "te", "trailer",
		"transfer-encoding", "upgrade", "http2-settings", NULL
	};
	for (int i = 0; hop[i]; i++)
		if (http_is(name, hop[i]))
			return true;
	for (unsigned i = 0; i < h->field_n; i++) {
		struct bytes list = h->field[i].value, word;
		if (!http_is(h->field[i].name, "connection"))
			continue;
		while (http_next_word(&list, &word))
			if (word.n == name.n &&
			    !strncasecmp((const char *)word.p,
					 (const char *)name.p, name.n))
				return true;
	}
	return false;
}

/* --- bodies --- */

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER,
       TRAILER_LINE, TRAILER_LF, LAST_LF, DONE };

static int size_byte(struct http_body *b, uint8_t c)
{
	int v = http_hex(c);
	if (b->state == SIZE && v >= 0) {
		b->left = b->left << 4 | (unsigned)v;
		return ++b->digits > 12 ? -1 : 0;
	}
	if (b->digits == 0)
		return -1;
	if (c == '\r') {
		b->state = SIZE_LF;
		return 0;
	}
	if (!b->lenient || ++b->skipped > 256 || (c < 0x20 && c != '\t') ||
	    (b->state == SIZE && c != ';' && c != ' '))
		return -1;
	b->state = EXTENSION;
	return 0;
}

/* A line of the trailer section is kept with its end; the empty one ends. */
static int trailer_byte(struct http_body *b, uint8_t c)
{
	if (b->state == TRAILER && c == '\r') {
		b->state = LAST_LF;
		return 0;
	}
	if (b->trailer.len >= HTTP_TRAILER_MAX || b->trailer.failed ||
	    (c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
		return -1;
	if (c == '\r')
		b->state = TRAILER_LF;
	else
		b->state = TRAILER_LINE;
	if (c != '\r')
		buf_add_byte(&b->trailer, c);
	return 0;
}

static int expect_byte(struct http_body *b, uint8_t c, uint8_t want, int next)
{
	b->state = next;
	return c == want ? 0 : -1;
}

static int frame_byte(struct http_body *b, uint8_t c)
{
	switch (b->state) {
	case SIZE:
	case EXTENSION:
		return size_byte(b, c);
	case SIZE_LF:
		b->digits = b->skipped = 0;
		return expect_byte(b, c, '\n', b->left ? DATA : TRAILER);
	case DATA_CR:
		return expect_byte(b, c, '\r', DATA_LF);
	case DATA_LF:
		return expect_byte(b, c, '\n', SIZE);
	case TRAILER:
	case TRAILER_LINE:
		return trailer_byte(b, c);
	case TRAILER_LF:
		buf_add_str(&b->trailer, "\r\n");
		return expect_byte(b, c, '\n', TRAILER);
	case LAST_LF:
		return expect_byte(b, c, '\n', DONE) < 0 ? -1 : 1;
	default:
		return -1;
	}
}

static int take_run(struct http_body *b, const uint8_t *p, size_t n,
		    size_t *used, struct bytes *out)
{
	out->p = p;
	out->n = b->left < n ? (size_t)b->left : n;
	*used += out->n;
	b->left -= out->n;
	if (b->left)
		return 0;
	if (b->framing == HTTP_CHUNKED) {
		b->state = DATA_CR;
		return 0;
	}
	b->state = DONE;
	return 1;
}

int http_body_read(struct http_body *b, const uint8_t *p, size_t n,
		   size_t *used, struct bytes *out)
{
	*out = (struct bytes){ p, 0 };
	*used = 0;
	if (http_body_done(b))
		return 1;
	if (b->framing == HTTP_TO_CLOSE) {
		out->n = *used = n;
		return 0;
	}
	if (b->framing == HTTP_LENGTH)
		return take_run(b, p, n, used, out);
	while (*used < n) {
		if (b->state == DATA)
			return take_run(b, p + *used, n - *used, used, out);
		int rc = frame_byte(b, p[(*used)++]);
		if (rc)
			return rc;
	}
	return 0;
}

bool http_body_done(const struct http_body *b)
{
	return b->framing == HTTP_NONE || b->state == DONE;
}

void http_body_free(struct http_body *b)
{
	buf_free(&b->trailer);
	*b = (struct http_body){ 0 };
}
