/* SPDX-License-Identifier: MIT
 *
 * trail: an audit trail, checked again without the relay (docs/PROTOCOL.md,
 * section 7).  A line is one canonical JSON object.  The first one holds the
 * signed manifest, a join's its signed join, an item's its envelope and the
 * hash of its blob: these are verified as a peer would.  Everything else (its
 * order, times, who acknowledged what, who left) is the relay's word; of that
 * only is checked that it is about what was there before, and that events are
 * numbered from 0 without a gap. */
#ifndef AIRLOX_HOST_TRAIL_H
#define AIRLOX_HOST_TRAIL_H

#include "core/item.h"

#define TRAIL_LINE_MAX ((size_t)1024 * 1024)

struct trail;

struct trail_sum {
	char session_id[SESSION_ID + 1];	/* "" before the first line */
	uint32_t lines, faults;
	uint64_t events;		/* one more than the newest number */
	uint32_t joins[ROLES], items;	/* that were verified */
	int64_t bytes;			/* of those items' payloads */
	uint32_t words;			/* lines that hold no signature */
};

/* session_id (may be NULL): of the session that it must be about.  manifest
 * (may be empty): the signed one that its first line must hold. */
struct trail *trail_new(const char *session_id, struct bytes manifest,
			struct err *e);
/* A line without its newline.  -1: it does not hold, e says why; the next can
 * be given all the same. */
int trail_line(struct trail *t, struct bytes line, struct err *e);
const struct trail_sum *trail_sum(const struct trail *t);
void trail_free(struct trail *t);

#endif
