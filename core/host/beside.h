/* SPDX-License-Identifier: MIT
 *
 * beside: a second thread that goes over what this one has prepared, a chunk
 * behind: a hash of a large item costs no time of its own where there is a
 * second core.  Small ones, and where no thread can be had, are gone over at
 * once. */
#ifndef AIRLOX_HOST_BESIDE_H
#define AIRLOX_HOST_BESIDE_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define BESIDE_CHUNK (128 * 1024)

struct beside;

/* `take` gets each chunk, in order; what it writes to is its own until
 * beside_wait.  `total`: at most so many bytes will come. */
struct beside *beside_new(uint64_t total,
			  void (*take)(void *arg, const void *p, size_t n),
			  void *arg, struct err *e);
/* Room for BESIDE_CHUNK bytes (or total, if less); beside_give hands over the first n of them, and
 * the room with them. */
uint8_t *beside_room(struct beside *b);
void beside_give(struct beside *b, size_t n);
void beside_wait(struct beside *b);	/* until all of it was taken */
void beside_free(struct beside *b);	/* waits; wipes */

#endif
