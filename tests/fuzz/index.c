/* SPDX-License-Identifier: MIT
 *
 * Fuzz: a record of the index.  What is read is written again as it was. */
#include <assert.h>

#include "airloxfs/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct index_record r;
	struct err e = { 0 };
	cleanup_buf struct buf out = { 0 };
	if (index_parse(&r, (struct bytes){ p, n }, &e) < 0) {
		assert(e.code != ERR_NONE && e.why[0]);
		return 0;
	}
	index_put(&out, &r);
	assert(!buf_failed(&out));
	assert(bytes_eq(buf_bytes(&out), (struct bytes){ p, n }));
	index_free(&r);
	return 0;
}
