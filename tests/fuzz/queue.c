/* SPDX-License-Identifier: MIT
 *
 * Fuzz: a record of the queue's journal, as a crash finds it again. */
#include <assert.h>

#include "airloxfs/queue_journal.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void again(const struct qjob *j, enum qknown kind)
{
	cleanup_buf struct buf b = { 0 };
	struct qjob k = { 0 };
	struct err e;
	put_record(&b, kind, j->id, j);
	assert(parse(buf_bytes(&b), &k, &e) == (int)kind);
	assert(!strcmp(k.id, j->id) && !strcmp(k.code_sha256, j->code_sha256));
	assert(!memcmp(k.ref.sha256, j->ref.sha256, HASH_SIZE));
	if (kind == QK_FINISHED) {
		assert(k.end.status == j->end.status);
		assert(k.end.exit == j->end.exit);
		assert(bytes_eq(buf_bytes(&k.end.out), buf_bytes(&j->end.out)));
	}
	queue_end_free(&k.end);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct qjob j = { 0 };
	struct err e = { 0 };
	int kind = parse((struct bytes){ p, n }, &j, &e);
	if (kind >= 0)
		again(&j, (enum qknown)kind);
	else
		assert(e.code != ERR_NONE && e.why[0]);
	queue_end_free(&j.end);
	return 0;
}
