/* SPDX-License-Identifier: MIT
 *
 * rate: so much in a period, and when there is room again.  A bucket is one
 * number: the time at which it is full again.  It starts full, so a whole
 * period's worth may come at once. */
#ifndef RELAY_RATE_H
#define RELAY_RATE_H

#include "relay/addr.h"

struct rate {
	int64_t full_us;
};

/* Takes `cost` of a bucket that holds `most` and fills within period_ms.  0,
 * or nothing is taken and the milliseconds after which it would be.  A cost
 * beyond `most` is let through when the bucket is full.  most 0: no limit. */
int64_t rate_take(struct rate *r, double cost, double most, int64_t period_ms,
		  int64_t now_ms);

/* Buckets by address, in fixed memory: where there is no room the one that
 * has least to wait is forgotten.  Guarded by its owner. */
struct rate_table;
struct rate_table *rate_table_new(void);	/* NULL: out of memory */
void rate_table_free(struct rate_table *t);
int64_t rate_table_take(struct rate_table *t, struct addr a, double most,
			int64_t period_ms, int64_t now_ms);

#endif
