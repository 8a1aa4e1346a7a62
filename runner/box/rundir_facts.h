/* SPDX-License-Identifier: MIT
 *
 * rundir_facts: the facts of a run as canonical JSON, and back. */
#ifndef RUNNER_BOX_RUNDIR_FACTS_H
#define RUNNER_BOX_RUNDIR_FACTS_H

#include "runner/box/rundir.h"

void rundir_facts_put(struct buf *out, const struct rundir *d);
/* All but run and the descriptors.  ERR_INVALID: nothing of d is changed. */
int rundir_facts_read(struct rundir *d, struct bytes text, struct err *e);

#endif
