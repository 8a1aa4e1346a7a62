/* SPDX-License-Identifier: MIT
 *
 * Open addressing over the ids' 16 bytes.  Ids are chosen by their authors,
 * so the slot comes from a keyed hash. */
#include <string.h>

#include "core/enc.h"
#include "core/host/ids.h"
#include "core/item.h"

#define BYTES 16

struct ids {
	uint8_t (*v)[BYTES];
	bool *used;
	size_t n, cap;		/* cap is a power of two */
	uint8_t key[16];
};

struct ids *ids_new(void)
{
	struct ids *s = calloc(1, sizeof *s);
	if (s)
		prim_random(s->key, sizeof s->key);
	return s;
}

/* The slot that holds id, or the free one where it would go. */
static size_t slot_of(const struct ids *s, const uint8_t id[BYTES])
{
	uint8_t h[BYTES];
	size_t at;
	prim_blake2b(h, sizeof h, id, BYTES, s->key, sizeof s->key);
	memcpy(&at, h, sizeof at);
	for (at &= s->cap - 1; s->used[at]; at = (at + 1) & (s->cap - 1))
		if (!memcmp(s->v[at], id, BYTES))
			break;
	return at;
}

static void put(struct ids *s, const uint8_t id[BYTES])
{
	size_t at = slot_of(s, id);
	if (s->used[at])
		return;
	memcpy(s->v[at], id, BYTES);
	s->used[at] = true;
	s->n++;
}

static bool grow(struct ids *s)
{
	struct ids old = *s;
	size_t cap = s->cap ? 2 * s->cap : 64;
	if (2 * (s->n + 1) <= s->cap)
		return true;
	uint8_t (*v)[BYTES] = calloc(cap, BYTES);
	bool *used = calloc(cap, sizeof *used);
	if (!v || !used) {
		free(v);
		free(used);
		return false;
	}
	s->v = v;
	s->used = used;
	s->cap = cap;
	s->n = 0;
	for (size_t i = 0; i < old.cap; i++)
		if (old.used[i])
			put(s, old.v[i]);
	free(old.v);
	free(old.used);
	return true;
}

bool ids_has(const struct ids *s, const char *item_id)
{
	uint8_t id[BYTES];
	return s->cap && enc_b64_fixed(id, BYTES, bytes_str(item_id)) == 0 &&
	       s->used[slot_of(s, id)];
}

bool ids_add(struct ids *s, const char *item_id)
{
	uint8_t id[BYTES];
	if (ids_has(s, item_id) ||
	    enc_b64_fixed(id, BYTES, bytes_str(item_id)) < 0 || !grow(s))
		return false;
	put(s, id);
	return true;
}

void ids_free(struct ids *s)
{
	if (!s)
		return;
	free(s->v);
	free(s->used);
	free(s);
}
