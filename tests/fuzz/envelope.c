/* SPDX-License-Identifier: MIT
 *
 * An envelope that is taken is written again byte for byte. */
#include <stdlib.h>

#include "core/item.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const uint8_t sha[HASH_SIZE];
	struct envelope v;
	struct buf out = { 0 };
	struct err e = { 0 };

	if (envelope_parse(&v, (struct bytes){ p, n }, &e) < 0) {
		if (e.code != ERR_INVALID || v.header.refs)
			abort();
		return 0;
	}
	item_put_header(&out, &v.header);
	if (!bytes_eq(buf_bytes(&out), v.raw_header) ||
	    v.header.ref_n > ITEM_REFS_MAX)
		abort();
	envelope_verify(&v, sha, &e);
	envelope_free(&v);
	buf_free(&out);
	return 0;
}
