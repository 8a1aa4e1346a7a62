/* SPDX-License-Identifier: MIT
 *
 * progress_seal: output to a frame and back: AES-256-GCM under the job's
 * progress key (session_progress_key), random nonce, aad as
 * progress_put_aad gives it.  Never linked into the relay. */
#ifndef AIRLOX_PROGRESS_SEAL_H
#define AIRLOX_PROGRESS_SEAL_H

#include "core/progress.h"

/* Fills p->frame and p->sig for 1 to PROGRESS_OUTPUT_MAX bytes of output; job,
 * seq, session_id and stream are the caller's.  nonce NULL: random. */
int progress_seal(struct progress *p, struct bytes output,
		  const uint8_t session_key[32],
		  const uint8_t runner_seed[PRIM_SEED], const uint8_t *nonce,
		  struct err *e);
/* Adds the output.  ERR_DECRYPT: then nothing was added.  The signature is
 * progress_verify's, and comes first. */
int progress_open(struct buf *output, const struct progress *p,
		  const uint8_t session_key[32], struct err *e);

#endif
