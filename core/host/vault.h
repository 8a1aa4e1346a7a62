/* SPDX-License-Identifier: MIT
 *
 * vault: a random-access file whose content is encrypted on disk: what is
 * written to out/ before it is sent, and the log.
 *
 * On disk: two header slots of 4096 bytes, then AES-256-XTS sectors of 4096
 * bytes.  A header slot is nonce, AES-256-GCM of {generation, length, the
 * owner's record}, tag; the slot with the higher generation that opens wins,
 * so that a torn header write loses nothing.  Keys: HKDF of the session key
 * with the draft's id.  An all-zero sector is a hole, on disk too (a hole
 * punched or never written reads as zeros).  Bytes past the length are zero.
 *
 * Not thread-safe: the caller holds a lock of its own for each draft. */
#ifndef AIRLOX_VAULT_H
#define AIRLOX_VAULT_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"
#include "core/session.h"

#define VAULT_RECORD_MAX 3072	/* bytes of the owner's record */
#define VAULT_ID_MAX 32		/* characters, [a-z0-9-] */

struct vault;

/* Makes DIR/ID (0600, O_EXCL) or opens it.  `record` is an opaque record of
 * the owner (name, state, ...), at most VAULT_RECORD_MAX bytes.  dir_fd stays
 * the caller's. */
struct vault *vault_create(int dir_fd, const char *id,
			   const uint8_t session_key[32],
			   const char *session_id, struct err *e);
struct vault *vault_open(int dir_fd, const char *id,
			 const uint8_t session_key[32],
			 const char *session_id, struct err *e);
void vault_close(struct vault *d);	/* does not make anything durable */

const char *vault_id(const struct vault *d);
uint64_t vault_size(const struct vault *d);
struct bytes vault_record(const struct vault *d);	/* borrowed */
/* Replaces the record in memory; vault_sync writes it. */
int vault_set_record(struct vault *d, struct bytes record, struct err *e);

/* Bytes read (0 at the end), or -1. */
ssize_t vault_read(struct vault *d, uint64_t off, void *to, size_t n,
		   struct err *e);
/* All n bytes or -1 (ERR_FULL where the disk is full: nothing of this call
 * past the returned error is counted in the size). */
int vault_write(struct vault *d, uint64_t off, const void *from, size_t n,
		struct err *e);
/* Shrinking writes the header first. */
int vault_truncate(struct vault *d, uint64_t size, struct err *e);

/* What was written before, durable: so that vault_sync after it is quick.  The
 * one function that needs no lock, but for one against vault_close. */
int vault_settle(struct vault *d, struct err *e);
/* Header, data and, the first time, the file's name: durable. */
int vault_sync(struct vault *d, struct err *e);
/* Only the header is written, without waiting for the disk (but once after
 * vault_open: the header that was found must be durable before another may be
 * lost). */
int vault_flush_header(struct vault *d, struct err *e);

/* Removes the file; the open draft stays usable until it is closed. */
int vault_unlink(int dir_fd, const char *id, struct err *e);

#endif
