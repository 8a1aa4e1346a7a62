/* SPDX-License-Identifier: MIT
 *
 * A record that somebody hands over; whatever holds is shown. */
#include <stdlib.h>

#include "runner/record/chain.h"
#include "runner/record/page.h"
#include "runner/record/proof.h"
#include "runner/record/plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e;
	struct proof proof;
	struct chain_walk w;
	struct part part;
	struct buf out = { 0 };
	if (proof_check(&proof, (struct bytes){ p, n }, NULL, &e) == 0 &&
	    plain_put(&out, &proof, &e) < 0)
		abort();
	buf_free(&out);
	chain_begin(&w, bytes_str("r"), (struct bytes){ p, n });
	while (chain_next(&w, &part, &e) > 0)
		part_free(&part);
	if (page_unescape(&out, (struct bytes){ p, n }) < 0 || out.len > n)
		abort();
	buf_free(&out);
	return 0;
}
