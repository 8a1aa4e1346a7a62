/* SPDX-License-Identifier: MIT
 *
 * begin: the directory of a run that was asked for on a command line. */
#ifndef RUNNER_BOX_BEGIN_H
#define RUNNER_BOX_BEGIN_H

#include "runner/box/flags.h"
#include "runner/box/rundir.h"

/* Makes it, with what is known at the start; *journal is the broker's account
 * in it, open for writing.  -1 with e filled: rundir_remove d nevertheless. */
int begin_run(struct rundir *d, const struct flags *o, int *journal,
	      struct err *e);

#endif
