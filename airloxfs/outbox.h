/* SPDX-License-Identifier: MIT
 *
 * outbox: what was committed and is on its way.
 *
 * A commit is sealed into the outbox (id, bytes and signature are fixed there,
 * and durable), then posted.  Whoever closed the file waits for the answer, at
 * most 10 s of network; after that the item is queued: it goes on by itself,
 * also after a crash, and arrives exactly once, because its id is fixed and
 * the relay takes an id once.
 *
 * Up to 8 posters run at a time.  After a failure of the network the rest is a
 * backlog: it drains one by one, in the order of the commits, before anything
 * newer. */
#ifndef AIRLOXFS_OUTBOX_H
#define AIRLOXFS_OUTBOX_H

#include "airloxfs/mount.h"

struct outgoing;

#define OUTBOX_WAIT_MS 10000	/* a close waits so long for the network */

struct outbox_counts {
	size_t queued, sent, failed;	/* since this mount began */
};

/* Loads what an earlier mount left. */
struct outbox *outbox_new(struct mount *m, struct err *e);
int outbox_start(struct outbox *o, struct err *e);
/* Answers all who wait and ends the posters, which use the deliver room: it
 * stays usable for that one, which ends after it. */
void outbox_stop(struct outbox *o);
void outbox_free(struct outbox *o);

/* Commits a file of out/ under `name`, or a text.  The answer goes to req:
 * 0, or the errno of airloxfs(4).  The file is held until it is done.
 * pid_ns: who wrote it, as proc_pid_ns says it. */
void outbox_commit(struct mount *m, struct outgoing *f, const char *name,
		   struct fuse_req *req);
void outbox_say(struct mount *m, struct bytes text, uint64_t pid_ns,
		struct fuse_req *req);
/* The same for a caller that waits in this thread, at most wait_ms of
 * network.  Returns an errno; name may be NULL: the file's own. */
int outbox_commit_wait(struct mount *m, struct outgoing *f, const char *name,
		       int64_t wait_ms);

/* The queued item of this file is taken back, where the relay cannot have it
 * yet: durably, but for one that is being sealed for more than a second. */
void outbox_withdraw(struct mount *m, struct outgoing *f);
/* Our own item came back by the stream: it is there. */
void outbox_seen(struct mount *m, const char *id, uint64_t seq);
/* The relay is back; or the session is over: then everything fails, and its
 * content is kept. */
void outbox_kick(struct mount *m);

struct outbox_counts outbox_counts(struct outbox *o);
/* Waits until nothing is queued, wait_ms at most; gives what is left. */
size_t outbox_drain(struct mount *m, int64_t wait_ms);

/* --- for what is sealed elsewhere: a result and its files --- */

struct outbox_item {
	struct sealed sealed;	/* its blob is in a file that outbox_blob gave */
	char blob[FILE_TMP];
	const char *name;	/* borrowed; NULL: the result */
};
/* A file for a blob of n bytes; its descriptor. */
int outbox_blob(struct mount *m, uint64_t n, char blob[FILE_TMP],
		struct err *e);
/* All of them under one key, durably or not at all: the last, of generation
 * 2, is posted once the others, of generation 1, are.  Takes them over where
 * it returns 0; of its end queue_posted hears. */
int outbox_put(struct mount *m, const char *key, struct outbox_item *v,
	       size_t n, struct err *e);
void outbox_item_drop(struct mount *m, struct outbox_item *item);
/* While loading: those of this key, none of which was posted, are dropped. */
void outbox_forget(struct outbox *o, const char *key);

/* What became of the newest commit of a draft, as the outbox's journal says:
 * for loading drafts after a crash. */
struct outbox_outcome {
	bool known, done, sent;
	uint64_t gen, seq;
	char id[ITEM_ID + 1];
};
struct outbox_outcome outbox_outcome(struct outbox *o, const char *draft);
/* Gives queued items their file; false: none of it is queued. */
bool outbox_adopt(struct outbox *o, const char *draft, struct outgoing *f);
/* Once every draft was loaded: drops what is done from the disk. */
void outbox_compact(struct outbox *o);

#endif
