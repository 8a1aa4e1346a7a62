/* SPDX-License-Identifier: MIT
 *
 * files: the directories that a box may write in: copied before it runs,
 * compared after, taken back as far as somebody wants. */
#ifndef RUNNER_BOX_FILES_H
#define RUNNER_BOX_FILES_H

#include "runner/box/account.h"
#include "runner/box/changes.h"
#include "runner/policy/policy.h"
#include "runner/sandbox/scratch.h"

enum files_apply { FILES_LEAVE, FILES_ASK, FILES_ALL };

/* One that it may write in. */
struct files_tree {
	const struct policy_file *file;	/* NULL: the box's own /work */
	const char *at;
	int original;		/* POLICY_COPY: what was copied; or -1 */
	int dir;		/* what the box writes in */
	struct snap was, is;
	struct changes changes;
};

struct files {
	struct files_tree *tree;
	size_t n;
	uint64_t copied_bytes;
	bool root;
};

/* Copies what the policy wants copied into scratch->out, and takes snaps.
 * uid, gid: the box's user, or -1. */
int files_open(struct files *f, const struct policy *p,
	       const struct scratch *scratch, uid_t uid, gid_t gid,
	       struct err *e);
/* ERR_USAGE where `how` cannot be: nothing is copied, nobody to ask. */
int files_may_apply(const struct policy *p, enum files_apply how,
		    struct err *e);
/* The box has ended with code: compares, takes back, and says it, in the
 * account and to who sees stderr.  run names the directory for what is kept
 * aside.  Gives how many changes that were wanted could not be taken. */
size_t files_close(struct files *f, struct account *a, enum files_apply how,
		   int code, const char *run);
void files_free(struct files *f);

#endif
