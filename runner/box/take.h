/* SPDX-License-Identifier: MIT
 *
 * take: which changes of a copy are applied: all, or those that the person at
 * the terminal says yes to. */
#ifndef RUNNER_BOX_TAKE_H
#define RUNNER_BOX_TAKE_H

#include "runner/box/apply.h"
#include "runner/box/files.h"

/* Applies changes of one tree; each gets its `applied`.  Gives how many that
 * were wanted could not be. */
size_t take_changes(struct apply *a, struct changes *c, enum files_apply how,
		    const char *original, bool failed);

#endif
