/* SPDX-License-Identifier: MIT */
#include "relay/limit.h"
#include "core/item.h"

const struct limits limit_defaults = {
	.item_bytes = MANIFEST_ITEM_MAX,
	.session_bytes = INT64_C(4) << 30,
	.ttl_ms = MANIFEST_TTL_MAX_MS,
	.sessions = 10000,
	.participants = 256,
	.items = 100000,
	.wants = 64,
	.never = true,
	.sessions_hour = 100,
	.items_minute = 6000,
	.transfer_day = INT64_C(64) << 30,
	.streams = 16000,
	.streams_each = 32,
	.free_bytes = INT64_C(128) << 20,
	.claim_ms = 30 * 1000,
	.silent_ms = 30 * 1000,
	.address_minute = 600000,
};

void limit_put(const struct limits *l, struct buf *out)
{
	buf_addf(out, "{\"address_connections\":%u,"
		 "\"address_requests_minute\":%u,\"claim_ms\":%lld,"
		 "\"envelope_bytes\":%d,\"item_bytes\":%lld,"
		 "\"items\":%u,\"items_minute\":%u,\"join_bytes\":%d,"
		 "\"manifest_bytes\":%d,\"min_free_bytes\":%lld,"
		 "\"never\":%s,\"participants\":%u,"
		 "\"runner_silent_ms\":%lld,"
		 "\"session_bytes\":%lld,\"sessions\":%u,"
		 "\"sessions_hour\":%u,\"streams\":%u,\"streams_each\":%u,"
		 "\"transfer_day_bytes\":%lld,\"ttl_ms\":%lld}",
		 l->address_connections, l->address_minute,
		 (long long)l->claim_ms, ENVELOPE_MAX,
		 (long long)l->item_bytes, l->items,
		 l->items_minute, JOIN_MAX, MANIFEST_MAX,
		 (long long)l->free_bytes,
		 l->never ? "true" : "false", l->participants,
		 (long long)l->silent_ms,
		 (long long)l->session_bytes, l->sessions, l->sessions_hour,
		 l->streams, l->streams_each, (long long)l->transfer_day,
		 (long long)l->ttl_ms);
}
