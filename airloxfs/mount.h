/* SPDX-License-Identifier: MIT
 *
 * mount: one mounted session, and who may touch what of it.
 *
 * Threads: FUSE workers (fs.c) call the tree's handlers; one thread owns the
 * event stream (deliver.c) and hands items to lanes that fetch and verify;
 * posters (outbox.c) seal and send; one thread (notify.c) talks to the helper
 * process, which is the only one that makes entries appear through the mount;
 * one refreshes the audit file; one waits for signals (cmd/mount.c).
 *
 * `lock` guards the tree, the people of the peer and every field below that
 * says so.  It is never held in a system call on the mount, while waiting for
 * the network, or together with libfuse's notify calls. */
#ifndef AIRLOXFS_MOUNT_H
#define AIRLOXFS_MOUNT_H

#include <pthread.h>

#include "airloxfs/fs.h"
#include "core/host/peer.h"

struct notify;
struct outbox;
struct deliver;
struct line;
struct store;
struct in;
struct out;
struct audit;
struct queue_room;
struct jobs;

struct mount_options {
	bool strict;		/* -o strict: a commit without an answer fails */
	uint64_t cache_max;	/* bytes of blobs kept */
	uint64_t items_max;	/* entries of in/ */
	bool keep;		/* --keep: nothing is deleted at the end */
	const char *cache_dir;	/* --cache-dir, or NULL */
	const char *fuse;	/* options for the kernel and libfuse */
};

struct mount {
	pthread_mutex_t lock;
	struct peer *peer;
	struct mount_options opt;
	char *path;		/* absolute mount point */

	struct fs *fs;
	struct tree *tree;	/* lock */
	struct node *root;
	size_t trim_at;		/* out_trim looks when out/ has so many */
	struct node *dir_in, *dir_out, *dir_participants, *dir_rejected;
	struct node *dir_jobs, *dir_runners;	/* NULL: it has none */
	struct node *latest;
	struct node *dir_queue;	/* a runner's, else NULL */

	struct store *store;	/* the state directory and the index */
	struct notify *notify;
	struct in *in;
	struct out *out;
	struct outbox *outbox;
	struct deliver *deliver;
	struct audit *audit;
	struct queue_room *queue;	/* a runner's, else NULL */
	struct jobs *jobs;	/* NULL: it has none */
	struct line *events;	/* JSON lines, a stream */
	struct log *log;	/* a growing file */

	/* lock: what status says */
	bool online;
	int64_t since_ms;	/* of the state */
	struct err last_error;	/* newest failure of any kind */
	int64_t last_error_ms;
	_Atomic bool closed;	/* over for us: peer.h */
	_Atomic bool cut_off;	/* it is over for us, not for all */
	char closed_why[320];
	uint64_t refused;	/* items and participants not shown */
	uint64_t pending;	/* items whose blob is not here */
	uint64_t gaps;		/* sequence numbers that never came */
	unsigned waiting;	/* lanes that wait for room on this machine */
	struct err waits_for;	/* what they wait for */
	_Atomic bool stopping;	/* no new opens */
	void (*ready)(void *arg);
	void *ready_arg;
};

static inline void mount_lock(struct mount *m)
{
	pthread_mutex_lock(&m->lock);
}
static inline void mount_unlock(struct mount *m)
{
	pthread_mutex_unlock(&m->lock);
}
/* A node is held by a count in `opens`, taken with the lock held. */
static inline void mount_drop(struct mount *m, struct node *n)
{
	mount_lock(m);
	tree_drop(m->tree, n);
	mount_unlock(m);
}

/* Joins, loads what is on disk, starts the helper.  Takes over *v.  ERR_LOCKED
 * where the session is mounted already: *where is where (caller frees). */
struct mount *mount_open(struct invite *v, const struct peer_options *po,
			 const struct mount_options *o, const char *path,
			 char **where, struct err *e);
/* Mounts and serves; `ready` is called once the mount is usable. */
int mount_serve(struct mount *m, void (*ready)(void *arg), void *arg,
		struct err *e);
/* From a thread of its own: no new opens, drain, end of file to all who wait,
 * then the loop ends. */
void mount_stop(struct mount *m, int64_t wait_ms);
/* A sentence on what is unsent, and how much it is; nothing where all went. */
size_t mount_unsent(struct mount *m, struct buf *out);
/* Ends everything; the same of what is left. */
size_t mount_close(struct mount *m, struct buf *unsent);

/* To be called now and then: ends a session whose time is up.  Returns in how
 * many ms to look again. */
int64_t mount_tick(struct mount *m);

/* status, log and the last error, in one place.  Take the lock themselves. */
void mount_online(struct mount *m);
void mount_offline(struct mount *m, const struct err *why);
void mount_closed(struct mount *m, const char *why);
void mount_failed(struct mount *m, const struct err *why);
/* What a failed call to the relay means: offline, closed, or only an error. */
void mount_heard(struct mount *m, const struct err *e);
/* One line for log, in print format; peers' text must be escaped before. */
void mount_log(struct mount *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The static tree for this role (table.c). */
int mount_table(struct mount *m, struct err *e);

#endif
