/* SPDX-License-Identifier: MIT
 *
 * Fuzz: a record of a job submitted from here, as a crash finds it again. */
#include <assert.h>

#include "airloxfs/jobs_journal.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void clear(struct jobs *j)
{
	for (struct submitted *s = j->first, *next; s; s = next) {
		next = s->next;
		jobs_free_parts(s);
		buf_free(&s->spec.labels);
		buf_free(&s->spec.requirements);
		free(s->name);
		free(s);
	}
}

static int load(struct jobs *j, struct bytes record, struct err *e)
{
	*j = (struct jobs){ .dir = -1 };
	j->last_at = &j->first;
	struct json *doc = json_parse(record, e);
	int rc = doc ? load_one(j, doc, e) : -1;
	json_free(doc);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct mount m;
	struct jobs j, k;
	struct err e = { 0 };
	cleanup_buf struct buf a = { 0 }, b = { 0 };
	m.jobs = &j;
	if (load(&j, (struct bytes){ p, n }, &e) == 0) {
		assert(j.first && !j.first->next && j.newest >= j.first->n);
		j.first->m = &m;
		put_record(&a, j.first);
		assert(load(&k, buf_bytes(&a), &e) == 0);
		put_record(&b, k.first);
		assert(bytes_eq(buf_bytes(&a), buf_bytes(&b)));
		k.first->m = &m;
		clear(&k);
	} else {
		assert(e.code != ERR_NONE && e.why[0]);
	}
	for (struct submitted *s = j.first; s; s = s->next)
		s->m = &m;
	clear(&j);
	return 0;
}
