/* SPDX-License-Identifier: MIT
 *
 * What runners.c (who they are, and their files) and runners_call.c (the
 * thread that asks and tells the relay) share. */
#ifndef AIRLOXFS_RUNNERS_PRIVATE_H
#define AIRLOXFS_RUNNERS_PRIVATE_H

#include "airloxfs/jobs_private.h"
#include "airloxfs/runners.h"

enum decision { DECIDED_NOTHING, DECIDED_APPROVE, DECIDED_REJECT };

struct runner {
	struct runner *next;
	struct runners *all;
	const struct participant *who;
	char *name;		/* of its directory */
	bool known;		/* the relay listed it: */
	bool online, rejected, listed;
	char job[ITEM_ID + 1];	/* "": idle */
	enum decision decision;	/* journalled, not done yet */
	char *reason;		/* of a rejection, or NULL */
	unsigned tries;
	int64_t retry_at_ms;	/* monotonic */
};

struct runners {
	struct jobs *j;
	struct journal *journal; /* decisions */
	pthread_t thread;
	bool has_thread;
	struct wire *wire;
	pthread_cond_t work;
	struct runner *first, **last;
	struct approval_list list;
	bool asked;		/* refresh soon */
	bool waiting;		/* and again: a job waits */
	int64_t refreshed_ms;	/* monotonic */
};

struct runner *runners_find(const struct runners *r,
			    const uint8_t pub[PRIM_PUB]);
void runners_touch(const struct runner *r);	/* its state is another */
/* Durably; done: it needs no more. */
int runners_note(struct runners *r, const struct runner *k, bool done,
		 struct err *e);
void *runners_thread(void *runners);

#endif
