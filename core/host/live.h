/* SPDX-License-Identifier: MIT
 *
 * live: the output of one running job as it comes (docs/PROTOCOL.md, section
 * 7).  A frame is believed if the job's runner signed it, if it is newer than
 * the last, and if the job is not over. */
#ifndef AIRLOX_HOST_LIVE_H
#define AIRLOX_HOST_LIVE_H

#include "core/host/job.h"
#include "core/progress_seal.h"

/* Zero-initialise. */
struct live {
	bool has_runner, has_seq, over;
	uint8_t runner[PRIM_PUB];
	uint64_t seq;
	uint64_t refused;	/* frames that were for this job and no good */
};

/* The relay named the runner that has claimed the job.  One that may not run
 * it is not listened to. */
void live_runner(struct live *l, const struct job *j, const struct manifest *m,
		 const struct approval_list *a, const uint8_t pub[PRIM_PUB]);
/* For each event without a number: 1 if it was output of this job, which is
 * added to out; 0 if it is none or was refused (e->code says which: ERR_NONE
 * or why). */
int live_hear(struct live *l, const struct peer *p, const struct job *j,
	      const struct event *ev, enum progress_stream *stream,
	      struct buf *out, struct err *e);

/* The other side: the next frame of a job's output, as a body to post. */
int live_frame(struct buf *body, const struct peer *p, const char *job,
	       uint64_t seq, enum progress_stream stream, struct bytes output,
	       struct err *e);

#endif
