/* SPDX-License-Identifier: MIT
 *
 * state: what the relay knows of each session: participants, items, who
 * still waits for which blob.  All of it is derived from the facts of the
 * log, by state_apply, which serves the start-up and the running relay
 * alike.
 *
 * Everything here is guarded by state.lock, but for `refs`-counted existence:
 * who holds a reference may keep the pointer, and looks inside under the
 * lock.  manifest, id, and a participant's cert never change once set, and
 * may be read without it. */
#ifndef RELAY_STATE_H
#define RELAY_STATE_H

#include <pthread.h>

#include "relay/blob.h"
#include "relay/fact.h"
#include "relay/hub.h"
#include "relay/limit.h"
#include "relay/metrics.h"
#include "relay/rate.h"

struct pool;

struct participant {
	uint32_t index;
	struct cert cert;
	uint8_t token[HASH_SIZE];	/* SHA-256 of the token */
	bool approved;			/* a runner's; true for others */
	bool gone;			/* left, rejected or revoked */
	struct runner *runner;		/* task.h; NULL: none */
	_Atomic uint64_t end_seq;	/* the last event it is told of;
					 * read without the lock too */
	uint32_t want_n;		/* of its wants, open ones */
	uint32_t stream_n;		/* its open streams */
	struct rate items;
};

struct want {
	uint32_t by;			/* participant's index */
	int64_t at_ms;
};

struct item {
	struct item *next, *next_due;	/* in its bucket; in due or held */
	char id[ITEM_ID + 1];
	uint8_t sha256[HASH_SIZE], sig[FACT_SIG];
	struct participant *author;
	enum item_kind kind;
	uint64_t seq, blob_n;
	bool present;			/* the blob is here */
	struct blob file;		/* name 0: in the log, at loc */
	struct rec_loc loc;
	uint64_t *waiting;		/* bits: recipients that have no ack */
	uint32_t waiting_words, waiting_n;
	bool acked, is_due;		/* somebody has it; in due or held */
	int64_t hold_ms;		/* it stays until then: task_holds */
	struct want *want;
	uint32_t want_n;
	struct task *job;		/* task.h; NULL: none */
};

struct session {
	struct session *next;		/* in its bucket */
	atomic_uint refs;
	char id[SESSION_ID + 1];
	struct manifest m;
	char *signed_manifest;
	bool closed;			/* purged; only its id is left */
	bool closing;			/* its expiry is on its way */
	bool revoked[ROLES];
	struct participant **part;
	uint32_t part_n, part_cap;
	struct item **item;		/* buckets */
	uint32_t item_n, bucket_n;
	struct rec_loc *rec;		/* its facts, in order */
	uint32_t rec_n, rec_cap;
	uint32_t *event;		/* seq -> rec */
	uint32_t event_n, event_cap;
	uint64_t assigned;		/* the commit thread's: next seq */
	uint64_t blob_bytes;
	uint64_t coming;		/* of large blobs on their way */
	struct item *due;		/* every recipient has them: evict */
	struct item *held;		/* due, but for task_holds */
	struct task *jobs;		/* the open ones */
	uint64_t turns;			/* jobs given so far */
	struct hub hub;
	struct rate transfer;
};

struct state {
	pthread_mutex_t lock;
	struct session **bucket;
	size_t bucket_n, session_n;	/* session_n: open ones */
	struct store *store;
	struct blobs *blobs;
	struct pool *pool;		/* NULL while starting */
	bool look;			/* nothing may be changed */
	struct limits limits;
	struct rate_table *makers;	/* of sessions, by address */
	struct {
		pthread_mutex_t lock;
		struct rate_table *asked;	/* requests, by address */
	} asking;
	struct metrics metrics;
	/* not under the lock: */
	atomic_bool low;		/* the disk has less than it should */
	atomic_bool failing;		/* the last write failed */
	atomic_llong free_bytes;	/* of the disk; -1: not known */
};

int state_init(struct state *st, const struct limits *limits, struct err *e);
void state_free(struct state *st);
/* Whether something new can be taken; ERR_FULL or ERR_SYS if not. */
bool state_can_write(struct state *st, struct err *e);
/* Looks at the disk. */
void state_look(struct state *st);

/* A new one from a signed manifest, in no table, with one reference. */
struct session *state_new(struct bytes signed_manifest, struct err *e);
struct session *state_ref(struct session *s);
void state_unref(struct session *s);

/* Under the lock: the open session of this id, or NULL; the same, closed
 * ones too. */
struct session *state_find(struct state *st, struct bytes id,
			     int64_t now_ms);
struct session *state_find_any(struct state *st, const char *id);
struct participant *state_by_token(struct session *s,
				     const uint8_t token[HASH_SIZE]);
struct participant *state_by_pub(struct session *s,
				   const uint8_t pub[PRIM_PUB]);
struct item *state_item(struct session *s, const char *id);
bool state_waits_for(const struct item *it, const struct participant *p);

/* Makes a fact true: tables, events, recipients.  s is the session it is
 * about; for a REC_SESSION the new one, of which the table takes a reference.
 * file: the blob's descriptor where it is memory, else -1. */
int state_apply(struct state *st, struct session *s, const struct fact *f,
		  const struct rec_loc *loc, int file, struct err *e);
/* Drops what is left of closed sessions whose time is over: they cannot be
 * made again anyhow. */
void state_forget_closed(struct state *st, int64_t now_ms);
/* Takes the next item that is due out of s's list, or NULL; those that may be
 * needed yet go aside.  state_unhold looks at them again. */
struct item *state_take_due(struct session *s);
void state_unhold(struct session *s);
/* Removes the file of a blob that became no fact; not on this thread. */
void state_discard(struct state *st, struct blob *b);
/* A session of which only the end is known. */
int state_add_closed(struct state *st, const char *id, int64_t expires_ms);

/* The facts of s from *n up to `end` as text, until out holds `enough` bytes;
 * *n is the next then.  Events are counted by seq, the audit trail by fact. */
enum text_kind { TEXT_EVENTS, TEXT_AUDIT, TEXT_STREAM, TEXT_RUNNERS };
int state_text(struct state *st, struct session *s, enum text_kind as,
		 uint32_t *n, uint32_t end, size_t enough, struct buf *out,
		 struct err *e);

#endif
