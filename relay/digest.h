/* SPDX-License-Identifier: MIT
 *
 * digest: what happens beside the arrival of a large blob: the reactor writes
 * what came into its file, two tasks of the pool follow behind, one hashing
 * what is in the file by then, one sending it to the disk, so that neither
 * the hash nor the last sync waits for the whole.  Nothing is buffered: who
 * writes faster than they follow has the page cache between.
 *
 * The reactor that made it calls all of these. */
#ifndef RELAY_DIGEST_H
#define RELAY_DIGEST_H

#include "core/hash.h"
#include "relay/mail.h"
#include "relay/pool.h"

struct digest {
	struct mail mail;		/* must be first */
	int loop, conn_fd;		/* who is told: loop.h */
	uint32_t conn_gen;
	int fd;				/* of the file; -1 once it is taken */
	bool failed;			/* no memory, or no reading it */
	uint8_t sha256[HASH_SIZE];

	struct pool *pool;
	struct hash *hash;
	pthread_mutex_t lock;		/* all below */
	int refs;			/* the upload, each task, the mail */
	uint64_t have, hashed, sent;	/* bytes of the blob, in the file */
	bool wanted, ended, hashing, sending, posted;
};

/* Takes fd over, whose blob begins at BLOB_HEAD_N.  NULL: no memory. */
struct digest *digest_new(struct pool *pool, int fd);
/* n more bytes are in the file. */
void digest_grow(struct digest *d, uint64_t n);
/* These were the last ones: when all is hashed, d comes to the reactor as
 * MAIL_HASHED, which ends with digest_drop. */
void digest_end(struct digest *d);
void digest_drop(struct digest *d);
/* The descriptor, the caller's from here on; after the mail. */
int digest_take(struct digest *d);
/* Nobody wants it any more.  NULL is fine. */
void digest_free(struct digest *d);

#endif
