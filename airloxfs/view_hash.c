/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "airloxfs/view_hash.h"
#include "core/payload.h"

#define FRAME 4			/* of a payload: length of the meta */
#define LOCAL 30		/* of a zip: fixed part of an entry's header */
#define LOCAL_SIG "PK\3\4"
#define SIZE_AT 18		/* in it: compressed size, then the true one */
#define NAME_AT 26		/* length of the name */

struct view_hash {
	struct hash *h;
	uint64_t text_n, at;	/* of the payload; how much of it passed */
	bool zip, decided;
	uint8_t frame[FRAME], local[LOCAL];
	uint64_t body, from, to;
};

struct view_hash *view_hash_new(uint64_t text_n, bool zip)
{
	struct view_hash *v = calloc(1, sizeof *v);
	if (v)
		v->h = hash_new();
	if (!v || !v->h) {
		free(v);
		return NULL;
	}
	v->text_n = text_n;
	v->zip = zip;
	return v;
}

void view_hash_free(struct view_hash *v)
{
	if (!v)
		return;
	hash_free(v->h);
	free(v);
}

static uint32_t u32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[1] << 8 | p[0];
}

/* A stored entry that, with what zip_wrap_* put around it, is all there is. */
static void guess(struct view_hash *v)
{
	uint64_t n = (uint64_t)v->local[NAME_AT] |
		     (uint64_t)v->local[NAME_AT + 1] << 8;
	uint64_t extra = ZIP_WRAP_MAX_BYTES - 2 * 255 + 2 * n;
	uint64_t all = v->text_n - v->body;
	v->decided = true;
	v->from = v->body;
	v->to = v->text_n;
	if (memcmp(v->local, LOCAL_SIG, 4) != 0 || all < extra ||
	    u32(v->local + SIZE_AT) != all - extra)
		return;
	v->from += LOCAL + n;
	v->to = v->from + all - extra;
	/* what was looked at is a part of the entry's header: not hashed */
}

/* A piece of the payload that begins at v->at: what of it is shown. */
static void take_shown(struct view_hash *v, const uint8_t *p, size_t n)
{
	uint64_t a = v->at > v->from ? v->at : v->from;
	uint64_t b = v->at + n < v->to ? v->at + n : v->to;
	if (a < b)
		hash_add(v->h, p + (a - v->at), (size_t)(b - a));
}

/* How many of the n bytes belong to a part that starts at `from` and has room
 * for `size`; they are kept in it. */
static size_t keep(struct view_hash *v, uint8_t *to, uint64_t from, size_t size,
		   const uint8_t *p, size_t n)
{
	if (v->at < from || v->at >= from + size)
		return 0;
	size_t left = (size_t)(from + size - v->at);
	size_t take = n < left ? n : left;
	memcpy(to + (v->at - from), p, take);
	return take;
}

static int take(void *arg, const void *bytes, size_t n)
{
	struct view_hash *v = arg;
	for (const uint8_t *p = bytes; n;) {
		size_t step = keep(v, v->frame, 0, FRAME, p, n);
		if (v->at + step >= FRAME && !v->body)
			v->body = FRAME + ((uint64_t)v->frame[0] << 24 |
					   (uint64_t)v->frame[1] << 16 |
					   (uint64_t)v->frame[2] << 8 |
					   v->frame[3]);
		if (!step && v->at < v->body)
			step = n < v->body - v->at ? n
						   : (size_t)(v->body - v->at);
		bool looks = v->zip && v->body &&
			     v->text_n >= v->body + LOCAL;
		if (!step && looks && v->at < v->body + LOCAL)
			step = keep(v, v->local, v->body, LOCAL, p, n);
		if (!step && !v->decided) {
			if (looks)
				guess(v);
			v->from = v->decided ? v->from : v->body;
			v->to = v->decided ? v->to : v->text_n;
			v->decided = true;
			if (looks && v->from == v->body)
				hash_add(v->h, v->local, LOCAL);
		}
		if (!step) {
			take_shown(v, p, n);
			step = n;
		}
		v->at += step;
		p += step;
		n -= step;
	}
	return 0;
}

struct zip_sink view_hash_sink(struct view_hash *v)
{
	return (struct zip_sink){ take, v };
}

bool view_hash_final(struct view_hash *v, uint64_t off, uint64_t n,
		     uint8_t sum[HASH_SIZE])
{
	if (!v->decided || v->at != v->text_n || off != v->from ||
	    off + n != v->to)
		return false;
	hash_final(v->h, sum);
	return true;
}
