/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/waiting.h"

int waiting_reset(struct session *s, struct item *it)
{
	uint32_t words = s->part_n / 64 + 1;
	uint64_t *w = calloc(words, sizeof *w);
	if (!w)
		return -1;
	free(it->waiting);
	it->waiting = w;
	it->waiting_words = words;
	it->waiting_n = 0;
	it->acked = false;
	return 0;
}

/* The bits are as many as there were participants then. */
static int make_room(struct session *s, struct item *it)
{
	uint32_t words = s->part_n / 64 + 1;
	uint64_t *w = realloc(it->waiting, words * sizeof *w);
	if (!w)
		return -1;
	memset(w + it->waiting_words, 0,
	       (words - it->waiting_words) * sizeof *w);
	it->waiting = w;
	it->waiting_words = words;
	return 0;
}

int waiting_add(struct session *s, struct item *it,
		const struct participant *p)
{
	if (state_waits_for(it, p))
		return 0;
	if (p->index / 64 >= it->waiting_words && make_room(s, it) < 0)
		return -1;
	it->waiting[p->index / 64] |= UINT64_C(1) << p->index % 64;
	it->waiting_n++;
	return 0;
}

void waiting_release(struct session *s, struct item *it,
		     const struct participant *p)
{
	if (state_waits_for(it, p)) {
		it->waiting[p->index / 64] &= ~(UINT64_C(1) << p->index % 64);
		it->waiting_n--;
	}
	if (it->present && it->acked && !it->waiting_n && !it->is_due) {
		it->is_due = true;
		it->next_due = s->due;
		s->due = it;
	}
}

void waiting_release_all(struct session *s, const struct participant *p)
{
	for (uint32_t i = 0; i < s->bucket_n; i++)
		for (struct item *it = s->item[i]; it; it = it->next)
			if (state_waits_for(it, p))
				waiting_release(s, it, p);
}

/* A runner waits for events only, once approved; for a job and its inputs it
 * is added when the job is given to it. */
static bool is_recipient(const struct item *it, const struct participant *p)
{
	if (p->gone || p == it->author)
		return false;
	return p->cert.role != ROLE_RUNNER ||
	       (p->approved && it->kind == ITEM_EVENT);
}

int waiting_fill(struct session *s, struct item *it)
{
	if (waiting_reset(s, it) < 0)
		return -1;
	for (uint32_t i = 0; i < s->part_n; i++)
		if (is_recipient(it, s->part[i]) &&
		    waiting_add(s, it, s->part[i]) < 0)
			return -1;
	return 0;
}
