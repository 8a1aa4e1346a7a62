/* SPDX-License-Identifier: MIT
 *
 * diff: what changed from one text to another, as `diff -u` says it, without
 * the two lines on top.  Any bytes; bounded in time and memory: where the two
 * have little in common, all of one is taken out and all of the other put in. */
#ifndef RUNNER_RECORD_DIFF_H
#define RUNNER_RECORD_DIFF_H

#include "core/buf.h"

/* At most about max bytes, then a line that says how many were left out. */
void diff_put(struct buf *out, struct bytes was, struct bytes is, size_t max);

#endif
