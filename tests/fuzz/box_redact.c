/* SPDX-License-Identifier: MIT
 *
 * However a stream is cut, the same of it is overwritten, and no secret in
 * plain form is left. */
#include <stdlib.h>
#include <string.h>

#include "core/prim.h"
#include "runner/broker/redact.h"
#include "runner/broker/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void feed(struct redact_set *s, const uint8_t *p, size_t n, size_t step,
		 struct buf *out)
{
	struct redact r = { 0 };
	for (size_t at = 0; at < n; at += step) {
		size_t m = n - at < step ? n - at : step;
		redact_feed(&r, s, (struct bytes){ p + at, m }, at + m == n,
			    out);
	}
	redact_reset(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct redact_set *s;
	struct buf whole = { 0 }, bytes = { 0 }, odd = { 0 };
	if (!s) {
		if (prim_init() < 0 || !(s = redact_new()))
			abort();
		redact_add(s, bytes_str("%41\\&+secret/1"));
		redact_add(s, bytes_str("secret/1/2aa"));
		redact_add(s, bytes_str("aaaaaaaa"));
	}
	if (n > 65536)
		return 0;
	feed(s, p, n, n ? n : 1, &whole);
	feed(s, p, n, 1, &bytes);
	feed(s, p, n, 7, &odd);
	if (whole.len != n || !bytes_eq(buf_bytes(&whole), buf_bytes(&bytes)) ||
	    !bytes_eq(buf_bytes(&whole), buf_bytes(&odd)) ||
	    text_find(buf_bytes(&whole), bytes_str("secret/1/2aa")))
		abort();
	buf_free(&whole);
	buf_free(&bytes);
	buf_free(&odd);
	return 0;
}
