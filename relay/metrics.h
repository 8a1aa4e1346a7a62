/* SPDX-License-Identifier: MIT
 *
 * metrics: what is counted, for /metrics.  Relaxed counters: each is right,
 * together they are of about one moment. */
#ifndef RELAY_METRICS_H
#define RELAY_METRICS_H

#include <stdatomic.h>

#include "core/buf.h"

struct metrics {
	atomic_ullong answers[6];	/* by the status's first digit */
	atomic_ullong limited;		/* answered 429 */
	atomic_ullong items, joins, evictions;
	atomic_ullong batches, write_failures;
	atomic_ullong live_frames;
	atomic_ullong events_sent, bytes_in, bytes_out;
	atomic_uint streams, connections;
	atomic_uint jobs[2];		/* open ones: assigned, running */
	atomic_ullong jobs_ended[2];	/* done, failed; since the start */
};

#define METRIC_ADD(counter, n) \
	atomic_fetch_add_explicit(&(counter), (n), memory_order_relaxed)

struct state;
void metrics_put(struct state *st, struct buf *out);	/* takes its lock */

#endif
