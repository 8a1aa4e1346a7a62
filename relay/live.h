/* SPDX-License-Identifier: MIT
 *
 * live: a running job's output on its way to the streams.  A frame has no
 * number and is kept nowhere: it waits at most two seconds in a small ring per
 * session, and a stream that has no room by then never gets it.  It comes in
 * its place among the events: after those that were there when it came.
 *
 * Memory: LIVE_RING frames a session, one more per stream that is stuck in
 * the middle of one, and LIVE_BYTES_MAX in the whole relay.  Under the
 * state's lock. */
#ifndef RELAY_LIVE_H
#define RELAY_LIVE_H

#include "relay/hub.h"

#define LIVE_RING 16
#define LIVE_BYTES_MAX (32u << 20)
#define LIVE_MS 2000

struct live_frame {
	struct frame *frame;	/* a reference */
	uint64_t after;		/* events before it */
	int64_t at_ms;
};

struct live {
	struct live_frame slot[LIVE_RING];
	uint64_t first, end;	/* slots by number, modulo */
};

/* -1 where there is no memory for it.  It goes nowhere without a stream. */
int live_publish(struct hub *h, uint64_t after, struct bytes data,
		 int64_t now_ms);
/* The next that a stream which has seen *seen has not, where `cursor` events
 * are sent: with a reference, *seen is moved on.  NULL: none yet; *until is
 * then how far the events may go before it. */
struct frame *live_next(const struct hub *h, uint64_t *seen, uint64_t cursor,
			uint64_t *until);
/* Where a new stream begins.  One that comes back and missed no event is
 * given what still waits; for another its place among the events is over. */
uint64_t live_begin(const struct hub *h, bool resumed);
bool live_waits(const struct hub *h);	/* anything at all */
void live_expire(struct hub *h, int64_t now_ms);
void live_free(struct hub *h);

#endif
