/* SPDX-License-Identifier: MIT
 *
 * wire_job: the relay's endpoints for jobs and runners (docs/PROTOCOL.md,
 * section 7).  What they answer is the relay's unsigned word: it routes. */
#ifndef AIRLOX_HOST_WIRE_JOB_H
#define AIRLOX_HOST_WIRE_JOB_H

#include "core/host/wire.h"

enum routed { ROUTED_ASSIGNED, ROUTED_RUNNING, ROUTED_DONE, ROUTED_FAILED };
const char *routed_word(enum routed state);
int routed_parse(enum routed *state, struct bytes word);	/* 0 or -1 */

struct routed_job {
	enum routed state;
	bool has_runner;
	uint8_t runner[PRIM_PUB];
	char *reason;			/* owned; NULL: none */
};
void routed_job_free(struct routed_job *j);

/* Posts u32 length, envelope, blob.  ERR_CONFLICT where no runner takes it
 * (wire_word says no_runner_available or runner_busy): then the item is in the
 * log as failed, and another try needs a job of another id.  ERR_DUPLICATE:
 * it is there already, wire_job_get says how it stands. */
#define WIRE_TARGET_MAX 2048		/* bytes of the target's JSON */
int wire_job_post(struct wire *w, const struct wire_upload *u,
		  struct bytes target_json, struct routed_job *out,
		  struct err *e);
int wire_job_get(struct wire *w, const char *job, struct routed_job *out,
		 struct err *e);
/* The owner's, or the job's sender's. */
int wire_job_cancel(struct wire *w, const char *job, struct err *e);

/* --- the runner's side --- */

/* ERR_CONFLICT or ERR_GONE: withdrawn, not ours to run. */
int wire_job_claim(struct wire *w, const char *job, struct err *e);
/* body: progress_put's. */
int wire_job_progress(struct wire *w, const char *job, struct bytes body,
		      struct err *e);
/* job NULL: idle.  Every 10 s; a runner silent for 30 s is offline. */
int wire_heartbeat(struct wire *w, const char *job, struct err *e);
/* It takes no jobs until its next heartbeat: offline at once.  A relay that
 * does not know this answers ERR_NOT_FOUND, and finds out in 30 s. */
int wire_runner_away(struct wire *w, struct err *e);
/* Blocks like wire_stream.  Kinds job_assigned and job_cancel, without ids;
 * wire_assigned gives the job of their data: 0, or -1 for what is none. */
int wire_runner_stream(struct wire *w,
		       int (*on)(void *arg, const struct event *ev,
				 struct err *e),
		       void *arg, uint64_t *delivered, struct err *e);
int wire_assigned(char job[ITEM_ID + 1], struct bytes data);

/* --- runners, for those who choose one --- */

/* Valid during the call.  Believe of it what signed_join says once it is
 * verified (people_add). */
struct listed_runner {
	uint8_t pub[PRIM_PUB];
	struct bytes signed_join;
	bool approved, rejected, online;
	char job[ITEM_ID + 1];		/* "": idle */
};
int wire_runners(struct wire *w,
		 int (*on)(void *arg, const struct listed_runner *r,
			   struct err *e), void *arg, struct err *e);
int wire_runner_approve(struct wire *w, const uint8_t pub[PRIM_PUB],
			struct err *e);
int wire_runner_reject(struct wire *w, const uint8_t pub[PRIM_PUB],
		       struct err *e);

#endif
