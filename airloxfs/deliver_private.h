/* SPDX-License-Identifier: MIT
 *
 * What deliver.c (the stream) and lanes.c (fetching) share. */
#ifndef AIRLOXFS_DELIVER_PRIVATE_H
#define AIRLOXFS_DELIVER_PRIVATE_H

#include "airloxfs/deliver.h"
#include "airloxfs/in.h"

#define LANES 4			/* the first is the small one */
#define LANE_SMALL_MAX (1024 * 1024)
#define LANE_BATCH 32		/* items that share one sync */
#define LANE_QUEUE_MAX 2000	/* the stream waits above it */
#define LANE_FAULTS 2		/* then others have their turn */

enum task_kind { TASK_NEW, TASK_AGAIN, TASK_RESEED };

struct task {
	struct task *next;		/* in its queue */
	struct task *before, *after;	/* among the unsettled, by seq */
	enum task_kind kind;
	uint64_t seq;
	struct incoming *inc;		/* until it is revealed */
	char id[ITEM_ID + 1];		/* to be acknowledged, or re-seeded */
	struct in_new *fresh;		/* verified, not yet revealed */
	int fd;				/* its blob, until it is durable */
	bool unsettled;
	bool abandoned;		/* we end before it was settled */
	unsigned faults;	/* of this machine, while it was checked */
};

struct queue {
	struct task *first, **last;
	size_t n;
	pthread_cond_t more;	/* its lanes */
	pthread_cond_t room;	/* the stream, above LANE_QUEUE_MAX */
};

struct pending {
	struct pending *next;
	uint64_t seq;
	char id[ITEM_ID + 1];
	struct buf envelope;
	int64_t asked_ms;	/* monotonic; 0: never */
};

struct deliver {
	struct mount *m;
	pthread_t stream, lane[LANES], acker;
	int lanes;		/* started */
	bool has_acker, has_stream;
	struct wire *wire;	/* the stream's; aborted from outside */
	struct wire *lane_wire[LANES], *ack_wire;

	pthread_mutex_t lock;	/* guards all below */
	pthread_cond_t more;	/* the acker, and deliver_pause */
	size_t unseen;		/* items that were taken, not yet revealed */
	bool ending;
	unsigned kicks;		/* waiters of deliver_pause go on */
	bool at_once;		/* the stream is to begin anew, without delay */
	struct queue small, large;
	struct task *oldest, *newest;	/* unsettled */
	int64_t applied;	/* newest event applied */
	struct queue acks;	/* revealed, and unsettled until the relay
				 * knows: it keeps their blobs for us */
	struct pending *pending;
	bool to_ask;		/* one of them was added */
	uint64_t cached;	/* bytes of blobs; counted anew at cached_ms */
	int64_t cached_ms;	/* monotonic; 0: not yet */
};

/* lanes.c */
int lanes_start(struct deliver *d, struct err *e);
void lanes_push(struct deliver *d, enum task_kind kind, struct incoming *inc);
/* Somebody asks for it: it is given back, if we have it. */
void lanes_reseed(struct deliver *d, const char *id, uint64_t seq);
void lanes_applied(struct deliver *d, int64_t seq);
void lanes_reappeared(struct deliver *d, const char *id);
void lanes_free(struct deliver *d);
/* Sleeps until ms have passed, or somebody kicked or ended. */
bool deliver_pause(struct deliver *d, int64_t ms);	/* false: ending */

#endif
