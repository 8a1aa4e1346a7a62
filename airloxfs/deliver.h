/* SPDX-License-Identifier: MIT
 *
 * deliver: what arrives from the relay.
 *
 * One thread owns the event stream and applies each event in order.  Items go
 * to lanes that fetch, verify and reveal them: one lane for those below 1 MiB,
 * in order; three for larger ones, so that nothing waits for a large one.  A
 * last thread acknowledges what is durable, and asks for what is missing.
 *
 * The cursor: the newest event before which everything is settled (shown,
 * refused, ours, or noted as pending); from there the stream goes on at the
 * next mount. */
#ifndef AIRLOXFS_DELIVER_H
#define AIRLOXFS_DELIVER_H

#include "airloxfs/mount.h"

struct deliver *deliver_new(struct mount *m, int64_t cursor, struct err *e);
void deliver_free(struct deliver *d);	/* ends the threads first */

/* The relay is back: whoever waits to try again does so now. */
void deliver_kick(struct mount *m);
void deliver_reconnect(struct mount *m);	/* now, not after the delay */
/* An item that was verified once and whose blob is damaged or gone. */
void deliver_refetch(struct mount *m, const char *id);
/* Asks again for a pending one.  False: none of this seq is pending. */
bool deliver_want(struct mount *m, uint64_t seq);

#endif
