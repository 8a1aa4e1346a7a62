/* SPDX-License-Identifier: MIT
 *
 * view_hash: the SHA-256 of what in/ will show of a file, while its plaintext
 * passes for the first time.  What will be shown is known only once all has
 * been verified; so this guesses (a file's body, or the one entry of what
 * zip_wrap_* make), and whoever knows asks for that range. */
#ifndef AIRLOXFS_VIEW_HASH_H
#define AIRLOXFS_VIEW_HASH_H

#include <stdbool.h>

#include "core/hash.h"
#include "core/zip.h"

struct view_hash;

/* For a payload of text_n bytes; zip: it may be a wrap.  NULL: memory. */
struct view_hash *view_hash_new(uint64_t text_n, bool zip);
/* The payload's bytes, in order; a zip_sink of it. */
struct zip_sink view_hash_sink(struct view_hash *v);
/* True where [off, off + n) of the payload was guessed, and all of it passed. */
bool view_hash_final(struct view_hash *v, uint64_t off, uint64_t n,
		     uint8_t sum[HASH_SIZE]);
void view_hash_free(struct view_hash *v);

#endif
