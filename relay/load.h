/* SPDX-License-Identifier: MIT
 *
 * load: from the log to the state, at start: every fact in order, what a
 * crash left of purges finished, what nobody names swept away. */
#ifndef RELAY_LOAD_H
#define RELAY_LOAD_H

#include "relay/state.h"

/* st has its store and blobs, and no pool yet. */
int load_state(struct state *st, struct err *e);

#endif
