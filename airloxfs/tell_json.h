/* SPDX-License-Identifier: MIT
 *
 * tell_json: one JSON line of the file `events`. */
#ifndef AIRLOXFS_TELL_JSON_H
#define AIRLOXFS_TELL_JSON_H

#include "airloxfs/mount.h"

struct tell_json {
	struct buf *line;
};

/* {"event":<word>,"time":<ms> ... fields ... }\n, then to events. */
struct tell_json tell_json_begin(struct buf *line, const char *event);
void tell_json_str(struct tell_json *j, const char *key, struct bytes v);
void tell_json_int(struct tell_json *j, const char *key, int64_t v);
void tell_json_end(struct mount *m, struct tell_json *j);

#endif
