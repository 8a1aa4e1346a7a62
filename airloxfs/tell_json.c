/* SPDX-License-Identifier: MIT */
#include "airloxfs/line.h"
#include "airloxfs/tell_json.h"
#include "core/host/clock.h"
#include "core/json.h"

void tell_json_str(struct tell_json *j, const char *key, struct bytes v)
{
	json_put_key(j->line, key);
	json_put_string(j->line, v);
}

void tell_json_int(struct tell_json *j, const char *key, int64_t v)
{
	json_put_key(j->line, key);
	json_put_int(j->line, v);
}

struct tell_json tell_json_begin(struct buf *line, const char *event)
{
	struct tell_json j = { line };
	buf_add_byte(line, '{');
	tell_json_str(&j, "event", bytes_str(event));
	tell_json_int(&j, "time", clock_now_ms());
	return j;
}

void tell_json_end(struct mount *m, struct tell_json *j)
{
	buf_add_str(j->line, "}\n");
	if (!buf_failed(j->line) && m->events)
		line_append(m, m->events, buf_bytes(j->line));
}
