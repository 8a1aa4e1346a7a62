/* SPDX-License-Identifier: MIT
 *
 * Fuzz: a record of the outbox, as a crash finds it again. */
#include <assert.h>

#include "airloxfs/outbox_journal.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct outbox o = { .blobs = -1 };
	struct bytes record = { p, n };
	struct err e = { 0 };
	o.last = &o.first;
	for (int i = 0; i < 2; i++)	/* the second time it may be known */
		if (load_one(&o, 17, record, &e) < 0)
			assert(e.code != ERR_NONE && e.why[0]);
	while (o.first) {
		struct post *next = o.first->next;
		assert(strlen(o.first->sealed.id) <= ITEM_ID);
		assert(strlen(o.first->blob) < FILE_TMP);
		assert(strlen(o.first->draft) < DRAFT_ID);
		post_free(o.first);
		o.first = next;
	}
	outbox_drop_outcomes(&o);
	return 0;
}
