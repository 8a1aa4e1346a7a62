/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/http.h"
#include "tests/unit/tap.h"

static long end_of(const char *s, size_t max, int *status)
{
	struct http_fault f = { 0, "" };
	size_t seen = 0;
	long n = http_head_end((const uint8_t *)s, strlen(s), max, &seen, &f);
	*status = n < 0 ? f.status : 0;
	return n;
}

static void test_head_end(void)
{
	static const struct { const char *head; long size; int status; } t[] = {
		{ "GET / HTTP/1.1\r\nA: b\r\n\r\nmore", 24, 0 },
		{ "GET / HTTP/1.1\r\nA: b\r\n", 0, 0 },
		{ "GET / HTTP/1.1\r\n\r", 0, 0 },
		{ "GET / HTTP/1.1\n\n", -1, 400 },
		{ "GET / HTTP/1.1\rX", -1, 400 },
		{ "\r\n\r\n", -1, 400 },
		{ "GET / HTTP/1.1\r\nA: \x7f\r\n\r\n", -1, 400 },
		{ "GET / HTTP/1.1\r\nA:\tb\r\n\r\n", 24, 0 },
		{ "GET /0123456789012345678901234567890123456789", -1, 431 },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		int status;
		long n = end_of(t[i].head, 40, &status);
		ok(n == t[i].size && status == t[i].status,
		   "head %zu: %ld, %d", i, n, status);
	}
}

static void test_words(void)
{
	struct bytes list = bytes_str(" a ,\tB,, close"), w;
	unsigned n = 0;
	while (http_next_word(&list, &w))
		n++;
	ok(n == 4, "a list has %u words", n);
	ok(http_has(bytes_str("keep-alive, CLOSE"), "close"), "one of them");
	ok(!http_has(bytes_str("closed, x"), "close"), "whole words only");
	ok(http_is(bytes_str("HoSt"), "host") &&
	   !http_is(bytes_str("hos"), "host"), "in any case");
	ok(http_trim(bytes_str(" \t ")).n == 0, "nothing but white space");
	ok(http_token_len(bytes_str("A-b:c")) == 3 &&
	   http_token_len(bytes_str(" x")) == 0, "a token ends");
	ok(!http_is_token(0) && !http_is_token(0x80) && http_is_token('~'),
	   "what a token is made of");
}

static void test_values(void)
{
	int64_t v = -1;
	bool http10 = false;
	struct http_fault f;
	struct bytes slot = { 0 };
	ok(http_number(bytes_str("9007199254740991"), &v) == 0 &&
	   v == INT64_C(9007199254740991), "the largest number");
	static const char *const bad[] = { "", "+5", "-1", "0x5", " 5", "5 ",
					   "9007199254740992",
					   "00000000000000005" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ok(http_number(bytes_str(bad[i]), &v) < 0, "no number: \"%s\"",
		   bad[i]);
	ok(http_hex('0') == 0 && http_hex('F') == 15 && http_hex('a') == 10 &&
	   http_hex('g') < 0 && http_hex('@') < 0, "hex");
	ok(http_version(bytes_str("HTTP/1.0"), &http10, &f) == 0 && http10,
	   "1.0");
	ok(http_version(bytes_str("HTTP/2.0"), &http10, &f) < 0 &&
	   f.status == 505, "not 2.0");
	ok(http_version(bytes_str("http/1.1"), &http10, &f) < 0 &&
	   f.status == 400, "nor in small letters");
	ok(http_is_target(bytes_str("/a?b")) &&
	   !http_is_target(bytes_str("/a#b")) &&
	   !http_is_target(bytes_str("/a b")) && !http_is_target(slot),
	   "targets");
	ok(http_once(&slot, bytes_str("a"), &f) == 0 &&
	   http_once(&slot, bytes_str("a"), &f) < 0 && f.status == 400,
	   "once only");
	is_str(http_reason(507), "Insufficient Storage", "a reason");
	is_str(http_reason(599), "Error", "or none");
}

int main(void)
{
	test_head_end();
	test_words();
	test_values();
	return done_testing();
}
