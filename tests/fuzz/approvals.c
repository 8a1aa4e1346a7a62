/* SPDX-License-Identifier: MIT
 *
 * Fuzz: a record of what the owner decided on a runner. */
#include <assert.h>

#include "airloxfs/runners.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What is to be done is, written again, to be done. */
static void check_again(struct runners *r, struct runner *k)
{
	cleanup_buf struct buf again = { 0 };
	struct err e;
	enum decision was = k->decision;
	put_note(&again, k, false);
	k->decision = DECIDED_NOTHING;
	assert(load_record(r, 0, buf_bytes(&again), &e) == 0);
	assert(k->decision == was);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct participant who = { 0 };
	struct runner k = { .who = &who };
	struct runners r = { .first = &k };
	struct err e;
	memset(who.join.cert.pub, 0xa5, PRIM_PUB);
	assert(load_record(&r, 0, (struct bytes){ p, n }, &e) == 0);
	assert(k.decision >= DECIDED_NOTHING && k.decision <= DECIDED_REJECT);
	if (k.decision != DECIDED_NOTHING)
		check_again(&r, &k);
	free(k.reason);
	return 0;
}
