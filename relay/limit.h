/* SPDX-License-Identifier: MIT
 *
 * limit: how much of everything. */
#ifndef RELAY_LIMIT_H
#define RELAY_LIMIT_H

#include "core/buf.h"

struct limits {
	int64_t item_bytes, session_bytes, ttl_ms;
	uint32_t sessions, participants, items, wants;
	bool never;		/* sessions without an end are allowed */
	uint32_t connections;	/* from RLIMIT_NOFILE */
};

extern const struct limits limit_defaults;
void limit_put(const struct limits *l, struct buf *out);	/* JSON */

#endif
