/* SPDX-License-Identifier: MIT
 *
 * verdict: from how a sandbox ended to the verb and words for its sender. */
#ifndef AIRLOX_QUEUE_VERDICT_H
#define AIRLOX_QUEUE_VERDICT_H

#include "core/buf.h"
#include "runner/sandbox/box.h"

struct verdict {
	/* in */
	bool cancelled, stopped;	/* why it was killed */
	char said[256];			/* the first line of its stderr */
	/* out */
	const char *verb;	/* "done", "failed" or "timed_out" */
	bool has_exit;
	struct buf reason;	/* sentences joined by "; ", or empty */
};

void verdict_make(struct verdict *v, const struct box_end *end,
		  const struct plan_limits *limits, enum cgroup_kind kind);
void verdict_add(struct verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void verdict_free(struct verdict *v);

#endif
