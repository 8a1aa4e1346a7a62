/* SPDX-License-Identifier: MIT
 *
 * attach: a run seen from a terminal: what was, then what comes, and the
 * answers to its questions. */
#ifndef RUNNER_BOX_ATTACH_H
#define RUNNER_BOX_ATTACH_H

#include "runner/box/rundir.h"

enum attach_how {
	ATTACH_OVER,	/* the run has ended: *code is its */
	ATTACH_LEFT,	/* we go, it goes on */
	ATTACH_CUT	/* its owner is no more: reap finishes it */
};

/* `ours`: an interrupt is for the run; else it only ends the watching. */
enum attach_how attach_follow(struct rundir *d, bool ours, int *code);
int attach_main(int argc, char **argv);	/* exit code */

#endif
