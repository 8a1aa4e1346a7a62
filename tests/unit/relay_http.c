/* SPDX-License-Identifier: MIT
 *
 * The relay's HTTP parser: what is taken, and the table of hostile heads
 * that are refused, each also when it arrives a byte at a time. */
#include "tests/unit/tap.h"
#include "relay/http.c"

#define H "Host: x\r\n"

static const struct {
	const char *what, *head;
	int status;	/* 0: accepted */
} heads[] = {
	{ "plain GET", "GET /v1/health HTTP/1.1\r\n" H "\r\n", 0 },
	{ "length", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n", 0 },
	{ "chunked", "POST / HTTP/1.1\r\n" H
	  "Transfer-Encoding: Chunked\r\n\r\n", 0 },
	{ "no space after the colon", "GET / HTTP/1.1\r\nHost:x\r\n\r\n", 0 },
	{ "1.0 with a host", "GET / HTTP/1.0\r\n" H "\r\n", 0 },
	{ "CL with TE", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n", 400 },
	{ "TE with CL", "POST / HTTP/1.1\r\n" H
	  "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400 },
	{ "two different CL", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n"
	  "Content-Length: 6\r\n\r\n", 400 },
	{ "two equal CL", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n"
	  "content-length: 5\r\n\r\n", 400 },
	{ "CL list", "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n",
	  400 },
	{ "CL +5", "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n", 400 },
	{ "CL 0x5", "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n",
	  400 },
	{ "CL -1", "POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", 400 },
	{ "CL empty", "POST / HTTP/1.1\r\n" H "Content-Length: \r\n\r\n", 400 },
	{ "CL of 20 digits", "POST / HTTP/1.1\r\n" H
	  "Content-Length: 18446744073709551617\r\n\r\n", 400 },
	{ "CL above 2^53-1", "POST / HTTP/1.1\r\n" H
	  "Content-Length: 9007199254740992\r\n\r\n", 400 },
	{ "TE gzip", "POST / HTTP/1.1\r\n" H
	  "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
	{ "TE twice", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n", 400 },
	{ "TE xchunked", "POST / HTTP/1.1\r\n" H
	  "Transfer-Encoding: xchunked\r\n\r\n", 501 },
	{ "TE in 1.0", "POST / HTTP/1.0\r\n" H
	  "Transfer-Encoding: chunked\r\n\r\n", 400 },
	{ "bare LF lines", "GET / HTTP/1.1\nHost: x\n\n", 400 },
	{ "bare LF in a field", "GET / HTTP/1.1\r\n" H "A: b\nC: d\r\n\r\n",
	  400 },
	{ "bare CR", "GET / HTTP/1.1\r\n" H "A: b\rC: d\r\n\r\n", 400 },
	{ "space before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400 },
	{ "folded line", "GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", 400 },
	{ "folded first line", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400 },
	{ "no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 400 },
	{ "no field at all", "GET / HTTP/1.1\r\n\r\n", 400 },
	{ "empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400 },
	{ "two Hosts", "GET / HTTP/1.1\r\n" H "host: x\r\n\r\n", 400 },
	{ "control byte", "GET / HTTP/1.1\r\n" H "A: \x01\r\n\r\n", 400 },
	{ "DEL", "GET / HTTP/1.1\r\n" H "A: \x7f\r\n\r\n", 400 },
	{ "empty name", "GET / HTTP/1.1\r\n" H ": b\r\n\r\n", 400 },
	{ "no colon", "GET / HTTP/1.1\r\n" H "foo\r\n\r\n", 400 },
	{ "leading empty line", "\r\nGET / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "CONNECT", "CONNECT a:443 HTTP/1.1\r\n" H "\r\n", 400 },
	{ "absolute form", "GET http://a/ HTTP/1.1\r\n" H "\r\n", 400 },
	{ "asterisk form", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 400 },
	{ "two spaces", "GET  / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "space in the target", "GET /a b HTTP/1.1\r\n" H "\r\n", 400 },
	{ "tab in the line", "GET\t/ HTTP/1.1\r\n" H "\r\n", 400 },
	{ "fragment", "GET /#k=secret HTTP/1.1\r\n" H "\r\n", 400 },
	{ "high byte in the target", "GET /\xff HTTP/1.1\r\n" H "\r\n", 400 },
	{ "HTTP/0.9", "GET /\r\n\r\n", 400 },
	{ "HTTP/2", "GET / HTTP/2.0\r\n" H "\r\n", 505 },
	{ "HTTP/1.10", "GET / HTTP/1.10\r\n" H "\r\n", 400 },
	{ "lower case version", "GET / http/1.1\r\n" H "\r\n", 400 },
	{ "other expectation", "GET / HTTP/1.1\r\n" H "Expect: x\r\n\r\n",
	  417 },
	{ "two tokens", "GET / HTTP/1.1\r\n" H "Authorization: Bearer a\r\n"
	  "Authorization: Bearer b\r\n\r\n", 400 },
};

static int verdict(const char *s, size_t n, size_t step, struct http_head *h)
{
	struct http_fault f = { 0 };
	size_t seen = 0;
	long size = 0;
	for (size_t have = step; !size; have += step) {
		if (have > n)
			have = n;
		size = http_head_end((const uint8_t *)s, have, HTTP_HEAD_MAX,
				     &seen, &f);
		if (have == n && !size)
			return -1;
	}
	if (size > 0 && !http_head_parse(h, (const uint8_t *)s, (size_t)size,
					 &f))
		return 0;
	return f.status;
}

static void test_heads(void)
{
	struct http_head h;
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		size_t n = strlen(heads[i].head);
		is_int(verdict(heads[i].head, n, n, &h), heads[i].status, "%s",
		       heads[i].what);
		is_int(verdict(heads[i].head, n, 1, &h), heads[i].status,
		       "%s, byte by byte", heads[i].what);
	}
	static const char nul[] = "GET / HTTP/1.1\r\nHost: \0x\r\n\r\n";
	is_int(verdict(nul, sizeof nul - 1, 1, &h), 400, "NUL byte");
}

static void test_fields(void)
{
	static const char s[] = "POST /a/b?after=17&x HTTP/1.1\r\nhOsT: x\r\n"
		"Content-Length: 42\r\nExpect: 100-Continue\r\n"
		"Connection: foo , Close\r\nAuthorization:  Bearer t \r\n\r\n";
	struct http_head h;
	int64_t v = -1;
	is_int(verdict(s, sizeof s - 1, 1, &h), 0, "a full head");
	is_int(h.method, HTTP_POST, "its method");
	ok(bytes_eq(h.path, bytes_str("/a/b")), "its path");
	is_int(http_query_number(h.query, "after", &v), 0, "a number");
	is_int(v, 17, "its value");
	is_int(http_query_number(h.query, "before", &v), 1, "not there");
	is_int(http_query_number(bytes_str("after=-1"), "after", &v), -1,
	       "a negative number");
	is_int((int)h.length, 42, "its length");
	ok(h.expect && !h.keep_alive, "expectation and close");
	ok(bytes_eq(h.authorization, bytes_str("Bearer t")), "trimmed value");
	is_int((long)h.size, (long)sizeof s - 1, "its size");
}

static void test_caps(void)
{
	struct buf b = { 0 };
	struct http_head h;
	buf_add_str(&b, "GET / HTTP/1.1\r\n" H);
	for (int i = 0; i < HTTP_FIELDS_MAX - 1; i++)
		buf_addf(&b, "A%d: b\r\n", i);
	size_t full = b.len;
	buf_add_str(&b, "\r\n");
	is_int(verdict((char *)b.data, b.len, b.len, &h), 0, "64 fields");
	b.len = full;
	buf_add_str(&b, "Z: b\r\n\r\n");
	is_int(verdict((char *)b.data, b.len, b.len, &h), 431, "65 fields");
	buf_reset(&b);
	buf_add_str(&b, "GET / HTTP/1.1\r\n" H "A: ");
	while (b.len < HTTP_HEAD_MAX + 1)
		buf_add_byte(&b, 'a');
	is_int(verdict((char *)b.data, b.len, 512, &h), 431, "8 KiB and more");
	buf_free(&b);
}

/* The body, "-" when it is malformed, "?" when it has not ended. */
static const char *unchunk(const char *s, size_t step, size_t *taken)
{
	static char out[64];
	struct http_chunks c = { 0 };
	size_t n = strlen(s), at = 0, len = 0, used;
	struct bytes run;
	while (at < n) {
		size_t room = n - at < step ? n - at : step;
		int rc = http_chunks_read(&c, (const uint8_t *)s + at, room,
					  &used, &run);
		if (rc < 0)
			return "-";
		memcpy(out + len, run.p, run.n);
		len += run.n;
		at += used;
		if (rc == 1) {
			out[len] = 0;
			*taken = at;
			return out;
		}
	}
	return "?";
}

static void test_chunks(void)
{
	static const struct { const char *in, *out; } t[] = {
		{ "5\r\nhello\r\n0\r\n\r\n", "hello" },
		{ "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n",
		  "hello0123456789" },
		{ "0\r\n\r\n", "" }, { "000\r\n\r\n", "" },
		{ "5\r\nhel", "?" }, { "", "?" },
		{ "\r\n", "-" }, { "5;a=b\r\nhello\r\n0\r\n\r\n", "-" },
		{ "5 \r\nhello\r\n0\r\n\r\n", "-" },
		{ "5\nhello\r\n0\r\n\r\n", "-" }, { "+5\r\nhello", "-" },
		{ "0x5\r\nhello", "-" }, { "5\r\nhelloXX0\r\n\r\n", "-" },
		{ "5\r\nhello\n0\r\n\r\n", "-" },
		{ "0\r\nTrailer: x\r\n\r\n", "-" },
		{ "fffffffffffff\r\n", "-" }, { "-1\r\n", "-" },
	};
	size_t taken = 0;
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		is_str(unchunk(t[i].in, 99, &taken), t[i].out, "chunks %zu",
		       i);
		is_str(unchunk(t[i].in, 1, &taken), t[i].out,
		       "chunks %zu, byte by byte", i);
	}
	unchunk("1\r\na\r\n0\r\n\r\nGET /", 99, &taken);
	is_int((long)taken, 11, "the next request is left alone");
}

int main(void)
{
	test_heads();
	test_fields();
	test_caps();
	test_chunks();
	return done_testing();
}
