/* SPDX-License-Identifier: MIT
 *
 * Names in an archive: what they are, and which of them cannot live in one
 * directory on a disk that does not tell case or composition apart. */
#include <string.h>
#include <unicase.h>
#include <uninorm.h>

#include "core/clear.h"
#include "core/zip_parts.h"

/* Code page 437 from 0x80, for names without the UTF-8 flag. */
static const uint16_t cp437[128] = {
	0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7,
	0x00ea, 0x00eb, 0x00e8, 0x00ef, 0x00ee, 0x00ec, 0x00c4, 0x00c5,
	0x00c9, 0x00e6, 0x00c6, 0x00f4, 0x00f6, 0x00f2, 0x00fb, 0x00f9,
	0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192,
	0x00e1, 0x00ed, 0x00f3, 0x00fa, 0x00f1, 0x00d1, 0x00aa, 0x00ba,
	0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb,
	0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561, 0x2562, 0x2556,
	0x2555, 0x2563, 0x2551, 0x2557, 0x255d, 0x255c, 0x255b, 0x2510,
	0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f,
	0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567,
	0x2568, 0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256b,
	0x256a, 0x2518, 0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580,
	0x03b1, 0x00df, 0x0393, 0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4,
	0x03a6, 0x0398, 0x03a9, 0x03b4, 0x221e, 0x03c6, 0x03b5, 0x2229,
	0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
	0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0,
};

int zip_name_decode(struct buf *out, struct bytes raw, bool utf8,
		    struct err *e)
{
	if (utf8 && !clear_utf8(raw))
		return err_set(e, ERR_INVALID, "a name is not valid UTF-8");
	for (size_t i = 0; i < raw.n; i++) {
		if (utf8 || raw.p[i] < 0x80)
			buf_add_byte(out, raw.p[i]);
		else
			clear_put(out, cp437[raw.p[i] - 0x80]);
	}
	return out->failed ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

/* A path as it is compared: NFC, then full lower case (not folded). */
struct key {
	uint8_t *s;
	size_t n;
	bool is_dir;
};

static int key_make(struct key *key, const struct zip_entry *entry,
		    struct err *e)
{
	size_t n = 0;
	cleanup_free uint8_t *nfc =
		u8_normalize(UNINORM_NFC, (const uint8_t *)entry->path,
			     strlen(entry->path), NULL, &n);

	if (nfc)
		key->s = u8_tolower(nfc, n, NULL, NULL, NULL, &key->n);
	if (!key->s)
		return err_set(e, ERR_MEMORY, "out of memory");
	key->is_dir = entry->is_dir;
	return 0;
}

static int key_order(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int r = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);

	return r ? r : x->n < y->n ? -1 : x->n > y->n;
}

/* A file may not be where another entry's path needs a directory. */
static bool under_file(const struct key *keys, size_t n, const struct key *key)
{
	for (size_t i = 0; i < key->n; i++) {
		if (key->s[i] != '/')
			continue;
		struct key parent = { key->s, i, false };
		const struct key *hit = bsearch(&parent, keys, n,
						sizeof *keys, key_order);
		if (hit && !hit->is_dir)
			return true;
	}
	return false;
}

static int check_keys(struct key *keys, const struct zip_list *list,
		      struct err *e)
{
	for (size_t i = 0; i < list->n; i++)
		if (key_make(&keys[i], &list->v[i], e))
			return -1;
	qsort(keys, list->n, sizeof *keys, key_order);
	for (size_t i = 1; i < list->n; i++)
		if (key_order(&keys[i - 1], &keys[i]) == 0)
			return err_set(e, ERR_INVALID,
				       "two entries have one name");
	for (size_t i = 0; i < list->n; i++)
		if (under_file(keys, list->n, &keys[i]))
			return err_set(e, ERR_INVALID,
				       "an entry lies below a file");
	return 0;
}

int zip_name_clash(const struct zip_list *list, struct err *e)
{
	struct key *keys = calloc(list->n + 1, sizeof *keys);

	if (!keys)
		return err_set(e, ERR_MEMORY, "out of memory");
	int r = check_keys(keys, list, e);
	for (size_t i = 0; i < list->n; i++)
		free(keys[i].s);
	free(keys);
	return r;
}
