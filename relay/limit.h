/* SPDX-License-Identifier: MIT
 *
 * limit: how much of everything.  0 stands for "no limit" where the option
 * says so. */
#ifndef RELAY_LIMIT_H
#define RELAY_LIMIT_H

#include "core/buf.h"
#include "relay/addr.h"

struct limits {
	int64_t item_bytes, session_bytes, ttl_ms;
	uint32_t sessions, participants, items, wants;
	bool never;		/* sessions without an end are allowed */
	uint32_t sessions_hour;	/* made from one address; 0: any */
	uint32_t items_minute;	/* of one participant; 0: any */
	int64_t transfer_day;	/* blob bytes of one session; 0: any */
	uint32_t streams, streams_each;	/* in all; of one participant */
	int64_t free_bytes;	/* what must stay free on the disk */
	int64_t claim_ms;	/* for a runner to take a job it is given */
	int64_t silent_ms;	/* a runner that is silent so long is offline */
	struct addr_set proxies, metrics;	/* trusted; who may scrape */
	uint32_t connections;	/* from RLIMIT_NOFILE */
	/* of one address: at a time (0, until the start: half of all); a
	 * minute (0: any) */
	uint32_t address_connections, address_minute;
};

extern const struct limits limit_defaults;
void limit_put(const struct limits *l, struct buf *out);	/* JSON */

#define MINUTE_MS (60 * 1000)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

#endif
