/* SPDX-License-Identifier: MIT
 *
 * in: verified items of others, one immutable file each.
 *
 * The cache holds ciphertext; plaintext never touches the disk.  The one full
 * verification writes an index record with a hash of each 64 KiB of
 * ciphertext; a read checks the chunks it needs and decrypts just them. */
#ifndef AIRLOXFS_IN_H
#define AIRLOXFS_IN_H

#include "airloxfs/index.h"
#include "airloxfs/mount.h"
#include "core/host/opened.h"

struct in_item;

/* Opens the index and puts everything in it into the tree: before the mount
 * is there.  *cursor: the event from which the stream goes on. */
struct in *in_new(struct mount *m, int64_t *cursor, struct err *e);
void in_free(struct in *in);

/* --- for the deliver room --- */

/* Whether this event needs nothing more: shown, refused, ours, pending.  Not
 * whether the relay knows it: in_unacked. */
bool in_settled(struct in *in, uint64_t seq);
/* Where the stream would go on after a restart; kept in later records. */
void in_set_cursor(struct in *in, int64_t cursor);

/* Verifies the blob behind fd and appends its record: not yet durable, not
 * yet visible.  -1: e says why it is to be refused (or ERR_SYS, ERR_TIMEOUT:
 * try again later). */
struct in_new;
struct in_new *in_verify(struct mount *m, const struct incoming *inc, int fd,
			 struct err *e);
/* The same of a blob that is still coming in (struct opened_tap's await); it is
 * given up where that gives -1. */
struct in_coming {
	int (*await)(void *arg, uint64_t n, struct err *e);
	void *arg;
};
struct in_new *in_verify_coming(struct mount *m, const struct incoming *inc,
				int fd, const struct in_coming *how,
				struct err *e);
int in_sync(struct in *in, struct err *e);
/* Its blob is in the record too, and durable with it. */
bool in_is_whole(const struct in_new *v);
/* The cached blob again from the record, where that has it. */
int in_restore(struct mount *m, const char *id, struct err *e);
/* Makes it appear (or replaces a damaged one); frees v. */
void in_reveal(struct mount *m, struct in_new *v);

/* Remembers, durably with the next in_sync; and shows a line in log, events
 * and, for a refusal, a file in rejected/. */
void in_note_participant(struct mount *m, uint64_t seq, struct bytes join);
void in_note_left(struct mount *m, uint64_t seq,
		  const struct participant *who);
void in_note_own(struct mount *m, uint64_t seq, const char *id);
void in_note_pending(struct mount *m, uint64_t seq, struct bytes envelope);
/* Only its envelope is kept: in_envelope finds it. */
void in_note_seen(struct mount *m, uint64_t seq, const char *id,
		  struct bytes envelope);
void in_refuse(struct mount *m, uint64_t seq, const char *id,
	       const char *author, const struct err *why);

/* An item anew from what the index keeps of it: a pending one, or one whose
 * blob is damaged.  NULL where its author is not known. */
struct incoming *in_incoming(struct mount *m, uint64_t seq, struct bytes raw);
/* Calls each for every item that is still pending. */
void in_pending(struct mount *m,
		void (*each)(void *arg, uint64_t seq, struct bytes envelope),
		void *arg);
/* Calls each, in their order, for what was verified and is above the cursor:
 * the relay may not know that. */
void in_unacked(struct mount *m,
		void (*each)(void *arg, uint64_t seq, const char *id),
		void *arg);
/* Whether it is known, and nothing of it is shown here: what we sent. */
bool in_is_own(struct in *in, const char *id);
/* The number of an item that is known, ours or not. */
bool in_seq(struct in *in, const char *id, uint64_t *seq);
/* The envelope of an item by id, for a refetch; -1: unknown. */
int in_envelope(struct mount *m, const char *id, uint64_t *seq,
		struct buf *out);

/* --- for the jobs room --- */

/* An item that was verified once, opened again: with its cached blob. */
struct in_again {
	struct incoming *inc;
	int fd;
	struct opened *opened;
};
int in_again(struct mount *m, const char *id, struct in_again *a,
	     struct err *e);
void in_again_free(struct in_again *a);
bool in_has(struct mount *m, const char *id);	/* verified, and durable */
/* Once, after loading: each item that is no file and no text, and that `want`
 * says yes to, in its order. */
void in_each_signed(struct mount *m,
		    bool (*want)(void *arg, const struct item_header *h),
		    void (*each)(void *arg, const struct incoming *inc,
				 const struct opened *o), void *arg);

/* --- for others --- */

/* A reference from a word: a seq or an id.  ERR_NOT_FOUND. */
int in_ref(struct mount *m, const char *word, struct item_ref *ref,
	   struct err *e);
/* ctl: fetch SEQ. */
int in_fetch(struct mount *m, uint64_t seq, struct err *e);

extern const struct node_ops in_dir_ops, rejected_ops;

#endif
