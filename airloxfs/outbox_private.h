/* SPDX-License-Identifier: MIT
 *
 * What the files of the outbox share: outbox.c (who waits for what), poster.c
 * (the threads), seal_out.c (from a file to sealed bytes), outbox_journal.c
 * (what a crash finds again). */
#ifndef AIRLOXFS_OUTBOX_PRIVATE_H
#define AIRLOXFS_OUTBOX_PRIVATE_H

#include "airloxfs/out.h"
#include "airloxfs/outbox.h"
#include "airloxfs/store.h"

#define POSTERS 8
#define INLINE_MAX (256 * 1024)	/* blobs up to this are in the journal */
#define DRAFT_ID 32
#define DOUBTS 16
#define OUTCOME_SLOTS 4096

enum post_state {
	POST_NEW,	/* to be sealed */
	POST_BUSY,	/* a poster has it */
	POST_SEALED	/* durable; to be posted */
};

struct post {
	struct post *next;	/* in the order of the commits */
	enum post_state state;
	struct outgoing *file;	/* held; NULL: a text, or not adopted */
	char draft[DRAFT_ID];	/* its id; "" for a text */
	uint64_t gen;
	char *name;		/* what the file is sent as */
	struct buf text;
	uint64_t pid_ns;	/* of who wrote it, if it is not ours */

	struct sealed sealed;	/* id, envelope, ref, sizes */
	char blob[FILE_TMP];	/* its file in the state directory; "": inline */
	uint64_t at;		/* its journal record; 0: none yet */
	bool lazy;		/* its file is not durable: it is posted at
				 * once, nobody was told that it is kept */
	bool settling;		/* the timer makes it durable, then answers */

	unsigned tries;
	int64_t retry_at_ms;	/* monotonic */
	bool backlog;		/* was put back: drains in order */
	bool withdrawn;		/* its poster must forget it: removed, or a
				 * close that gives an errno */
	bool removed;		/* withdrawn by rm: that is no failure */
	_Atomic bool handed_over; /* the relay may have the whole of it */
	uint64_t seen;		/* the stream brought it back under this seq */
	struct wire *wire;	/* while it is posted */
	bool ended;		/* out of the outbox; the waiter frees it */

	/* who waits: a request, or a thread */
	struct fuse_req *req;
	bool waits;		/* a thread does; answered says when */
	bool answered;
	int answer;
	int64_t wait_ms;	/* of network */
	int64_t deadline_ms;	/* monotonic, 0: not sealed yet */
};

/* Part of a job's result: queue.h has its key and generations. */
bool post_is_result(const struct post *p);

struct outcome {
	struct outcome *next;
	char draft[DRAFT_ID];
	struct outbox_outcome o;
};

struct outbox {
	struct mount *m;
	struct journal *journal;
	_Atomic uint64_t written; /* bytes of records since it was empty */
	int blobs;		/* directory of the larger ones */

	pthread_mutex_t lock;	/* guards all below; after a file's lock,
				 * before the mount's */
	pthread_cond_t work;	/* a poster goes on */
	pthread_cond_t change;	/* a thread that waits for an answer */
	pthread_cond_t tick;	/* the timer */
	pthread_t poster[POSTERS], timer;
	struct wire *wire[POSTERS];
	int posters, idle;
	int fresh;		/* posts that no poster has looked at */
	bool has_timer, ending, draining_backlog;
	bool resting;		/* the timer: nothing is in the outbox */
	struct post *first, **last;
	char doubts[DOUBTS][ITEM_ID + 1]; /* texts that failed, and that the
				 * relay may have all the same; a ring */
	size_t doubt_n;
	struct outcome **outcomes;	/* of earlier mounts; while loading:
					 * OUTCOME_SLOTS lists */
	struct outbox_counts counts;
};

/* seal_out.c: fills p->sealed, p->blob; not durable yet.  SEAL_STALE: the file
 * was written anew since its commit, whose content is gone. */
#define SEAL_STALE 1
int seal_out(struct mount *m, struct post *p, struct err *e);

/* outbox_journal.c */
int outbox_load(struct outbox *o, struct err *e);
/* `put`: from here on a killed daemon will still send it. */
int outbox_keep(struct outbox *o, struct post *p, bool durable,
		struct err *e);
void outbox_drop_outcomes(struct outbox *o);
/* With o->lock, nothing in the outbox and nobody else at the journal: begins a
 * new one; the drafts' headers say all that the old one said. */
void outbox_renew(struct outbox *o);
/* And from here on a machine that lost its power: all but lazy ones, or this
 * one too. */
int outbox_sync(struct outbox *o, struct err *e);
int outbox_settle(struct outbox *o, struct post *p, struct err *e);
void outbox_done(struct outbox *o, const struct post *p, bool sent,
		 uint64_t seq);
/* The blob's descriptor again, for one that was queued before. */
int outbox_reopen(struct outbox *o, struct post *p, struct err *e);
void outbox_drop_blob(struct outbox *o, struct post *p, bool to_cache);

/* rescue.c: a text that was taken and then failed becomes a file of out/. */
void outbox_rescue(struct outbox *o, struct post *p, const struct err *why);

/* poster.c */
/* The posters have ended: what they did not come to is sealed here. */
void outbox_seal_rest(struct outbox *o);
void *poster_thread(void *outbox);
void post_free(struct post *p);
/* Takes p out of the outbox and answers; its state is visible before that. */
void outbox_end(struct outbox *o, struct post *p, int answer);
/* 0, or the seq under which the stream brought it back. */
uint64_t outbox_seen_as(struct outbox *o, const struct post *p);
void outbox_tell_sent(struct mount *m, const struct post *p, uint64_t seq);

/* outbox.c: out of the outbox, and who waits for it goes on; p is the
 * poster's until outbox_end. */
void outbox_reply(struct outbox *o, struct post *p, int answer);
/* With o->lock. */
void outbox_add(struct outbox *o, struct post *p);
void outbox_answer(struct post *p, int err);
void outbox_remove(struct outbox *o, struct post *p);

#endif
