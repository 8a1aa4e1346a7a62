/* SPDX-License-Identifier: MIT
 *
 * What the broker reads and judges: heads, bodies, hellos, addresses. */
#include <arpa/inet.h>
#include <stdio.h>

#include "runner/broker/addr.h"
#include "runner/broker/hello.h"
#include "runner/broker/http.h"
#include "tests/unit/tap.h"

/* --- heads --- */

#define GET "GET / HTTP/1.1\r\n"
static const struct { const char *text; int status; } requests[] = {
	{ GET "Host: a\r\n\r\n", 0 },
	{ "CONNECT a:443 HTTP/1.0\r\n\r\n", 0 },
	{ "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n",
	  0 },
	{ GET "\r\n", 400 },
	{ GET "Host:\r\n\r\n", 400 },
	{ GET "Host: a\r\nHost: a\r\n\r\n", 400 },
	{ GET "Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	  400 },
	{ GET "Host: a\r\nContent-Length: 1, 1\r\n\r\n", 400 },
	{ GET "Host: a\r\nContent-Length: +1\r\n\r\n", 400 },
	{ GET "Host: a\r\nContent-Length: 0x1\r\n\r\n", 400 },
	{ GET "Host: a\r\nContent-Length: 99999999999999999\r\n\r\n", 400 },
	{ GET "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
	  "\r\n", 400 },
	{ GET "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501 },
	{ GET "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
	  "chunked\r\n\r\n", 400 },
	{ GET "Host: a\r\nTransfer-Encoding : chunked\r\n\r\n", 400 },
	{ "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
	  400 },
	{ GET "Host: a\r\n X: folded\r\n\r\n", 400 },
	{ GET "Host: a\n\r\n", 400 },
	{ GET "Host: a\rb\r\n\r\n", 400 },
	{ GET "Host: a\x01\r\n\r\n", 400 },
	{ GET ": a\r\n\r\n", 400 },
	{ GET "Host a\r\n\r\n", 400 },
	{ "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505 },
	{ "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400 },
	{ "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET /\xc3 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "\r\n" GET "Host: a\r\n\r\n", 400 },
	{ GET "Host: a\r\nExpect: tea\r\n\r\n", 417 },
};

static void test_requests(void)
{
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		const char *s = requests[i].text;
		struct http_head h;
		struct http_fault f = { 0, "" };
		size_t seen = 0;
		long n = http_head_end((const uint8_t *)s, strlen(s), 4096,
				       &seen, &f);
		int rc = n <= 0 ? (int)n - (n == 0) : http_request_parse(&h,
				(const uint8_t *)s, (size_t)n, &f);
		ok(requests[i].status ? rc < 0 && f.status ==
		   requests[i].status : rc == 0, "request %zu: %d %s", i,
		   f.status, f.why);
	}
	struct http_fault f;
	size_t seen = 0;
	ok(http_head_end((const uint8_t *)GET, strlen(GET), 8, &seen, &f) < 0 &&
	   f.status == 431, "a head that is too large");
}

static void test_hops(void)
{
	static const char text[] = GET "Host: a\r\nConnection: X-a , x-B\r\n"
		"X-A: 1\r\n\r\n";
	struct http_head h;
	struct http_fault f;
	http_request_parse(&h, (const uint8_t *)text, strlen(text), &f);
	ok(http_is_hop(&h, bytes_str("x-a")), "named by Connection");
	ok(http_is_hop(&h, bytes_str("X-B")), "whatever its case");
	ok(http_is_hop(&h, bytes_str("Proxy-Authorization")), "always");
	ok(!http_is_hop(&h, bytes_str("Host")), "not Host");
}

static void test_answers(void)
{
	static const struct { const char *text, *method; int framing; } t[] = {
		{ "200 OK\r\nContent-Length: 3\r\n", "GET", HTTP_LENGTH },
		{ "200 OK\r\nContent-Length: 3\r\n", "HEAD", HTTP_NONE },
		{ "200 OK\r\n", "GET", HTTP_TO_CLOSE },
		{ "200\r\nTransfer-Encoding: chunked\r\n", "GET",
		  HTTP_CHUNKED },
		{ "204 No\r\n", "GET", HTTP_NONE },
		{ "304 No\r\nContent-Length: 9\r\n", "GET", HTTP_NONE },
		{ "2000 OK\r\n", "GET", -1 },
		{ "20 OK\r\n", "GET", -1 },
		{ "200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked"
		  "\r\n", "GET", -1 },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		cleanup_buf struct buf b = { 0 };
		struct http_head h;
		struct http_fault f;
		buf_addf(&b, "HTTP/1.1 %s\r\n", t[i].text);
		int rc = http_answer_parse(&h, b.data, b.len, &f);
		is_int(rc < 0 ? -1 : (int)http_answer_framing(&h,
		       bytes_str(t[i].method)), t[i].framing, "answer %zu", i);
	}
}

static void test_chunks(void)
{
	static const struct { const char *text; int strict, lenient; } t[] = {
		{ "3\r\nabc\r\n0\r\n\r\n", 1, 1 },
		{ "003\r\nabc\r\n0\r\nA: b\r\n\r\n", 1, 1 },
		{ "3;a=b\r\nabc\r\n0\r\n\r\n", -1, 1 },
		{ "3 \r\nabc\r\n0\r\n\r\n", -1, 1 },
		{ "0x3\r\nabc\r\n", -1, -1 }, { "+3\r\nabc\r\n", -1, -1 },
		{ "3\nabc\r\n", -1, -1 }, { "3\r\nabcd\r\n", -1, -1 },
		{ "\r\nabc\r\n", -1, -1 }, { ";\r\n", -1, -1 },
		{ "1234567890123\r\n", -1, -1 }, { "3\r\nab", 0, 0 },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
		for (int lenient = 0; lenient < 2; lenient++) {
			struct http_body b = { .framing = HTTP_CHUNKED,
					       .lenient = lenient };
			const uint8_t *p = (const uint8_t *)t[i].text;
			size_t n = strlen(t[i].text), used;
			struct bytes run;
			int rc = 0;
			while (n && rc == 0) {
				rc = http_body_read(&b, p, n, &used, &run);
				p += used, n -= used;
			}
			is_int(rc, lenient ? t[i].lenient : t[i].strict,
			       "chunks %zu, lenient %d", i, lenient);
			http_body_free(&b);
		}
}

/* --- addresses --- */

static void test_addresses(void)
{
	static const struct { const char *text; enum addr_class class; } t[] = {
		{ "8.8.8.8", ADDR_PUBLIC }, { "172.32.0.1", ADDR_PUBLIC },
		{ "100.128.0.1", ADDR_PUBLIC }, { "11.0.0.1", ADDR_PUBLIC },
		{ "0.0.0.0", ADDR_UNSPECIFIED }, { "0.1.2.3", ADDR_RESERVED },
		{ "127.0.0.1", ADDR_LOOPBACK }, { "127.9.9.9", ADDR_LOOPBACK },
		{ "10.0.0.1", ADDR_PRIVATE }, { "172.16.0.1", ADDR_PRIVATE },
		{ "172.31.255.255", ADDR_PRIVATE },
		{ "192.168.1.1", ADDR_PRIVATE },
		{ "169.254.1.1", ADDR_LINK_LOCAL },
		{ "169.254.169.254", ADDR_METADATA },
		{ "100.100.100.200", ADDR_METADATA },
		{ "100.64.0.1", ADDR_SHARED }, { "224.0.0.1", ADDR_MULTICAST },
		{ "255.255.255.255", ADDR_RESERVED },
		{ "198.18.0.1", ADDR_RESERVED },
		{ "2606:4700::1", ADDR_PUBLIC }, { "::", ADDR_UNSPECIFIED },
		{ "::1", ADDR_LOOPBACK }, { "fe80::1", ADDR_LINK_LOCAL },
		{ "fc00::1", ADDR_PRIVATE }, { "fd12::1", ADDR_PRIVATE },
		{ "fd00:ec2::254", ADDR_METADATA },
		{ "ff02::1", ADDR_MULTICAST }, { "2001:db8::1", ADDR_RESERVED },
		{ "2001::1", ADDR_RESERVED },
		{ "::ffff:10.0.0.1", ADDR_PRIVATE },
		{ "::ffff:8.8.8.8", ADDR_PUBLIC },
		{ "::127.0.0.1", ADDR_LOOPBACK },
		{ "::ffff:0:127.0.0.1", ADDR_LOOPBACK },
		{ "64:ff9b::7f00:1", ADDR_LOOPBACK },
		{ "64:ff9b::a9fe:a9fe", ADDR_METADATA },
		{ "64:ff9b:1::7f00:1", ADDR_PRIVATE },
		{ "2002:7f00:1::", ADDR_LOOPBACK },
		{ "2002:a00:1::1", ADDR_PRIVATE },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct addr a = { .family = strchr(t[i].text, ':') ? AF_INET6 :
							     AF_INET };
		int rc = inet_pton(a.family, t[i].text, a.bytes);
		ok(rc == 1 && addr_class(&a) == t[i].class, "%s is %s",
		   t[i].text, addr_class_word(addr_class(&a)));
	}
	struct addr own = { AF_INET, { 127, 0, 0, 1 } };
	ok(addr_is_own(&own), "127.0.0.1 is an interface's");
}

/* --- hellos --- */

static size_t make_hello(uint8_t *to, const char *name, size_t list_extra)
{
	size_t n = strlen(name);
	uint8_t body[512] = { 3, 3 };
	size_t at = 34;
	body[at++] = 0;
	at += (size_t)(memcpy(body + at, "\0\2\x13\1\1\0", 6), 6);
	size_t ext = 4 + 5 + n;
	body[at++] = 0, body[at++] = (uint8_t)ext;
	at += 2;
	body[at++] = 0, body[at++] = (uint8_t)(n + 5);
	body[at++] = 0, body[at++] = (uint8_t)(n + 3 + list_extra);
	body[at++] = 0, body[at++] = 0, body[at++] = (uint8_t)n;
	memcpy(body + at, name, n);
	at += n;
	uint8_t head[9] = { 22, 3, 1, 0, (uint8_t)(at + 4), 1, 0, 0,
			    (uint8_t)at };
	memcpy(to, head, 9);
	memcpy(to + 9, body, at);
	return at + 9;
}

static void test_hellos(void)
{
	uint8_t m[600], space[256];
	struct bytes name;
	size_t n = make_hello(m, "api.test", 0);
	is_int(hello_read(m, n, space, &name), 1, "a hello");
	ok(bytes_eq(name, bytes_str("api.test")), "and its name");
	for (size_t i = 0; i < n; i++)
		if (hello_read(m, i, space, &name) != 0)
			break;
		else if (i + 1 == n)
			ok(1, "less of it is not enough");
	n = make_hello(m, "api.test", 1);
	is_int(hello_read(m, n, space, &name), -1, "a list that is longer");
	n = make_hello(m, "", 0);
	is_int(hello_read(m, n, space, &name), -1, "an empty name");
	is_int(hello_read((const uint8_t *)"GET / HTTP", 10, space, &name), -1,
	       "HTTP is none");
	is_int(hello_read((const uint8_t *)"\x15\3\1\0\2\2\0", 7, space, &name),
	       -1, "nor is an alert");
}

int main(void)
{
	test_requests();
	test_hops();
	test_answers();
	test_chunks();
	test_addresses();
	test_hellos();
	return done_testing();
}
