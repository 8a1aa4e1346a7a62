/* SPDX-License-Identifier: MIT
 *
 * cgroup: one group of processes and what it may use: version 2 where the
 * kernel has memory and pids there and we may make groups, else version 1,
 * else none (then plan.h's rlimits and watch.h hold what they can).
 *
 * Groups are made below the one this process is in; for root with version 2,
 * where others are in that too, at the top. */
#ifndef AIRLOX_SANDBOX_CGROUP_H
#define AIRLOX_SANDBOX_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "runner/sandbox/plan.h"

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };
enum cgroup_part { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_PARTS };

/* What this host offers.  In version 2 all parts are one directory. */
struct cgroup_host {
	enum cgroup_kind kind;
	char dir[CGROUP_PARTS][PATH_MAX];	/* "" where it is missing */
	char why_not[160];			/* with CGROUP_NONE */
};

/* Never fails: at worst CGROUP_NONE.  It makes and removes a group to see.
 * With version 2 this process moves itself into a group of its own beside
 * those to come, as that version demands. */
void cgroup_find(struct cgroup_host *h);
const char *cgroup_word(enum cgroup_kind kind);	/* "cgroup v2", ... */

/* A name of a group of this process: "airlox-runner.NS.PID.WORD".  NS is its
 * pid namespace, in which alone PID says who that is: a container next door
 * must not take us for gone. */
#define CGROUP_NAME_MAX 96
void cgroup_name(char to[CGROUP_NAME_MAX], const char *word);
/* Removes groups that runners which are no more left under h, killing what is
 * in them. */
void cgroup_sweep(const struct cgroup_host *h);

struct cgroup {
	enum cgroup_kind kind;
	int n;				/* directories */
	char dir[CGROUP_PARTS][PATH_MAX];
	int memory, pids;		/* index into dir, or -1 */
	int enter[CGROUP_PARTS];	/* cgroup.procs, open for writing */
};

/* A group with the limits; none is made where the host has none.  name is
 * unique on this host and has the pid of the runner in it. */
int cgroup_make(struct cgroup *g, const struct cgroup_host *h,
		const char *name, const struct plan_limits *limits,
		struct err *e);
/* The calling process moves into g; async-signal-safe.  0 or -1. */
int cgroup_enter(const struct cgroup *g);
void cgroup_close(struct cgroup *g);	/* the descriptors only */

struct cgroup_seen {
	uint64_t peak_bytes;	/* 0: not known */
	uint64_t memory_kills;	/* processes killed for memory */
	uint64_t task_refusals;	/* forks refused */
};
void cgroup_look(const struct cgroup *g, struct cgroup_seen *seen);

/* SIGKILL to all that is in it, again and again until it is empty; false if
 * something is left after two seconds. */
bool cgroup_kill(const struct cgroup *g);
/* It must be empty.  Tries for two seconds. */
void cgroup_remove(const struct cgroup *g);

#endif
