/* SPDX-License-Identifier: MIT
 *
 * keeper: the process that watches over one sandbox (box.h). */
#ifndef AIRLOX_SANDBOX_KEEPER_H
#define AIRLOX_SANDBOX_KEEPER_H

#include "runner/sandbox/box.h"

#define BOX_GO 'g'	/* on control: what is held may start */

/* In the forked child.  io: what becomes 0 (-1: nothing), 1 and 2.  Gives its end as a struct box_end on control, keeps
 * scratch until control is closed, then removes it and exits 0. */
_Noreturn void keeper_run(const struct box_ask *ask, struct cgroup *cgroup,
			  int control, const int io[3]);

#endif
