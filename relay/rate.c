/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/prim.h"
#include "relay/rate.h"

#define SETS 4096u
#define WAYS 4

int64_t rate_take(struct rate *r, double cost, double most, int64_t period_ms,
		  int64_t now_ms)
{
	int64_t now_us = now_ms * 1000, period_us = period_ms * 1000;
	if (most <= 0)
		return 0;
	double us = cost / most * (double)period_us;
	if (us > (double)period_us)
		us = (double)period_us;
	int64_t from = r->full_us > now_us ? r->full_us : now_us;
	int64_t over = from + (int64_t)us - now_us - period_us;
	if (over > 0)
		return over / 1000 + 1;
	r->full_us = from + (int64_t)us;
	return 0;
}

struct entry {
	struct addr who;
	struct rate rate;
};

struct rate_table {
	uint64_t key[2];	/* so that nobody can aim at a set */
	struct entry entry[SETS][WAYS];
};

struct rate_table *rate_table_new(void)
{
	struct rate_table *t = calloc(1, sizeof *t);
	if (t)
		prim_random((uint8_t *)t->key, sizeof t->key);
	return t;
}

void rate_table_free(struct rate_table *t) { free(t); }

static struct entry *set_of(struct rate_table *t, const struct addr *a)
{
	uint64_t w[2];
	memcpy(w, a->b, sizeof w);
	uint64_t h = (w[0] ^ t->key[0]) * 0x9e3779b97f4a7c15u;
	h = ((h ^ h >> 29) + (w[1] ^ t->key[1])) * 0xbf58476d1ce4e5b9u;
	return t->entry[(h ^ h >> 32) % SETS];
}

int64_t rate_table_take(struct rate_table *t, struct addr a, double most,
			int64_t period_ms, int64_t now_ms)
{
	struct addr who = addr_net(a);
	struct entry *set = set_of(t, &who), *least = set;
	for (int i = 0; i < WAYS; i++) {
		if (memcmp(&set[i].who, &who, sizeof who) == 0)
			return rate_take(&set[i].rate, 1, most, period_ms,
					 now_ms);
		if (set[i].rate.full_us < least->rate.full_us)
			least = &set[i];
	}
	*least = (struct entry){ .who = who };
	return rate_take(&least->rate, 1, most, period_ms, now_ms);
}
