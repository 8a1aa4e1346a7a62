/* SPDX-License-Identifier: MIT
 *
 * text: small read-only text files, made when they are opened: README,
 * session, status, participants/, invites/, rejected/, and what ctl answers.
 * One record a line; a peer's text is escaped. */
#ifndef AIRLOXFS_TEXT_H
#define AIRLOXFS_TEXT_H

#include "airloxfs/mount.h"

/* Writes the content; takes the lock itself where it needs it. */
typedef void text_fn(struct mount *m, const struct node *n, struct buf *out);

void text_readme(struct mount *m, const struct node *n, struct buf *out);
void text_session(struct mount *m, const struct node *n, struct buf *out);
void text_status(struct mount *m, const struct node *n, struct buf *out);
void text_invite(struct mount *m, const struct node *n, struct buf *out);

/* With the lock held: */
struct node *text_made(struct mount *m, struct node *dir, const char *name,
		       mode_t mode, text_fn *make);
struct node *text_fixed(struct mount *m, struct node *dir, const char *name,
			struct bytes content);
/* A participant's file; hidden: the caller posts its create. */
struct node *text_participant(struct mount *m, const struct participant *who,
			      bool hidden);
/* latest leads to this entry of in/; or no more, where it did.  With the lock. */
void text_latest(struct mount *m, const char *name);
void text_latest_gone(struct mount *m, const char *name);
extern const struct node_ops latest_ops;

/* The helper takes it away from rejected/. */
void text_unlink_refusal(struct mount *m, const char *name);
/* The name of a file in rejected/, revealed to watchers.  Without the lock. */
void text_reveal_refusal(struct mount *m, uint64_t seq, const char *author);
void text_refusal_name(struct buf *out, uint64_t seq, const char *author);

/* Serves h->bytes, the snapshot taken at open: for other rooms' files too. */
void text_read(struct mount *m, struct fuse_req *req, struct handle *h,
	       size_t n, uint64_t off);

#endif
