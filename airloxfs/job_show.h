/* SPDX-License-Identifier: MIT
 *
 * job_show: a job's end on stdout, its out files into a directory; runners.
 * The JSON is the published client's. */
#ifndef AIRLOX_MOUNT_JOB_SHOW_H
#define AIRLOX_MOUNT_JOB_SHOW_H

#include "airloxfs/follow.h"

/* What of a job's output was printed while it ran. */
struct job_printed {
	bool tty;
	struct buf out, err;	/* as it came, at most 1 MiB each */
	bool any;
};
/* For struct follow: arg is a struct job_printed. */
void job_show_live(void *arg, enum progress_stream stream, struct bytes more);
void job_printed_free(struct job_printed *p);

struct job_show {
	bool json;
	const char *out_dir;		/* NULL: nothing is saved */
	struct job_printed *printed;	/* NULL: nothing was */
};
/* Of a job that has its result, or has failed on the relay.  *status is the
 * command's: the job's own exit code (128 + n for a signal's -n), or 1. */
int job_show_end(const struct job_show *s, struct follow *f, int *status,
		 struct err *e);
/* {"job":ID, "status":...} and the like: no result. */
int job_show_state(bool json, const char *id, const char *status,
		   const char *reason, const char *message);

/* One runner as the published client lists it. */
struct shown_runner {
	const struct participant *who;
	bool approved, rejected, online;
	char job[ITEM_ID + 1];
};
void job_put_runner(struct buf *b, const struct shown_runner *r);
void job_say_runner(const struct shown_runner *r);

#endif
