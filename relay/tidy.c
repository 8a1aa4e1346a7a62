/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/tidy.h"

struct kept {
	struct store_kept *v;
	size_t n, cap;
};

static int add(struct kept *k, uint32_t at, bool blob)
{
	if (k->n == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 1024;
		struct store_kept *p = realloc(k->v, cap * sizeof *p);
		if (!p)
			return -1;
		k->v = p;
		k->cap = cap;
	}
	k->v[k->n++] = (struct store_kept){ .at = at, .blob = blob };
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Where blobs of this session lie in the segment, sorted. */
static uint32_t *blobs_in(const struct session *s, uint32_t number, size_t *n)
{
	uint32_t *at = malloc((s->item_n + 1) * sizeof *at);
	*n = 0;
	for (uint32_t i = 0; at && i < s->bucket_n; i++)
		for (struct item *it = s->item[i]; it; it = it->next)
			if (it->present && !it->file.name &&
			    it->loc.segment == number)
				at[(*n)++] = it->loc.at;
	if (at && *n)
		qsort(at, *n, sizeof *at, compare);
	return at;
}

static int add_session(struct kept *k, const struct session *s,
		       uint32_t number)
{
	size_t n;
	uint32_t *blob = blobs_in(s, number, &n);
	if (!blob)
		return -1;
	int rc = 0;
	for (uint32_t i = 0; i < s->rec_n && rc == 0; i++) {
		const struct rec_loc *loc = &s->rec[i];
		if (loc->segment == number)
			rc = add(k, loc->at, n && bsearch(
				 &loc->at, blob, n, sizeof loc->at, compare));
	}
	free(blob);
	return rc;
}

static int collect(struct kept *k, struct state *st, uint32_t number)
{
	for (size_t i = 0; i < st->bucket_n; i++)
		for (struct session *s = st->bucket[i]; s; s = s->next)
			if (!s->closed && add_session(k, s, number) < 0)
				return -1;
	return 0;
}

static void move(struct rec_loc *loc, const struct kept *k, uint32_t number,
		 uint32_t gen)
{
	const struct store_kept *to = loc->segment == number ?
				      store_kept_at(k->v, k->n, loc->at) :
				      NULL;
	if (!to)
		return;
	loc->at = to->to;
	loc->gen = gen;
	if (!to->blob)
		loc->blob_n = 0;
}

static void move_session(struct session *s, const struct kept *k,
			 uint32_t number, uint32_t gen)
{
	for (uint32_t i = 0; i < s->rec_n; i++)
		move(&s->rec[i], k, number, gen);
	for (uint32_t i = 0; i < s->bucket_n; i++)
		for (struct item *it = s->item[i]; it; it = it->next)
			move(&it->loc, k, number, gen);
}

static int put_in_place(struct state *st, const struct kept *k,
			const struct store_job *job, struct err *e)
{
	uint32_t gen;
	pthread_mutex_lock(&st->lock);
	int rc = store_compact_swap(st->store, job, &gen, e);
	for (size_t i = 0; rc == 0 && i < st->bucket_n; i++)
		for (struct session *s = st->bucket[i]; s; s = s->next)
			if (!s->closed)
				move_session(s, k, job->number, gen);
	pthread_mutex_unlock(&st->lock);
	store_sync_names(st->store);
	return rc;
}

int tidy_log(struct state *st, struct err *e)
{
	struct kept k = { 0 };
	struct store_job job = { .number = store_sparse(st->store) };
	if (!job.number)
		return 0;
	pthread_mutex_lock(&st->lock);
	int rc = collect(&k, st, job.number);
	pthread_mutex_unlock(&st->lock);
	if (rc < 0)
		err_set(e, ERR_MEMORY, "out of memory");
	else
		rc = store_compact_write(st->store, &job, k.v, k.n, e);
	if (rc == 0)
		rc = put_in_place(st, &k, &job, e);
	free(k.v);
	return rc;
}
