/* SPDX-License-Identifier: MIT
 *
 * queue: the runner's side of a mount: the jobs assigned to it, as
 * directories that any program can serve (airloxfs(4), queue/).
 *
 * A job goes one way: heard of, fetched and verified, open (it appears),
 * claimed, ended.  An id is journalled as claimed before the relay is asked,
 * and is never given out again: a job runs once or not at all, whoever is
 * killed when.  Its end is journalled before the verb returns, then sealed into
 * the outbox as one batch, so that it has exactly one result.
 *
 * Plaintext of a job is on no disk: the work files are in a vault, what is
 * written to out/ too, stdout and stderr in memory and in the sealed journal.
 *
 * Threads: one listens to the runner's stream, one fetches and seals, one
 * claims and beats, one sends live output.  `lock` (queue_private.h) comes
 * after a job's io lock and before the outbox's and the mount's. */
#ifndef AIRLOXFS_QUEUE_H
#define AIRLOXFS_QUEUE_H

#include "airloxfs/mount.h"
#include "core/payload.h"

struct queue_room;

#define QUEUE_UNMOUNTED "the runner's mount was unmounted"

/* For a runner's mount, after the outbox was loaded and before its journal is
 * compacted; queue/ is in the tree by then. */
struct queue_room *queue_new(struct mount *m, struct err *e);
int queue_start(struct mount *m, struct err *e);
/* Claimed jobs end failed, before the mount's queue is waited for. */
void queue_give_up(struct mount *m, const char *why);
/* Results that are not in the outbox yet. */
size_t queue_unsealed(struct mount *m);
/* The mount ends: claimed jobs end failed, the threads too.  Twice is fine. */
void queue_stop(struct mount *m, const char *why);
/* After the tree's end: its nodes hold jobs. */
void queue_free(struct queue_room *q);

/* --- what the deliver room hears; all are quick; m->queue may be NULL --- */
void queue_job_event(struct mount *m, const struct news *n);
/* An item's envelope is in the index now. */
void queue_item(struct mount *m, const char *id);
/* A verified event, by this author; durable once this returns 0. */
int queue_event(struct mount *m, const struct payload *event,
		const struct cert *author, struct err *e);
/* The session is over. */
void queue_over(struct mount *m, const char *why);

/* --- for the outbox --- */
#define QUEUE_KEY "job:"	/* and the job's id: of its result's posts */
#define QUEUE_GEN_FILE 1	/* their generations */
#define QUEUE_GEN_RESULT 2
/* The result left the outbox; why is NULL where the relay has it. */
void queue_posted(struct mount *m, const char *key, const struct err *why);

extern const struct node_ops queue_dir_ops, queue_ready_ops;

#endif
