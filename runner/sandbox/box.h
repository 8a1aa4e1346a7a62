/* SPDX-License-Identifier: MIT
 *
 * box: one sandbox, from its start to the last trace of it.
 *
 * A keeper, a process of its own, starts bubblewrap, holds the deadline and
 * the limits that the kernel does not hold, kills, reaps (it is a subreaper),
 * reports, and removes control groups and scratch.  It ends when its owner
 * lets go of the control socket, also by dying: whatever happens to the owner,
 * nothing of the sandbox stays.  If the keeper dies, bubblewrap dies with it
 * and the owner removes what is left.
 *
 * As root, bubblewrap and all in the sandbox run as the job's user; keeper and
 * owner stay root and only move files.  Without root all have one user. */
#ifndef AIRLOX_SANDBOX_BOX_H
#define AIRLOX_SANDBOX_BOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"
#include "runner/sandbox/cgroup.h"
#include "runner/sandbox/plan.h"
#include "runner/sandbox/scratch.h"

enum box_how {
	BOX_EXITED,	/* by itself; code is 128 + signal for a signal */
	BOX_TIMED_OUT,
	BOX_MEMORY,	/* over the limit: killed by the watchdog */
	BOX_DISK,	/* wrote more, or more files, than it may */
	BOX_KILLED,	/* box_kill */
	BOX_BROKEN	/* could not be started, or its keeper died */
};

/* How a sandbox ended: sent by the keeper when nothing of it runs any more. */
struct box_end {
	enum box_how how;
	int code;
	uint64_t wall_ms;
	uint64_t peak_bytes;
	bool out_of_memory;	/* processes were killed for memory */
	bool out_of_tasks;	/* forks were refused */
	bool out_of_files;	/* a process had as many as it may */
	bool disk_low;		/* BOX_DISK because the host's disk is full */
	bool left;		/* something could not be killed */
};

struct box_ask {
	const struct plan *plan;
	struct scratch *scratch;	/* removed at the end */
	const struct cgroup_host *cgroups;
	const char *cgroup_name;
	int seccomp;		/* the filter's descriptor; stays the caller's */
	uid_t uid;		/* the job's user; only as root */
	gid_t gid;
	const char *bwrap;	/* absolute path */
	uint64_t disk_base_bytes; /* what its directories hold at the start */
	/* Called in the keeper when the namespaces are there and nothing of
	 * the sandbox runs yet; not 0: it does not start.  keep_fd stays open
	 * for it.  NULL and 0: there is no such thing. */
	int (*prepare)(void *arg, pid_t first);
	void *prepare_arg;
	int keep_fd;
	bool talks;		/* its standard input is a pipe, else empty */
	bool hold;		/* all is made, nothing runs before box_go */
};

struct box {
	pid_t keeper;
	int control;		/* readable when it ended */
	int out, err;		/* what it prints, or -1 */
	int in;			/* what it is told, or -1 */
	struct cgroup cgroup;
	struct scratch *scratch;
};

/* 0 once the keeper runs; whether bubblewrap starts is in the box_end. */
int box_start(struct box *b, const struct box_ask *ask, struct err *e);
void box_go(struct box *b);	/* its time begins; only where it is held */
void box_kill(struct box *b);
/* Once control is readable: how it ended. */
void box_ended(struct box *b, struct box_end *end);
/* Lets the keeper clean up and go; kills the sandbox if it still runs.
 * scratch is gone after this. */
void box_free(struct box *b);

#endif
