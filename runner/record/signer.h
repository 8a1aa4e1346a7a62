/* SPDX-License-Identifier: MIT
 *
 * signer: the user's key, with which records are signed: an Ed25519 seed in
 * the state directory, 0600, made when it is first needed. */
#ifndef RUNNER_RECORD_SIGNER_H
#define RUNNER_RECORD_SIGNER_H

#include "core/buf.h"
#include "core/err.h"
#include "core/prim.h"

#define SIGNER_FINGERPRINT 33	/* 32 hex digits and a NUL: enough that
				 * nobody finds a second key of one */

struct signer;	/* in locked memory */

/* file in dir_fd; ERR_INVALID where it is not ours alone or not a key. */
struct signer *signer_open(int dir_fd, const char *file, struct err *e);
void signer_pub(const struct signer *s, uint8_t pub[PRIM_PUB]);
void signer_sign(const struct signer *s, uint8_t sig[PRIM_SIG],
		 struct bytes statement);
void signer_free(struct signer *s);	/* wipes */

/* The first 16 bytes of SHA-256 of the public key. */
void signer_fingerprint(char out[SIGNER_FINGERPRINT],
			const uint8_t pub[PRIM_PUB]);

#endif
