/* SPDX-License-Identifier: MIT
 *
 * jobs: work submitted from here, as files (airloxfs(4), jobs/).
 *
 * A job is drafted (mkdir, inputs copied in, verbs in ctl; or one write to
 * jobs/new), run, and waits until a runner that may take it is idle.  Then its
 * inputs and itself are sealed, which fixes their ids, journalled, and posted:
 * a job is posted again under its id until the relay has answered, so that it
 * runs once whatever dies meanwhile.  What ends it is the runner's verified
 * result; all else yields to one (jobs_state.h).
 *
 * One lock guards all jobs and runners.  Order: it, a draft's, the mount's.
 * Threads of this room: one posts jobs (jobs_post.c), one does what must not
 * wait for that: cancels, approvals, the list of runners (runners_call.c). */
#ifndef AIRLOXFS_JOBS_H
#define AIRLOXFS_JOBS_H

#include "airloxfs/mount.h"
#include "core/host/opened.h"

struct jobs;
struct outgoing;

/* Loads what the journal has into the tree; NULL and e->code ERR_NONE where
 * this role or session has no jobs. */
struct jobs *jobs_new(struct mount *m, struct err *e);
/* Once drafts and items are loaded: what they say of jobs. */
void jobs_loaded(struct mount *m);
int jobs_start(struct mount *m, struct err *e);
void jobs_stop(struct mount *m);	/* ends the threads */
void jobs_free(struct mount *m);
/* All who wait get their end; the session is over, or the mount ends. */
void jobs_end(struct mount *m, int64_t wait_ms);
/* How many are waiting or drafts, for what is unsent; their names. */
size_t jobs_unsent(struct mount *m, struct buf *names);
void jobs_kick(struct mount *m);	/* the relay is back */

/* Where a draft whose header says jobs/<path> belongs; path is cut up.  NULL:
 * of no job. */
struct node *jobs_place(struct mount *m, char *path, char **last);

/* False: an input of a job that was run.  True for all that is no input. */
bool jobs_may_write(struct mount *m, const struct node *n);

/* --- what the stream brings --- */
/* The relay's word on a job; false: it is none of ours. */
bool jobs_routed(struct mount *m, const struct news *n);
/* An event without a number: perhaps live output. */
void jobs_live(struct mount *m, const struct event *ev);
/* A verified job, result or event: may it be?  ERR_POLICY: refuse it. */
int jobs_check(struct mount *m, const struct incoming *inc,
	       const struct opened *o, struct err *e);
/* It is durable. */
void jobs_heard(struct mount *m, const struct opened *o,
		const uint8_t author[PRIM_PUB]);
/* An item of in/ is there: perhaps a file that a job wrote. */
void jobs_item(struct mount *m, const char *id);
/* A participant came, or left. */
void jobs_people(struct mount *m, const struct participant *who);

extern const struct node_ops jobs_dir_ops, runners_dir_ops;

#endif
