/* SPDX-License-Identifier: MIT
 *
 * out: a file written here is sent.
 *
 * A file is a draft (an encrypted vault) until a close, a rename or a verb
 * commits it (commit.h); then it stays as the record of what was sent.  Its
 * header on disk carries name, state and attributes, so that a crash or an
 * unmount loses nothing. */
#ifndef AIRLOXFS_OUT_H
#define AIRLOXFS_OUT_H

#include "airloxfs/mount.h"
#include "core/host/draft.h"
#include "core/host/vault.h"

#define OUT_RECORDS 1000	/* sent or failed ones that are kept */
#define OUT_WRITERS 8		/* processes remembered per draft */
#define OUT_CALL_WAIT_MS 1000	/* a rename holds its directory, a verb one of
				 * few threads: they wait no longer */

enum out_state { OUT_STAGED, OUT_QUEUED, OUT_SENT, OUT_FAILED };

struct out_xattr {
	struct out_xattr *next;
	char *name;
	struct buf value;
};

struct outgoing {
	struct node *node;	/* the mount's lock, as the next */
	bool is_record;		/* sent or failed: out_trim may take it */
	bool leaving;		/* and has asked the helper to */

	pthread_mutex_t lock;	/* guards all below; taken before the outbox's
				 * and the mount's */
	struct vault *vault;
	enum out_state state;
	char id[ITEM_ID + 1];
	uint64_t seq;
	char error[320];	/* the sentence of the last failure */
	uint64_t gen;		/* rises when a sent draft is written anew */
	bool dirty;		/* bytes that were not committed */
	bool temporary;		/* made as mkstemp makes them: sent by rename */
	bool poisoned;		/* its writer was killed, or a write failed */
	int write_errno;	/* of the failed write, repeated by FLUSH */
	pid_t writers[OUT_WRITERS];	/* processes */
	pid_t opener;
	uint64_t pid_ns;	/* the opener's, if it is not ours */
	unsigned handles;	/* open for writing */
	unsigned busy;		/* who reads or syncs the vault, which takes
				 * long, and lets the lock go meanwhile: the
				 * content stays as it is */
	pthread_cond_t idle;	/* busy is 0 again */
	struct item_ref *refs;
	size_t ref_n;
	struct out_xattr *xattrs;
	bool header_stale;	/* what is on disk is older than this */
};

struct out;
struct out *out_new(struct mount *m, struct err *e); /* loads the drafts */
void out_free(struct mount *m);	/* drafts are made durable */
const char *out_state_word(enum out_state s);

/* --- for the outbox; each takes f->lock --- */
void out_hold(struct mount *m, struct outgoing *f);
void out_drop(struct mount *m, struct outgoing *f);
/* State as the item of generation `gen` goes its way, for as long as the file
 * was not written anew; why is NULL unless it failed. */
void out_set_state(struct mount *m, struct outgoing *f, uint64_t gen,
		   enum out_state s, const char *id, uint64_t seq,
		   const struct err *why);

/* The content of one that is busy, for a zip_source: 0 or -1. */
int out_read_busy(void *file, uint64_t off, void *to, size_t n);
void out_idle(struct outgoing *f);	/* ends what out_busy began */

/* --- with f->lock --- */
void out_busy(struct outgoing *f);
/* To be called before the content or the vault is changed; lets the lock go
 * while it waits. */
void out_await_idle(struct outgoing *f);
/* Writes name, state and attributes to the draft's header. */
int out_put_header(struct mount *m, struct outgoing *f, struct err *e);
bool out_is_draft_name(const char *name);
/* NULL where the commit may be tried; else the sentence why not is in e. */
int out_name_ok(struct mount *m, const char *name, struct err *e);

/* ctl: send NAME, retry NAME; drafts that wait: how many. */
int out_send(struct mount *m, const char *path, struct err *e);
int out_retry(struct mount *m, const char *path, struct err *e);
size_t out_unsent(struct mount *m, struct buf *names);
/* The relay has this item of ours: one that was called failed was not. */
void out_came_back(struct mount *m, const char *id, uint64_t seq);
/* The newest OUT_RECORDS are kept, and a few more for a while. */
void out_trim(struct mount *m);

/* How content is looked at before it is sealed: seal_out.c. */
extern const struct draft_look seal_look;

/* --- for the jobs room, whose inputs are drafts that no close sends --- */
/* UTF-8 without control characters. */
int out_plain_name(const char *name, struct err *e);
/* An errno. */
int out_new_file(struct mount *m, struct node *dir, const char *name,
		 mode_t mode, int flags, struct node **out);
void out_forget(struct mount *m, struct node *n);	/* content and node */
/* Below a node that was moved: headers hold paths. */
void out_put_headers(struct mount *m, struct node *n);
/* A walk in which each node is held while it is looked at: the first after
 * *at, which moves on; NULL at the end.  Without the lock; mount_drop. */
struct node *out_hold_next(struct mount *m, const struct node *dir,
			   uint64_t *at);

/* out_tree.c */
extern const struct node_ops out_dir_ops, out_file_ops, out_ctl_ops;
struct outgoing *out_file_new(struct vault *v);
struct node *out_add(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct outgoing *f);
uint64_t out_limit(const struct mount *m, const char *name);

#endif
