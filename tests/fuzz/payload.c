/* SPDX-License-Identifier: MIT
 *
 * What came out of a blob: frame, meta, and the rules on what they say. */
#include <stdlib.h>

#include "core/payload.h"
#include "tests/unit/party.h"

static struct party party;

static void check(const struct payload *p)
{
	struct item_header h = { .kind = p->kind, .type = TYPE_MD };
	struct err e = { 0 };

	for (int i = 0; i < ROLES; i++) {
		int r = payload_check(p, &h, &party.cert[i], &party.m, &e);
		if (r == 0 && p->kind == ITEM_JOB &&
		    (p->u.job.file_n > JOB_FILES_MAX ||
		     p->u.job.target.label_n > LABELS_MAX))
			abort();
		if (r == 0 && p->kind == ITEM_RESULT &&
		    p->u.result.out_n > OUT_FILES_MAX)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct payload v;
	struct err e = { 0 };
	uint32_t meta_n;

	if (!party.m.mode)
		party_begin(&party, MODE_EXECUTE);
	if (n < 4 || payload_frame(p, (int64_t)n, &meta_n, &e) < 0)
		return 0;
	struct bytes meta = { p + 4, meta_n };
	if (payload_parse(&v, meta, (int64_t)(n - 4 - meta_n), &e) == 0) {
		check(&v);
		payload_free(&v);
	} else if (e.code != ERR_INVALID || v.doc) {
		abort();
	}
	return 0;
}
