/* SPDX-License-Identifier: MIT
 *
 * say: what one open of it writes is a text message, sent when the last
 * descriptor of that open is closed.  One trailing newline is dropped. */
#ifndef AIRLOXFS_SAY_H
#define AIRLOXFS_SAY_H

#include "airloxfs/fs.h"

extern const struct node_ops say_ops;
/* The commit rule of out/, for bytes that one open collects in h->bytes: whether
 * this flush is the last; a killed writer's bytes are dropped. */
bool say_is_complete(struct handle *h, pid_t tid);

#endif
