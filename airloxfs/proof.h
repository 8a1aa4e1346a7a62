/* SPDX-License-Identifier: MIT
 *
 * proof: an audit trail on its way through core/host/trail, and the report:
 * what it proves, what it does not. */
#ifndef AIRLOXFS_PROOF_H
#define AIRLOXFS_PROOF_H

#include "core/host/trail.h"

struct proof {
	struct trail *trail;
	bool json;		/* --json */
	bool pinned;		/* which session it must be was given */
	struct buf line;	/* one that is not whole yet */
	struct buf faults;	/* --json: the array's elements */
	uint32_t told;
};

/* Bytes of the trail, as they come.  A fault is told and no error. */
int proof_take(struct proof *p, const void *bytes, size_t n, struct err *e);
/* The end: the report on stdout.  Gives the exit status. */
int proof_end(struct proof *p);
void proof_free(struct proof *p);

#endif
