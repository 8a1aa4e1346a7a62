/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "airloxfs/kept.h"
#include "core/clear.h"
#include "core/prim.h"

#define MARKER_END " bytes skipped]\n"
#define MARKER_MAX 48		/* "\n[18446744073709551615 bytes skipped]\n" */

/* --- writing --- */

static void ring_add(struct kept *k, const uint8_t *p, size_t n)
{
	if (n > KEPT_HALF) {
		p += n - KEPT_HALF;
		n = KEPT_HALF;
	}
	while (n) {
		size_t room = KEPT_HALF - k->ring_at;
		size_t step = n < room ? n : room;
		memcpy(k->ring + k->ring_at, p, step);
		k->ring_at = (k->ring_at + step) % KEPT_HALF;
		k->ring_n += step;
		p += step;
		n -= step;
	}
	if (k->ring_n > KEPT_HALF)
		k->ring_n = KEPT_HALF;
}

/* What comes while a frame waits to be sent, and does not fit it, is left out
 * until that frame is gone. */
static void live_add(struct kept *k, const uint8_t *p, size_t n)
{
	size_t room = k->live_skipped ? 0 : KEPT_LIVE - k->live.len;
	size_t fits = n < room ? n : room;
	buf_add(&k->live, p, fits);
	k->live_skipped += n - fits;
}

void kept_add(struct kept *k, const void *p, size_t n)
{
	const uint8_t *at = p;
	size_t room = KEPT_HALF - k->head.len;
	size_t first = n < room ? n : room;
	k->total += n;
	live_add(k, at, n);
	buf_add(&k->head, at, first);
	if (n > first && !k->ring)
		k->ring = malloc(KEPT_HALF);
	if (n > first && k->ring)
		ring_add(k, at + first, n - first);
	k->failed |= k->head.failed || k->live.failed ||
		     (n > first && !k->ring);
}

void kept_reset(struct kept *k)
{
	buf_reset(&k->head);
	k->ring_n = k->ring_at = 0;
	k->total = 0;
}

void kept_free(struct kept *k)
{
	buf_free(&k->head);
	buf_free(&k->live);
	if (k->ring)
		prim_wipe(k->ring, KEPT_HALF);
	free(k->ring);
	*k = (struct kept){ 0 };
}

static void put_skipped(struct buf *out, bool nl, uint64_t n)
{
	buf_addf(out, "%s[%llu" MARKER_END, nl ? "" : "\n",
		 (unsigned long long)n);
}

void kept_take_live(struct kept *k, struct buf *out)
{
	buf_reset(out);
	buf_add(out, k->live.data, k->live.len);
	bool nl = k->live.len && k->live.data[k->live.len - 1] == '\n';
	buf_reset(&k->live);
	if (k->live_skipped)
		put_skipped(&k->live, nl, k->live_skipped);
	k->live_skipped = 0;
}

void kept_lost(struct kept *k, size_t n)
{
	uint64_t all = n + k->live.len + k->live_skipped;
	buf_reset(&k->live);
	k->live_skipped = 0;
	put_skipped(&k->live, false, all);
}

/* --- reading --- */

static void ring_read(const struct kept *k, struct buf *out)
{
	size_t from = (k->ring_at + KEPT_HALF - k->ring_n) % KEPT_HALF;
	size_t first = KEPT_HALF - from < k->ring_n ? KEPT_HALF - from
						    : k->ring_n;
	buf_add(out, k->ring + from, first);
	buf_add(out, k->ring, k->ring_n - first);
}

static uint64_t skipped(const struct kept *k)
{
	return k->total - k->head.len - k->ring_n;
}

static void put_marker(struct buf *out, uint64_t n)
{
	put_skipped(out, !out->len || out->data[out->len - 1] == '\n', n);
}

void kept_read(const struct kept *k, struct buf *out)
{
	buf_add(out, k->head.data, k->head.len);
	if (skipped(k))
		put_marker(out, skipped(k));
	if (k->ring_n)
		ring_read(k, out);
}

void kept_clean(struct buf *out, struct bytes s)
{
	for (size_t at = 0; at < s.n;) {
		size_t from = at;
		if (clear_next(s, &at) == UINT32_MAX)
			clear_put(out, 0xfffd);
		else
			buf_add(out, s.p + from, at - from);
	}
}

/* The last characters that fit max bytes. */
static struct bytes last_of(struct bytes s, size_t max)
{
	size_t from = s.n > max ? s.n - max : 0;
	while (from < s.n && (s.p[from] & 0xc0) == 0x80)
		from++;
	return (struct bytes){ s.p + from, s.n - from };
}

/* Start and end of what is in two parts, `gap` bytes apart. */
static bool put_ends(struct buf *out, struct bytes a, struct bytes b,
		     uint64_t gap, size_t max)
{
	size_t half = max / 2 > MARKER_MAX ? max / 2 - MARKER_MAX : 0;
	if (!gap && a.n + b.n <= max) {
		buf_add(out, a.p, a.n);
		buf_add(out, b.p, b.n);
		return false;
	}
	struct bytes end = last_of(b, half);
	gap += b.n - end.n;
	size_t keep = clear_cut(a, half);
	gap += a.n - keep;
	buf_add(out, a.p, keep);
	if (max >= 2 * MARKER_MAX)
		put_marker(out, gap);
	buf_add(out, end.p, end.n);
	return true;
}

bool kept_text(const struct kept *k, struct buf *out, size_t max)
{
	cleanup_buf struct buf a = { 0 }, b = { 0 }, tail = { 0 };
	uint64_t gap = skipped(k);
	buf_add(&a, k->head.data, k->head.len);
	if (k->ring_n)
		ring_read(k, &tail);
	if (!gap) {		/* one text: a character may be in both */
		buf_add(&a, tail.data, tail.len);
		kept_clean(&b, buf_bytes(&a));
		return kept_cut(buf_bytes(&b), out, max);
	}
	buf_reset(&a);
	kept_clean(&a, buf_bytes(&k->head));
	kept_clean(&b, buf_bytes(&tail));
	out->failed |= a.failed || b.failed || tail.failed;
	return put_ends(out, buf_bytes(&a), buf_bytes(&b), gap, max);
}

bool kept_cut(struct bytes text, struct buf *out, size_t max)
{
	size_t half = text.n / 2;
	while (half < text.n && (text.p[half] & 0xc0) == 0x80)
		half++;
	return put_ends(out, (struct bytes){ text.p, half },
			(struct bytes){ text.p + half, text.n - half }, 0,
			max);
}

/* --- going on after frames --- */

static size_t find_marker(struct bytes whole)
{
	const uint8_t *end = memmem(whole.p, whole.n, MARKER_END,
				    sizeof MARKER_END - 1);
	const uint8_t *at = end;
	while (at && at > whole.p && *at != '[' && end - at < MARKER_MAX)
		at--;
	return at && *at == '[' ? (size_t)(at - whole.p) : 0;
}

static size_t find_end(struct bytes end, struct bytes whole)
{
	for (size_t at = whole.n; end.n && at >= end.n; at--)
		if (memcmp(whole.p + at - end.n, end.p, end.n) == 0)
			return at;
	return 0;
}

size_t kept_rest(struct bytes seen_end, struct bytes whole)
{
	cleanup_buf struct buf clean = { 0 };
	size_t at = find_end(seen_end, whole);
	if (!at) {	/* frames have the job's bytes, a result has text */
		kept_clean(&clean, last_of(seen_end, seen_end.n));
		at = find_end(buf_bytes(&clean), whole);
	}
	return at ? at : find_marker(whole);
}
