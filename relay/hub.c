/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "relay/live.h"
#include "relay/loop.h"
#include "relay/state.h"

void hub_frame(struct buf *out, uint64_t seq, const char *kind,
	       struct bytes data)
{
	buf_addf(out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)seq,
		 kind);
	buf_add(out, data.p, data.n);
	buf_add_str(out, "\n\n");
}

static struct frame *frame_new(uint64_t seq, const char *kind,
			       struct bytes data)
{
	cleanup_buf struct buf b = { 0 };
	hub_frame(&b, seq, kind, data);
	struct frame *f = buf_failed(&b) ? NULL : malloc(sizeof *f + b.len);
	if (f) {
		atomic_init(&f->refs, 1);
		f->live = false;
		f->n = (uint32_t)b.len;
		memcpy(f->text, b.data, b.len);
	}
	return f;
}

static atomic_size_t live_bytes;

struct frame *hub_new_live(const char *kind, struct bytes data, size_t most)
{
	size_t n = strlen(kind) + data.n + 16;
	struct frame *f = live_bytes + n > most ? NULL :
						  malloc(sizeof *f + n);
	if (!f)
		return NULL;
	int head = snprintf(f->text, n, "event: %s\ndata: ", kind);
	memcpy(f->text + head, data.p, data.n);
	memcpy(f->text + head + (int)data.n, "\n\n", 2);
	f->n = (uint32_t)((size_t)head + data.n + 2);
	f->live = true;
	atomic_init(&f->refs, 1);
	live_bytes += f->n;
	return f;
}

void hub_release(struct frame **f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (atomic_fetch_sub(&f[i]->refs, 1) != 1)
			continue;
		if (f[i]->live)
			live_bytes -= f[i]->n;
		free(f[i]);
	}
}

static void drop_first(struct hub *h)
{
	struct frame **slot = &h->ring[h->first++ % HUB_RING];
	h->bytes -= (*slot)->n;
	hub_release(slot, 1);
	*slot = NULL;
}

static void drop_all(struct hub *h)
{
	while (h->ring && h->first < h->end)
		drop_first(h);
}

bool hub_has_streams(const struct hub *h)
{
	for (int i = 0; i < LOOPS_MAX; i++)
		if (h->channel[i] && h->channel[i]->stream_n)
			return true;
	return false;
}

/* Without streams, or without memory, the ring starts anew after this event:
 * who needs it frames it from the log. */
void hub_publish(struct hub *h, uint64_t seq, const char *kind,
		 struct bytes data)
{
	struct frame *f = NULL;
	bool wanted = hub_has_streams(h);
	if (wanted && !h->ring)
		h->ring = calloc(HUB_RING, sizeof(struct frame *));
	if (wanted && h->ring)
		f = frame_new(seq, kind, data);
	if (!f || seq != h->end)
		drop_all(h);
	if (!f) {
		h->first = h->end = seq + 1;
		return;
	}
	if (h->first == h->end)
		h->first = seq;
	while (h->first < seq && (seq - h->first >= HUB_RING ||
				  h->bytes + f->n > HUB_RING_BYTES))
		drop_first(h);
	h->ring[seq % HUB_RING] = f;
	h->bytes += f->n;
	h->end = seq + 1;
}

void hub_wake(struct hub *h)
{
	for (int i = 0; i < LOOPS_MAX; i++) {
		struct channel *ch = h->channel[i];
		if (!ch || ch->posted || ch->stream_n == 0)
			continue;
		ch->posted = true;
		state_ref(ch->session);
		loop_post(i, &ch->mail);
	}
}

size_t hub_gather(struct hub *h, uint64_t seq, struct frame **out)
{
	size_t n = 0;
	if (seq < h->first)
		return 0;
	for (; seq < h->end && n < HUB_GATHER; seq++, n++) {
		out[n] = h->ring[seq % HUB_RING];
		atomic_fetch_add(&out[n]->refs, 1);
	}
	return n;
}

void hub_free(struct hub *h)
{
	if (h->ring)
		drop_all(h);
	live_free(h);
	free(h->ring);
	for (int i = 0; i < LOOPS_MAX; i++)
		free(h->channel[i]);
	*h = (struct hub){ 0 };
}
