/* SPDX-License-Identifier: MIT
 *
 * notify: how what comes from the network wakes a watcher.
 *
 * inotify sees only what happens through the mount, so a helper process (our
 * own binary, exec'd with --helper before the mount, without keys, /dev/fuse
 * or environment) makes entries appear by creating them in the mount.  The
 * entry is in the tree already, hidden; the daemon answers ENOENT for it to
 * everybody until the helper's CREATE arrives, whose answer carries the full
 * size.  A process and not a thread: killed with its request in flight, a
 * thread would leave a dead mount behind.
 *
 * Everything here is queued and goes on at once: a handler may call it. */
#ifndef AIRLOXFS_NOTIFY_H
#define AIRLOXFS_NOTIFY_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/err.h"

enum notify_op {
	NOTIFY_CREATE = 'c', NOTIFY_MKDIR = 'd', NOTIFY_UNLINK = 'u',
	NOTIFY_RMDIR = 'r', NOTIFY_TOUCH = 't', NOTIFY_POLL = 'p'
};

struct notify;
struct fuse_pollhandle;

/* Starts the thread and the helper; nothing is done on the mount before
 * notify_begin. */
struct notify *notify_new(const char *mount_path, struct err *e);
/* Before notify_begin: what the thread calls for each thing that is to appear
 * or go while no helper can be had, for five seconds and from then on. */
void notify_without(struct notify *n,
		    void (*without)(void *arg, enum notify_op op,
				    const char *path), void *arg);
void notify_begin(struct notify *n);	/* INIT was answered */
/* path below the mount's root, "in/name". */
void notify_post(struct notify *n, enum notify_op op, const char *path);
void notify_poll(struct notify *n, struct fuse_pollhandle *ph);	/* taken */
bool notify_is_helper(const struct notify *n, pid_t tid);
/* Ends thread and helper; what is queued then or later is dropped. */
void notify_stop(struct notify *n);
void notify_free(struct notify *n);

#define HELPER_ARG "--helper"
int helper_main(int argc, char **argv);	/* argv[2]: the mount point */

#endif
