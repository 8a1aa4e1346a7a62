/* SPDX-License-Identifier: MIT
 *
 * draft: a random-access file whose content is encrypted on disk: what is
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
#ifndef AIRLOX_DRAFT_H
#define AIRLOX_DRAFT_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"
#include "core/session.h"

#define DRAFT_RECORD_MAX 3072	/* bytes of the owner's record */
#define DRAFT_ID_MAX 32		/* characters, [a-z0-9-] */

struct draft;

/* Makes DIR/ID (0600, O_EXCL) or opens it.  `record` is an opaque record of
 * the owner (name, state, ...), at most DRAFT_RECORD_MAX bytes.  dir_fd stays
 * the caller's. */
struct draft *draft_create(int dir_fd, const char *id,
			   const uint8_t session_key[32],
			   const char *session_id, struct err *e);
struct draft *draft_open(int dir_fd, const char *id,
			 const uint8_t session_key[32],
			 const char *session_id, struct err *e);
void draft_close(struct draft *d);	/* does not make anything durable */

const char *draft_id(const struct draft *d);
uint64_t draft_size(const struct draft *d);
struct bytes draft_record(const struct draft *d);	/* borrowed */
/* Replaces the record in memory; draft_sync writes it. */
int draft_set_record(struct draft *d, struct bytes record, struct err *e);

/* Bytes read (0 at the end), or -1. */
ssize_t draft_read(struct draft *d, uint64_t off, void *to, size_t n,
		   struct err *e);
/* All n bytes or -1 (ERR_FULL where the disk is full: nothing of this call
 * past the returned error is counted in the size). */
int draft_write(struct draft *d, uint64_t off, const void *from, size_t n,
		struct err *e);
int draft_truncate(struct draft *d, uint64_t size, struct err *e);

/* Header, then data, durable. */
int draft_sync(struct draft *d, struct err *e);
/* Only the header is written, without waiting for the disk. */
int draft_flush_header(struct draft *d, struct err *e);

/* Removes the file; the open draft stays usable until it is closed. */
int draft_unlink(int dir_fd, const char *id, struct err *e);

#endif
