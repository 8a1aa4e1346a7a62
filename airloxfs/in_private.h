/* SPDX-License-Identifier: MIT
 *
 * What in.c, verify.c and load.c share of the in room, and nobody else. */
#ifndef AIRLOXFS_IN_PRIVATE_H
#define AIRLOXFS_IN_PRIVATE_H

#include "airloxfs/in.h"
#include "airloxfs/store.h"
#include "core/aead.h"

#define IN_SLOTS 4096
#define REFUSALS_SHOWN 1000	/* the newest, in rejected/ */
#define REFUSALS_TOLD 1000	/* one by one in an hour; more are counted */
#define REFUSALS_MS (INT64_C(3600) * 1000)

struct in_item {
	struct in_item *next;	/* in its slot */
	uint64_t seq;
	uint64_t at;		/* its record; 0: none (ours, refused) */
	char id[ITEM_ID + 1];
	bool verified;		/* at start: not only noted */
	struct node *node;	/* the mount's lock; NULL: hidden */
};

struct missing {
	struct missing *next;
	uint64_t seq;
	struct buf envelope;
};

/* A job, result or event, as loading saw it. */
struct in_signed {
	struct in_signed *next;
	char id[ITEM_ID + 1];
};

struct in {
	struct journal *journal;
	pthread_mutex_t lock;	/* guards all below */
	struct in_item *items[IN_SLOTS];
	uint64_t *settled;	/* at start, above the cursor; sorted */
	size_t settled_n, settled_cap;
	int64_t cursor;
	bool stuck;		/* a note was lost: the cursor stays before it,
				 * and the next mount hears of it again */
	struct missing *missing;
	/* refusals that were told one by one, since when (monotonic), and how
	 * many since then were only counted */
	unsigned told, untold;
	int64_t told_since_ms;
	struct in_signed *signed_first, **signed_last; /* while loading */
};

/* Called with in->lock. */
struct in_item *in_find(struct in *in, const char *id);
struct in_item *in_add(struct in *in, const char *id, uint64_t seq);

/* Called without it. */
/* The key of an item's chunk tags: for this machine's index alone, which is
 * sealed, so nobody sees a tag of bytes that were refused. */
void in_chunk_key(const struct mount *m, uint8_t key[AEAD_KEY],
		  const char *id);
int in_append(struct in *in, struct index_record *r, uint64_t *at,
	      struct err *e);
/* What nobody waits for; where it cannot be kept, that is told. */
void in_note(struct mount *m, struct index_record *r);
int in_record(struct in *in, uint64_t at, struct index_record *r,
	      struct buf *raw, struct err *e);
/* A file in rejected/. */
void in_show_refusal(struct mount *m, uint64_t seq, const char *author,
		     struct bytes reason, bool hidden);
/* A verified item's node; hidden: until the helper's create. */
struct node *in_show(struct mount *m, struct in_item *i, const char *name,
		     uint64_t size, int64_t created_ms, bool hidden);

extern const struct node_ops item_ops;

#endif
