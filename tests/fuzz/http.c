/* SPDX-License-Identifier: MIT
 *
 * The relay's HTTP parser.  Whatever arrives: no read outside the input, and
 * the same verdict whether it comes at once or in pieces. */
#include <stdlib.h>
#include <string.h>

#include "relay/http.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static long head_end(const uint8_t *p, size_t n, size_t step)
{
	struct http_fault f;
	size_t seen = 0;
	for (size_t have = 0; have < n;) {
		have = n - have < step ? n : have + step;
		long size = http_head_end(p, have, HTTP_HEAD_MAX, &seen,
					  &f);
		if (size)
			return size;
	}
	return 0;
}

static void chunks(const uint8_t *p, size_t n, size_t step, struct buf *out)
{
	struct http_chunks c = { 0 };
	struct bytes run;
	size_t used;
	for (size_t at = 0; at < n; at += used) {
		size_t room = n - at < step ? n - at : step;
		int rc = http_chunks_read(&c, p + at, room, &used, &run);
		buf_add(out, run.p, run.n);
		if (rc)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct http_head h;
	struct http_fault f;
	struct buf a = { 0 }, b = { 0 };
	int64_t v;
	long size = head_end(p, n, n ? n : 1);
	if (size != head_end(p, n, 3))
		abort();
	if (size > 0 && http_head_parse(&h, p, (size_t)size, &f) == 0) {
		if (h.chunked && h.has_length)
			abort();
		http_query_number(h.query, "after", &v);
		p += size, n -= (size_t)size;
	}
	chunks(p, n, n ? n : 1, &a);
	chunks(p, n, 2, &b);
	if (!bytes_eq(buf_bytes(&a), buf_bytes(&b)))
		abort();
	buf_free(&a);
	buf_free(&b);
	return 0;
}
