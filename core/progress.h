/* SPDX-License-Identifier: MIT
 *
 * progress: a frame of a running job's live output, as it travels: the body
 * of POST .../jobs/{id}/progress and, byte for byte, the data of the event
 * `progress` (docs/PROTOCOL.md, section 7).  Ours; other clients ignore it.
 *
 * Here is what needs no key, so that the relay can check who sent a frame;
 * core/progress_seal.h has the rest. */
#ifndef AIRLOX_PROGRESS_H
#define AIRLOX_PROGRESS_H

#include "core/item.h"

#define PROGRESS_OUTPUT_MAX (32 * 1024)	/* bytes of output in a frame */
#define PROGRESS_FRAME_MAX (PROGRESS_OUTPUT_MAX + BLOB_OVERHEAD)
#define PROGRESS_BODY_MAX (44 * 1024)	/* bytes of the whole: 413 above */
#define PROGRESS_EVENT "progress"	/* the event's kind; it has no id */

enum progress_stream { PROGRESS_STDOUT, PROGRESS_STDERR };

struct progress {
	char job[ITEM_ID + 1];
	uint64_t seq;			/* rises strictly within a job, over
					 * both streams */
	char session_id[SESSION_ID + 1];
	enum progress_stream stream;
	struct buf frame;		/* nonce, ciphertext, tag; owned */
	uint8_t sig[PRIM_SIG];
};

/* Form only: canonical, right shape, 1 to PROGRESS_OUTPUT_MAX bytes of
 * output.  On failure nothing is to be freed.  ERR_INVALID. */
int progress_parse(struct progress *p, struct bytes body, struct err *e);
/* That the job's runner signed this frame for this job, stream and place:
 * ERR_SIGNATURE.  Whose key that is, and that seq is above the last, is the
 * caller's to know. */
int progress_verify(const struct progress *p, const uint8_t runner[PRIM_PUB],
		    struct err *e);
void progress_free(struct progress *p);

/* {"job","seq","session_id","stream"}: what is sealed along and signed. */
void progress_put_aad(struct buf *out, const struct progress *p);
/* aad || SHA-256(frame): what the signature covers. */
void progress_put_signed(struct buf *out, const struct progress *p);
/* The body, of a frame that has its signature. */
void progress_put(struct buf *out, const struct progress *p);

#endif
