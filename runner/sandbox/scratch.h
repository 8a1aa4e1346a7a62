/* SPDX-License-Identifier: MIT
 *
 * scratch: a job's directories on the host, while it runs.
 *
 *	BASE/airlox-runner.XXXXXX/	ours; the job's group may pass
 *		lock			held while somebody uses it
 *		work/  out/		0700, the job's user's
 *
 * A lock that nobody holds says that its runner is no more: the next one
 * removes it. */
#ifndef AIRLOX_SANDBOX_SCRATCH_H
#define AIRLOX_SANDBOX_SCRATCH_H

#include <limits.h>
#include <sys/types.h>

#include "core/err.h"

struct scratch {
	int base;		/* BASE */
	int lock;
	int work, out;		/* descriptors of the two */
	char name[32];		/* in BASE */
	char work_path[PATH_MAX], out_path[PATH_MAX];
};

/* uid and gid own work/ and out/; -1: as we are. */
int scratch_make(struct scratch *s, const char *base, uid_t uid, gid_t gid,
		 struct err *e);
/* Removes it from the disk, without giving up the lock. */
void scratch_remove(struct scratch *s);
void scratch_close(struct scratch *s);	/* the descriptors only */
/* Removes what runners that are no more left in base. */
void scratch_sweep(const char *base);

#endif
