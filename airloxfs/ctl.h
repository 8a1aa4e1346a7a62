/* SPDX-License-Identifier: MIT
 *
 * ctl: verbs, one a line; the errno comes back from the write.
 *
 *	send NAME	commits out/NAME as it is
 *	retry NAME|all	commits a failed one again
 *	fetch SEQ	asks for an item again
 *	reconnect	tries the relay now */
#ifndef AIRLOXFS_CTL_H
#define AIRLOXFS_CTL_H

#include "airloxfs/mount.h"

#define CTL_LINE_MAX 512

/* Each whole line of one write to `verb`; the first failure ends it, is told
 * in status and log, and is the errno.  For every file of verbs. */
int ctl_lines(struct mount *m, struct node *n, const void *p, size_t len,
	      int (*verb)(struct mount *m, struct node *n, char *line,
			  struct err *e));

extern const struct node_ops ctl_ops;

#endif
