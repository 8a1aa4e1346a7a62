/* SPDX-License-Identifier: MIT
 *
 * fsck: what is wrong with a data directory on which no relay runs.  Changes
 * nothing. */
#ifndef RELAY_FSCK_H
#define RELAY_FSCK_H

#include <stdbool.h>
#include <stdio.h>

#include "core/err.h"

/* A line to out for each fault and a sum.  0: all that was acknowledged is
 * there; -1 with e: some is not (ERR_INVALID), or it cannot be looked at. */
int fsck_run(const char *dir, FILE *out, struct err *e);

/* The lock file of a data directory: made, held and checked; with `look` only
 * checked.  A descriptor of the directory, or -1. */
int fsck_open_data(const char *dir, bool look, struct err *e);

#endif
