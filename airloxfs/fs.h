/* SPDX-License-Identifier: MIT
 *
 * fs: FUSE requests and the tree's handlers.  This room and notify are the
 * only ones that include libfuse; the others see a request as an opaque
 * struct fuse_req, to be answered exactly once.
 *
 * Rules (docs/DESIGN.md): a handler waits neither for the network nor for the
 * helper; it holds no lock of ours in a system call on the mount; only READ
 * and FLUSH may be answered later. */
#ifndef AIRLOXFS_FS_H
#define AIRLOXFS_FS_H

#include <pthread.h>

#include "airloxfs/tree.h"
#include "core/buf.h"
#include "core/err.h"

struct mount;
struct fuse_req;
struct fuse_pollhandle;
struct vault;

/* One open of a file. */
struct handle {
	struct node *node;	/* held by node->opens */
	int flags;		/* of open(2) */
	pid_t opener;		/* thread that opened it */
	bool direct, stream;	/* set by ops->open: no page cache; a pipe */
	bool keep;		/* ops->open: the page cache stays valid */
	struct buf bytes;	/* a text's snapshot, or what say collects */
	void *data;		/* the ops' own */
	bool failed;		/* a write on it failed: see out.c */
};

/* What serves a node.  A missing handler answers EPERM (create, unlink, ...)
 * or does nothing (open, release).  Those that return int return 0 or an
 * errno; those that get a struct fuse_req answer it themselves.  Called
 * without the mount's lock, but for `free`. */
struct node_ops {
	/* files */
	int (*open)(struct mount *m, struct handle *h);
	void (*read)(struct mount *m, struct fuse_req *req, struct handle *h,
		     size_t n, uint64_t off);
	int (*write)(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off);
	void (*flush)(struct mount *m, struct fuse_req *req, struct handle *h,
		      pid_t tid);
	int (*fsync)(struct mount *m, struct handle *h);
	void (*release)(struct mount *m, struct handle *h);
	/* A stream: ready to read? ph (may be NULL) is kept for a wake-up. */
	bool (*poll)(struct mount *m, struct handle *h,
		     struct fuse_pollhandle *ph);
	int (*truncate)(struct mount *m, struct node *n, uint64_t size);
	/* Mode, owner, times were changed in the node. */
	void (*changed)(struct mount *m, struct node *n);
	/* ENODATA where there is none of that name. */
	int (*getxattr)(struct mount *m, struct node *n, const char *name,
			struct buf *out);
	void (*listxattr)(struct mount *m, struct node *n, struct buf *out);
	int (*setxattr)(struct mount *m, struct node *n, const char *name,
			struct bytes value, int flags);
	int (*removexattr)(struct mount *m, struct node *n, const char *name);

	/* directories */
	int (*create)(struct mount *m, struct node *dir, const char *name,
		      mode_t mode, int flags, struct node **out);
	int (*mkdir)(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct node **out);
	int (*unlink)(struct mount *m, struct node *dir, struct node *n);
	int (*rmdir)(struct mount *m, struct node *dir, struct node *n);
	int (*rename)(struct mount *m, struct node *n, struct node *dir,
		      const char *name, unsigned flags, pid_t tid);

	/* The helper's unlink: 0, or an errno where it is to stay after all.
	 * Missing: it goes. */
	int (*expire)(struct mount *m, struct node *n);

	/* The helper made it appear: it is not hidden any more. */
	void (*shown)(struct mount *m, struct node *n);
	void (*free)(struct node *n);	/* data; with the lock held */
	/* The true size where it is made when asked; else node->size. */
	uint64_t (*size)(struct mount *m, const struct node *n);
	double timeout_s;	/* how long the kernel may keep attributes */
};

/* ops->truncate of a file that keeps no bytes: `>` opens it all the same. */
int fs_truncate_nothing(struct mount *m, struct node *n, uint64_t size);

void fs_reply_error(struct fuse_req *req, int err);	/* 0: done */
void fs_reply_data(struct fuse_req *req, const void *p, size_t n);
/* n bytes at off of a vault (NULL: an empty one); `lock` guards it and *v. */
void fs_reply_vault(struct fuse_req *req, pthread_mutex_t *lock,
		    struct vault *const *v, size_t n, uint64_t off);
/* Calls `gone` (with no lock of ours held) when the caller gives up, by a
 * signal, before the answer.  To keep a request: call this first, then take
 * your lock, look at fs_interrupted, and put the request where `gone` finds it
 * under the same lock; whoever takes it from there answers it. */
void fs_on_interrupt(struct fuse_req *req,
		     void (*gone)(struct fuse_req *req, void *arg), void *arg);
bool fs_interrupted(struct fuse_req *req);

/* The session with the kernel. */
struct fs;
struct fs *fs_new(struct mount *m, const char *options, struct err *e);
int fs_mount(struct fs *fs, const char *dir, struct err *e);
/* Serves until unmounted or fs_stop; `ready` is called once INIT was
 * answered.  0, or -1. */
int fs_loop(struct fs *fs, void (*ready)(struct mount *m), struct err *e);
void fs_stop(struct fs *fs);		/* from any thread */
void fs_unmount(struct fs *fs);
void fs_free(struct fs *fs);

#endif
