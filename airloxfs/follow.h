/* SPDX-License-Identifier: MIT
 *
 * follow: for commands on jobs: what a session says about its runners and
 * about one job, from its history and as it comes. */
#ifndef AIRLOX_MOUNT_FOLLOW_H
#define AIRLOX_MOUNT_FOLLOW_H

#include "airloxfs/feed.h"
#include "core/host/live.h"

#define FOLLOW_RESULTS_MAX 16

/* A verified result that says it is the job's. */
struct claimed_result {
	struct buf meta;
	struct payload payload;
	struct cert author;
};

struct follow {
	struct peer *peer;
	struct feed feed;
	struct approval_list approvals;
	const char *job_id;	/* the job to look for, NULL: none yet */
	bool has_job;
	struct job job;

	/* The relay's word on it. */
	bool ran, failed;
	char *reason;		/* owned */
	struct live live;
	/* Live output; may be NULL. */
	void (*output)(void *arg, enum progress_stream stream,
		       struct bytes more);
	void *output_arg;

	struct claimed_result claimed[FOLLOW_RESULTS_MAX];
	size_t claimed_n;
	const struct claimed_result *result;	/* the one that counts */
	struct incoming **file;	/* items of runners, not fetched; owned */
	size_t file_n;
};

int follow_open(struct follow *f, struct peer *p, struct err *e);
void follow_close(struct follow *f);
/* What is there now. */
int follow_now(struct follow *f, struct err *e);
/* Approvals that have left the relay are waited for a moment, if anybody
 * brings them back; until this runner (NULL: all) has its approval. */
int follow_approvals(struct follow *f, const uint8_t *pub, struct err *e);
/* Once the job is sealed: f->job, and what history said is forgotten. */
void follow_job(struct follow *f, const struct job *j);
/* Until there is a result that counts, the job has failed, or end_ms.  0 for
 * each of these: result and failed say which. */
int follow_result(struct follow *f, int64_t end_ms, struct err *e);
/* The item of an out file, if it was seen; NULL and e otherwise. */
struct incoming *follow_file(struct follow *f, const struct out_file *out,
			     struct err *e);

#endif
