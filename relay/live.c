/* SPDX-License-Identifier: MIT */
#include "relay/live.h"

static void drop_first(struct live *v)
{
	struct live_frame *slot = &v->slot[v->first++ % LIVE_RING];
	hub_release(&slot->frame, 1);
	slot->frame = NULL;
}

int live_publish(struct hub *h, uint64_t after, struct bytes data,
		 int64_t now_ms)
{
	if (!hub_has_streams(h))
		return 0;
	if (!h->live && !(h->live = calloc(1, sizeof *h->live)))
		return -1;
	struct live *v = h->live;
	struct frame *f = hub_new_live("progress", data, LIVE_BYTES_MAX);
	if (!f)
		return -1;
	if (v->end - v->first == LIVE_RING)
		drop_first(v);
	v->slot[v->end++ % LIVE_RING] = (struct live_frame){ f, after,
							     now_ms };
	hub_wake(h);
	return 0;
}

struct frame *live_next(const struct hub *h, uint64_t *seen, uint64_t cursor,
			uint64_t *until)
{
	const struct live *v = h->live;
	*until = UINT64_MAX;
	if (!v || v->first == v->end)
		return NULL;
	if (*seen < v->first)
		*seen = v->first;
	if (*seen >= v->end)
		return NULL;
	const struct live_frame *slot = &v->slot[*seen % LIVE_RING];
	*until = slot->after;
	if (slot->after > cursor)
		return NULL;
	++*seen;
	atomic_fetch_add(&slot->frame->refs, 1);
	return slot->frame;
}

uint64_t live_begin(const struct hub *h, bool resumed)
{
	if (!h->live)
		return 0;
	return resumed ? h->live->first : h->live->end;
}

bool live_waits(const struct hub *h)
{
	return h->live && h->live->first < h->live->end;
}

void live_expire(struct hub *h, int64_t now_ms)
{
	struct live *v = h->live;
	while (v && v->first < v->end &&
	       now_ms - v->slot[v->first % LIVE_RING].at_ms >= LIVE_MS)
		drop_first(v);
}

void live_free(struct hub *h)
{
	while (h->live && h->live->first < h->live->end)
		drop_first(h->live);
	free(h->live);
	h->live = NULL;
}
