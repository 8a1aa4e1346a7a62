/* SPDX-License-Identifier: MIT
 *
 * journal: an append-only file of sealed records: what this mount has
 * verified, seen, hidden.
 *
 * On disk: "airlox-journal 1\n", then records: u32 big-endian length of what
 * follows, nonce 12, AES-256-GCM, tag 16.  aad = the record's ordinal, u64
 * big-endian, so that records cannot be swapped or repeated.  The key is
 * HKDF of the session key.  A torn or damaged tail is cut off at open, and
 * its length told; what was cut is fetched and verified anew. */
#ifndef AIRLOX_JOURNAL_H
#define AIRLOX_JOURNAL_H

#include "core/buf.h"
#include "core/err.h"
#include "core/session.h"

#define JOURNAL_RECORD_MAX (8 * 1024 * 1024)

struct journal;

/* Opens or makes DIR/NAME and calls `each` for each record in order, with
 * the offset by which journal_read finds it again.  `each` returns 0, or -1
 * to stop with the error it set.  *cut is set to the bytes dropped. */
struct journal *journal_open(int dir_fd, const char *name,
			     const uint8_t session_key[32],
			     const char *session_id,
			     int (*each)(void *arg, uint64_t at,
					 struct bytes record, struct err *e),
			     void *arg, uint64_t *cut, struct err *e);
/* Appends; *at is where.  Thread-safe.  Not durable until journal_sync. */
int journal_append(struct journal *j, struct bytes record, uint64_t *at,
		   struct err *e);
/* Durable, all that was appended before the call.  Calls that arrive while
 * one is on its way share the next fdatasync.  After a failure the next call
 * tries again, for all that is not durable. */
int journal_sync(struct journal *j, struct err *e);
/* The record at `at`, decrypted into out. */
int journal_read(struct journal *j, uint64_t at, struct buf *out,
		 struct err *e);
void journal_close(struct journal *j);

#endif
