/* SPDX-License-Identifier: MIT
 *
 * jobs_state: the states of a job submitted from here, and what moves it from
 * one to the next.  Pure.
 *
 *	draft -> waiting -> assigned -> running -> a final state
 *
 * A verified result is the last word.  All else that ends a job (lost, the
 * relay's unsigned word; cancelled, where the runner is silent; failed, what
 * we found here) yields to it. */
#ifndef AIRLOXFS_JOBS_STATE_H
#define AIRLOXFS_JOBS_STATE_H

#include "core/payload.h"

enum jobs_state {
	JOBS_DRAFT, JOBS_WAITING, JOBS_ASSIGNED, JOBS_RUNNING,
	JOBS_COMPLETED, JOBS_FAILED, JOBS_TIMED_OUT, JOBS_CANCELLED,
	JOBS_REFUSED, JOBS_LOST
};

enum jobs_event {
	JOBS_RUN,	/* ctl: run */
	JOBS_POSTED,	/* the relay gave it to a runner */
	JOBS_NO_RUNNER,	/* 409: nobody is idle after all */
	JOBS_CLAIMED,	/* the relay: its runner has begun */
	JOBS_GIVEN_UP,	/* it fails here: nowait, inputs that are gone */
	JOBS_DROPPED,	/* cancelled before the relay had it */
	JOBS_SILENT,	/* cancelled, and no result in time */
	JOBS_ABANDONED	/* the relay: it failed, without a result */
};

const char *jobs_state_word(enum jobs_state s);
int jobs_state_parse(enum jobs_state *s, struct bytes word);	/* 0 or -1 */
bool jobs_state_is_final(enum jobs_state s);
/* The state after the event; false: it changes nothing. */
bool jobs_state_next(enum jobs_state *s, enum jobs_event ev);
enum jobs_state jobs_state_of(enum result_status status);

#endif
