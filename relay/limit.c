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
};

void limit_put(const struct limits *l, struct buf *out)
{
	buf_addf(out, "{\"envelope_bytes\":%d,\"item_bytes\":%lld,"
		 "\"items\":%u,\"join_bytes\":%d,\"manifest_bytes\":%d,"
		 "\"never\":%s,\"participants\":%u,\"session_bytes\":%lld,"
		 "\"sessions\":%u,\"ttl_ms\":%lld}",
		 ENVELOPE_MAX, (long long)l->item_bytes, l->items, JOIN_MAX,
		 MANIFEST_MAX, l->never ? "true" : "false", l->participants,
		 (long long)l->session_bytes, l->sessions,
		 (long long)l->ttl_ms);
}
