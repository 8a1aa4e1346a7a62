/* SPDX-License-Identifier: MIT
 *
 * task: jobs and the runners they go to (docs/PROTOCOL.md, section 7).
 *
 *	NEW -> ASSIGNED -> RUNNING -> DONE
 *	  \________\__________\____-> FAILED
 *
 * A job is an item; the fact that says where it goes (REC_JOB) is written in
 * one batch with it, and so is the one that ends it with its result.  If a
 * crash keeps only the first of the two, task_due says what is to follow, as
 * it does for a job that nobody claims or whose runner is silent.  A job goes
 * to one runner, once: nothing leads back.
 *
 * All under the state's lock.  Times in here are monotonic and not kept: a
 * restart gives every job and runner its time anew. */
#ifndef RELAY_TASK_H
#define RELAY_TASK_H

#include "relay/state.h"
#include "relay/aim.h"

enum task_state {
	TASK_NEW, TASK_ASSIGNED, TASK_RUNNING, TASK_DONE, TASK_FAILED
};
const char *task_state_word(enum task_state state);

/* Why it failed.  The numbers are in the log. */
enum task_reason {
	REASON_NONE, REASON_NO_RUNNER, REASON_BUSY, REASON_CANCELLED,
	REASON_NOT_CLAIMED, REASON_LOST, REASON_LEFT, REASON_RESTARTED,
	REASONS
};
const char *task_reason_word(enum task_reason reason);	/* NULL: none */

struct task {
	struct task *next, **link;	/* in session.jobs, while it is open */
	struct item *item;
	struct participant *runner;	/* NULL: it went to none */
	enum task_state state;
	enum task_reason reason;
	bool cancelling;		/* its runner is asked to stop */
	bool answered;			/* its result is here */
	bool queued;			/* its end is on its way */
	int64_t since_ms, seen_ms;	/* given; the runner said it has it */
	int64_t cancel_ms;
	struct rate progress;		/* of its output */
	uint64_t progress_n;		/* the next frame's least number */
	struct item **input;		/* while it is open */
	uint32_t input_n;
	bool any_input;			/* it may have any earlier file */
};

struct runner {
	char name[LABEL_MAX + 1];
	char (*label)[LABEL_MAX + 1];
	uint32_t label_n;
	uint32_t rec;			/* of its join, in session.rec */
	bool rejected;
	struct task *job;		/* the open one it was given */
	int64_t beat_ms;		/* its last heartbeat; 0: none yet */
	uint64_t turn;			/* when it was last given one */
	char stray[ITEM_ID + 1];	/* it has this one, and should not */
};

struct task *task_find(struct session *s, const char *id);
bool task_is_open(const struct task *j);
bool task_is_busy(const struct participant *runner);
bool task_is_online(const struct state *st, const struct participant *runner,
		   int64_t now_ms);
/* Whether this runner needs the blob: its job, or an input of it. */
bool task_needs(const struct participant *runner, const struct item *it);

/* Whether a file may yet be some job's input, though all who were to have it
 * do: for a while after it was posted, and while a job runs that does not say
 * which it needs.  before: task_hold_before's, of the session as it is. */
bool task_holds(const struct session *s, const struct item *it,
		uint64_t before, int64_t now_ms);
uint64_t task_hold_before(const struct session *s);
#define TASK_HOLD_MS (5 * MINUTE_MS)

/* The runner for a target: approved, online, idle, and of those the one whose
 * last job is the longest ago.  NULL, and why. */
struct participant *task_route(const struct state *st, struct session *s,
			      const struct aim *t, int64_t now_ms,
			      enum task_reason *why);
/* What is to become of an open job without anybody asking; TASK_NEW:
 * nothing. */
enum task_state task_due(const struct state *st, const struct task *j,
		       int64_t now_ms, enum task_reason *why);

/* The data of a `job` event, and of GET jobs/{id}. */
void task_put(struct buf *out, const char *id, enum task_state state,
	     const struct participant *runner, enum task_reason reason);
/* That somebody asked for its end. */
void task_put_by(struct buf *out, const char *id,
		const struct participant *by);
void task_free(struct task *j);
void task_free_runner(struct runner *r);

/* task_apply.c: facts made true.  -1: out of memory, e filled. */
int task_apply_join(struct session *s, struct participant *p,
		   struct fact_reader *r, struct err *e);
int task_apply_item(struct session *s, struct item *it, struct fact_reader *r,
		   struct err *e);
int task_apply_state(struct state *st, struct session *s,
		    struct fact_reader *r, struct err *e);
int task_apply_cancel(struct session *s, struct fact_reader *r, struct err *e);
int task_apply_approved(struct session *s, struct fact_reader *r,
		       struct err *e);
/* The session is over: its open jobs count no more. */
void task_apply_closed(struct state *st, struct session *s);

#endif
