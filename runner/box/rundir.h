/* SPDX-License-Identifier: MIT
 *
 * rundir: the state of one run while it happens, for other command lines and
 * for what is left when its own was killed: a directory of the user's alone,
 *
 *	STATE/runs/RUN/		0700; STATE is state.h's
 *		lock		held (flock) by the process that owns the run
 *		state		the facts below as canonical JSON; replaced
 *				by a rename, so it is always whole
 *		record		the record's chain (record/chain.h), as it
 *				grows; none with --no-record
 *		egress		the broker's account, as it grows
 *
 * A lock that nobody holds says that the owner is no more: then whoever takes
 * it (reap) finishes the record and removes what is left.  Who adds a file of
 * its own (a socket, a question) makes it in `dir`; rundir_remove removes it
 * too.  Nothing in it is ever a credential. */
#ifndef RUNNER_BOX_RUNDIR_H
#define RUNNER_BOX_RUNDIR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"
#include "runner/record/chain.h"

#define RUNDIR_RECORD "record"
#define RUNDIR_EGRESS "egress"
#define RUNDIR_TEXT 256

enum rundir_state {
	RUNDIR_STARTING,	/* the box is not there yet */
	RUNDIR_RUNNING,
	RUNDIR_WAITING,		/* for a person: `waits` says for what */
	RUNDIR_ENDING		/* the box is no more; its record is written */
};

/* A process that is surely meant: the number and when it began (field 22 of
 * /proc/PID/stat).  pid 0: there is none. */
struct rundir_process {
	int64_t pid, born;
};

struct rundir {
	int runs, dir, lock;	/* descriptors, closed on exec, or -1 */
	/* the facts */
	char run[CHAIN_RUN + 1];
	enum rundir_state state;
	int64_t began_ms, since_ms;	/* wall clock; since: of this state */
	struct rundir_process owner, broker, keeper;
	char policy[RUNDIR_TEXT];	/* as it was given */
	char command[RUNDIR_TEXT];	/* its first words */
	char waits[RUNDIR_TEXT];
	char record[PATH_MAX];	/* absolute: where the page goes, or "" */
	char scratch[PATH_MAX];	/* the box's directories on the disk, or "" */
};

/* --- the owner's --- */

/* Names the run, makes its directory and takes its lock, which is this
 * process's and its children's as long as one has `lock` open.  All other
 * facts are the caller's to fill. */
int rundir_make(struct rundir *d, struct err *e);
/* The facts to the disk. */
int rundir_put(const struct rundir *d, struct err *e);
/* Another state, as of now, and rundir_put.  waits: NULL for nothing. */
int rundir_say(struct rundir *d, enum rundir_state state, const char *waits,
	       struct err *e);
/* This process is the owner from here on (after a fork). */
void rundir_own(struct rundir *d);
struct rundir_process rundir_process(pid_t pid);
/* The directory, all in it, and the descriptors. */
void rundir_remove(struct rundir *d);
void rundir_close(struct rundir *d);	/* the descriptors only */

/* --- others' --- */

/* The run of this name and its facts.  ERR_NOT_FOUND: there is none;
 * ERR_INVALID: its state cannot be read (d is open nevertheless, so that it
 * can be removed). */
int rundir_open(struct rundir *d, const char *run, struct err *e);
bool rundir_is_alive(const struct rundir *d);	/* its owner is */
/* The lock of one whose owner is no more; ERR_LOCKED while it lives. */
int rundir_take(struct rundir *d, struct err *e);
/* SIGTERM or the like, to the process that is meant and to no other with its
 * number.  ERR_GONE: it is no more. */
int rundir_signal(const struct rundir_process *p, int number, struct err *e);
/* Calls `each` with the name of each run, in order.  -1 with e filled, or the
 * first answer of each that is not 0. */
int rundir_each(int (*each)(void *arg, const char *run), void *arg,
		struct err *e);
const char *rundir_word(enum rundir_state state);

#endif
