/* SPDX-License-Identifier: MIT
 *
 * audit: the relay's audit trail, as a file.  A thread fetches it when
 * something has happened; reading never waits for the network. */
#ifndef AIRLOXFS_AUDIT_H
#define AIRLOXFS_AUDIT_H

#include "airloxfs/mount.h"

struct audit *audit_new(struct mount *m, struct err *e);
void audit_stale(struct mount *m);	/* something happened */
void audit_free(struct audit *a);

extern const struct node_ops audit_ops;

#endif
