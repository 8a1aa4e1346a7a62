/* SPDX-License-Identifier: MIT
 *
 * commit: the one thread that makes facts durable, and then true.  It takes
 * the whole queue, checks each intent against what is true by then, writes
 * the batch with one write and one fdatasync, applies it, publishes the
 * events, and sends each intent back to the reactor that asked.
 *
 * Sequence numbers are given here, so they have no gaps: what could not be
 * written never had one. */
#ifndef RELAY_COMMIT_H
#define RELAY_COMMIT_H

#include "relay/mail.h"
#include "relay/state.h"

struct intent {
	struct mail mail;		/* must be first */
	struct intent *next;		/* in the queue */
	struct intent *then;		/* written right behind it: task.h */
	struct session *session;	/* a reference */
	struct participant *by;		/* NULL: nobody, the relay itself */
	struct fact fact;		/* type, at_ms; once it is true, all */
	uint8_t key[32];		/* item id or participant: conflicts */
	uint8_t sha256[HASH_SIZE], sig[FACT_SIG];	/* of an item */
	uint64_t blob_n;
	enum item_kind kind;		/* of an item */
	struct aim *target;		/* of a job */
	char job_id[ITEM_ID + 1];	/* of a result: its job, or "" */
	uint8_t job_state, reason;	/* REC_JOB: task.h */
	struct participant *runner;	/* REC_JOB, and where a job went */
	struct buf body, blob;		/* the record */
	struct blob file;		/* the blob where it is a file */
	enum role role;			/* joining, or revoked */

	int loop, fd;			/* who asked; loop -1: nobody */
	uint32_t gen;

	int status;			/* the answer */
	int answer;			/* once it is true; 0: the usual */
	uint32_t retry_s;		/* of a 429 */
	const char *error, *message;	/* static, from 400 on */
	uint64_t seq;
	char token[44];			/* of a join: for the answer, wiped */
};

/* A new intent on session s (takes a reference of its own).  extra and data
 * as in fact.h. */
struct intent *intent_new(struct session *s, enum rec_type type,
			  int64_t at_ms, struct bytes extra,
			  struct bytes data);
struct intent *intent_closed(struct session *s, int64_t at_ms,
			     const char *data);
void intent_free(struct intent *it);	/* its blob's file, if any, stays */

struct commit;
struct commit *commit_start(struct state *st, struct err *e);
void commit_queue(struct commit *c, struct intent *it);	/* takes it over */
/* Between batches: tries to write, after a write that failed (state.failing);
 * compacts the log. */
void commit_probe(struct commit *c);
void commit_stop(struct commit *c);	/* after the queue is done */

/* What time brings, in every session: the ends of jobs that are due, of live
 * frames, and of files that were held. */
void commit_tick(struct commit *c);
/* Queues the eviction of every item of s that is due.  Under the lock. */
void commit_due(struct commit *c, struct session *s, int64_t at_ms);

#endif
