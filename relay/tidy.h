/* SPDX-License-Identifier: MIT
 *
 * tidy: gives back the space of log segments that are mostly of sessions that
 * ended.  On the commit thread, which alone makes facts true: what is kept
 * cannot change meanwhile. */
#ifndef RELAY_TIDY_H
#define RELAY_TIDY_H

#include "relay/state.h"

/* One segment, if there is one.  Takes the lock, and leaves it while it
 * writes. */
int tidy_log(struct state *st, struct err *e);

#endif
