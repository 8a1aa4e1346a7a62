/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/aead.h"
#include "core/progress_seal.h"
#include "core/session.h"

static struct aead *aead_for(bool seal, const struct progress *p,
			     const uint8_t session_key[32],
			     const uint8_t nonce[AEAD_NONCE])
{
	cleanup_buf struct buf aad = { 0 };
	uint8_t key[AEAD_KEY];

	progress_put_aad(&aad, p);
	if (buf_failed(&aad))
		return NULL;
	session_progress_key(key, session_key, p->session_id, p->job);
	struct aead *a = (seal ? aead_seal_new : aead_open_new)
		(key, nonce, aad.data, aad.len);
	prim_wipe(key, sizeof key);
	return a;
}

static int fail_memory(struct err *e)
{
	return err_set(e, ERR_MEMORY, "out of memory");
}

static int sign(struct progress *p, const uint8_t seed[PRIM_SEED],
		struct err *e)
{
	cleanup_buf struct buf msg = { 0 };

	progress_put_signed(&msg, p);
	if (buf_failed(&msg))
		return fail_memory(e);
	key_sign(p->sig, seed, KEY_PROGRESS, buf_bytes(&msg));
	return 0;
}

int progress_seal(struct progress *p, struct bytes output,
		  const uint8_t session_key[32],
		  const uint8_t runner_seed[PRIM_SEED], const uint8_t *nonce,
		  struct err *e)
{
	if (output.n == 0 || output.n > PROGRESS_OUTPUT_MAX)
		return err_set(e, ERR_INVALID, "progress: a frame has 1 to %d "
			       "bytes of output", PROGRESS_OUTPUT_MAX);
	buf_reset(&p->frame);
	uint8_t *to = buf_room(&p->frame, output.n + BLOB_OVERHEAD);
	if (!to)
		return fail_memory(e);
	if (nonce)
		memcpy(to, nonce, AEAD_NONCE);
	else
		prim_random(to, AEAD_NONCE);
	struct aead *a = aead_for(true, p, session_key, to);
	if (!a)
		return fail_memory(e);
	uint8_t *body = to + AEAD_NONCE;
	int r = aead_update(a, body, output.p, output.n) < 0 ||
		aead_seal_final(a, body + output.n) < 0 ? -1 : 0;
	aead_free(a);
	if (r < 0)
		return err_set(e, ERR_SYS, "progress: the cipher refused");
	p->frame.len = output.n + BLOB_OVERHEAD;
	return sign(p, runner_seed, e);
}

int progress_open(struct buf *output, const struct progress *p,
		  const uint8_t session_key[32], struct err *e)
{
	if (p->frame.len <= BLOB_OVERHEAD)
		return err_set(e, ERR_INVALID, "progress: an empty frame");
	size_t n = p->frame.len - BLOB_OVERHEAD;
	const uint8_t *body = p->frame.data + AEAD_NONCE;
	uint8_t *to = buf_room(output, n);
	struct aead *a = to ? aead_for(false, p, session_key, p->frame.data) :
		NULL;
	if (!a)
		return fail_memory(e);
	int r = aead_update(a, to, body, n) < 0 ||
		aead_open_final(a, body + n) < 0 ? -1 : 0;
	aead_free(a);
	if (r == 0) {
		output->len += n;
		return 0;
	}
	prim_wipe(to, n);	/* nobody vouches for it */
	return err_set(e, ERR_DECRYPT, "progress: it does not open with this "
		       "session's key");
}
