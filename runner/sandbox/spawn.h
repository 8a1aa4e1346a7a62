/* SPDX-License-Identifier: MIT
 *
 * spawn: bubblewrap, started as the plan says: the one loop that executes it.
 *
 * Between fork and exec, in this order: into the control group, the limits,
 * descriptors to their numbers and all others closed, the job's user, death
 * with the keeper. */
#ifndef AIRLOX_SANDBOX_SPAWN_H
#define AIRLOX_SANDBOX_SPAWN_H

#include "runner/sandbox/box.h"

struct spawned {
	pid_t bwrap;
	int info;	/* bubblewrap says the pid of its child here */
	int block;	/* one byte written lets the sandbox start */
};

/* io becomes 0, 1 and 2; io[0] of -1 is /dev/null. */
int spawn_bwrap(struct spawned *s, const struct box_ask *ask,
		const struct cgroup *cgroup, const int io[3],
		struct err *e);

/* The pid of the sandbox's first process, once bubblewrap has said it; -1 if
 * it never does, because it failed. */
pid_t spawn_first(const struct spawned *s);

/* The limits that are set inside. */
int spawn_limit(pid_t first, const struct box_ask *ask);
/* The start. */
int spawn_release(struct spawned *s);

#endif
