/* SPDX-License-Identifier: MIT
 *
 * state: what airlox-box keeps for its user between runs,
 *
 *	${XDG_STATE_HOME:-~/.local/state}/airlox-box/	0700
 *		key	signs records (record/signer.h)
 *		runs/	a directory for each run (rundir.h) */
#ifndef RUNNER_BOX_STATE_H
#define RUNNER_BOX_STATE_H

#include "core/buf.h"
#include "core/err.h"

/* The directory, or one below it, made where it is missing; -1 with e filled:
 * also where it is not ours alone. */
int state_open(struct err *e);
int state_open_below(const char *name, struct err *e);

#endif
