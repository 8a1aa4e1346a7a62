/* SPDX-License-Identifier: MIT
 *
 * The broker's HTTP: no read outside the input, the same verdict however it is
 * cut, and what was read is one thing: a body's length is given once. */
#include <stdlib.h>
#include <string.h>

#include "runner/broker/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static long head_end(const uint8_t *p, size_t n, size_t step)
{
	struct http_fault f;
	size_t seen = 0;
	for (size_t have = 0; have < n;) {
		have = n - have < step ? n : have + step;
		long size = http_head_end(p, have, HTTP_REQUEST_MAX, &seen, &f);
		if (size)
			return size;
	}
	return 0;
}

static int body(const uint8_t *p, size_t n, size_t step, bool lenient,
		struct buf *out)
{
	struct http_body b = { .framing = HTTP_CHUNKED, .lenient = lenient };
	struct bytes run;
	size_t used;
	int rc = 0;
	for (size_t at = 0; at < n && rc == 0; at += used) {
		size_t room = n - at < step ? n - at : step;
		rc = http_body_read(&b, p + at, room, &used, &run);
		buf_add(out, run.p, run.n);
	}
	buf_add(out, b.trailer.data, b.trailer.len);
	http_body_free(&b);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct http_head h;
	struct http_fault f;
	long size = head_end(p, n, n ? n : 1);
	if (size != head_end(p, n, 3))
		abort();
	if (size > 0 && http_request_parse(&h, p, (size_t)size, &f) == 0 &&
	    h.chunked && h.has_length)
		abort();
	if (size > 0 && http_answer_parse(&h, p, (size_t)size, &f) == 0)
		http_answer_framing(&h, h.reason);
	if (size > 0)
		p += size, n -= (size_t)size;
	for (int lenient = 0; lenient < 2; lenient++) {
		struct buf a = { 0 }, b = { 0 };
		int rc = body(p, n, n ? n : 1, lenient, &a);
		if (rc != body(p, n, 2, lenient, &b) ||
		    (rc >= 0 && !bytes_eq(buf_bytes(&a), buf_bytes(&b))))
			abort();
		buf_free(&a);
		buf_free(&b);
	}
	return 0;
}
