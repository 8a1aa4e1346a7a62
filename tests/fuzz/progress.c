/* SPDX-License-Identifier: MIT
 *
 * A frame of live output: what parses is written again as it was, and what
 * nobody signed opens nowhere. */
#include <stdlib.h>
#include <string.h>

#include "core/progress_seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	static const uint8_t key[32] = { 1 };
	static uint8_t pub[PRIM_PUB];
	struct buf out = { 0 }, again = { 0 };
	struct progress p;
	struct err e = { 0 };

	if (!pub[0]) {
		if (prim_init() < 0)
			abort();
		prim_pub(pub, key);
	}
	if (progress_parse(&p, (struct bytes){ in, n }, &e) < 0) {
		if (e.code != ERR_INVALID || p.frame.data)
			abort();
		return 0;
	}
	progress_put(&again, &p);
	if (!bytes_eq(buf_bytes(&again), (struct bytes){ in, n }) ||
	    progress_verify(&p, pub, &e) == 0 ||
	    progress_open(&out, &p, key, &e) == 0 || out.len)
		abort();
	progress_free(&p);
	buf_free(&again);
	buf_free(&out);
	return 0;
}
