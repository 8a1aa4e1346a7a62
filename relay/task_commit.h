/* SPDX-License-Identifier: MIT
 *
 * task_commit: which facts on jobs may become true, and which follow from
 * others.  All of it under the state's lock. */
#ifndef RELAY_TASK_COMMIT_H
#define RELAY_TASK_COMMIT_H

#include "relay/commit.h"
#include "relay/task.h"

/* REC_JOB: this state for this job.  runner may be NULL. */
struct intent *task_intent(struct session *s, const char *id,
			  enum task_state state, struct participant *runner,
			  enum task_reason reason);

/* As check_intent, for REC_JOB and the types behind it. */
int task_check(struct state *st, struct intent *it);
/* For a result that its runner posts: it is for an open job of its own. */
int task_check_result(struct intent *it);

/* The word and the sentence of a refusal to route. */
const char *task_refusal(enum task_reason why, const char **message);

/* Where a job goes, that its result ends it, that cancelling one that nobody
 * claimed ends it: goes into it->then, to be written right behind it, and
 * decides the answer.  -1: out of memory, and nothing of it can be written. */
int task_follow(struct state *st, struct intent *it);

/* Queues the end of each open job of s that is due (task_due). */
void task_sweep(struct state *st, struct commit *c, struct session *s,
	       int64_t now_ms);

#endif
