/* SPDX-License-Identifier: MIT
 *
 * where: the mount point: is it free, whose is it, is it dead. */
#ifndef AIRLOXFS_WHERE_H
#define AIRLOXFS_WHERE_H

#include "core/err.h"

enum where_kind {
	WHERE_FREE,		/* an empty directory */
	WHERE_OURS,		/* a live mount of airloxfs */
	WHERE_DEAD		/* a dead one of ours */
};

/* The absolute path of an existing directory, also of a dead mount's; the
 * caller frees.  ERR_MOUNTPOINT. */
char *where_path(const char *dir, struct err *e);
/* What is there.  ERR_MOUNTPOINT for all that is not ours to use, naming whose
 * it is. */
int where_look(const char *path, enum where_kind *kind, struct err *e);
/* Takes a dead mount of ours away, and waits until it is gone. */
int where_clear(const char *path, struct err *e);
/* Waits for the fusermount3 that a daemon before us left behind to unmount
 * after its end: late, it would take our mount away.  Not where one is live. */
void where_settle(const char *path);
/* Whether this machine can mount: /dev/fuse, fusermount3.  ERR_NO_FUSE with
 * the remedy. */
int where_fuse(struct err *e);

#endif
