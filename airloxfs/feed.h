/* SPDX-License-Identifier: MIT
 *
 * feed: for commands that stay only a while: hears the events, gets each item
 * and opens it. */
#ifndef AIRLOX_MOUNT_FEED_H
#define AIRLOX_MOUNT_FEED_H

#include "core/host/opened.h"

enum shown_status { SHOWN_OK, SHOWN_PENDING, SHOWN_EVICTED, SHOWN_REJECTED };

/* An item, or why it is none.  Valid during the call. */
struct shown {
	enum shown_status status;
	uint64_t seq;
	const char *id;
	const struct incoming *item;	/* NULL where the envelope was bad */
	const struct participant *author;	/* may be NULL */
	struct opened *opened;		/* SHOWN_OK */
	const struct err *why;		/* the others */
};

enum feed_pick {
	FEED_SHOW,	/* fetch and show it */
	FEED_LEAVE,	/* nothing is fetched */
	FEED_KEEP	/* the same; the item is the hook's from here on */
};

struct feed {
	struct peer *peer;
	struct wire *listen;		/* the stream's */
	struct wire *get;		/* for blobs and acks */
	int (*show)(void *arg, const struct shown *s, struct err *e);
	void *arg;
	bool quiet;			/* hear only: nothing is fetched */
	/* For those who do not want every item (NULL: they do), and who want
	 * to hear of more; both get arg. */
	enum feed_pick (*pick)(void *arg, struct incoming *in);
	int (*news)(void *arg, const struct event *ev, const struct news *n,
		    struct err *e);
	bool done;			/* a hook sets it: enough was heard */
	bool live;			/* private: history is over */
	struct incoming **waiting;	/* evicted: asked for */
	size_t waiting_n;
	char (*wanted)[ITEM_ID + 1];	/* by others, in history */
	size_t wanted_n;
};

int feed_open(struct feed *f, struct peer *p,
	      int (*show)(void *arg, const struct shown *s, struct err *e),
	      void *arg, struct err *e);
/* What is there now. */
int feed_now(struct feed *f, struct err *e);
/* What comes, until the session ends, `done` is set (0) or end_ms of the
 * monotonic clock. */
int feed_follow(struct feed *f, int64_t end_ms, struct err *e);
void feed_close(struct feed *f);

#endif
