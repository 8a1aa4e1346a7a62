/* SPDX-License-Identifier: MIT
 *
 * changes: what a box changed in one of its directories: two snaps compared,
 * and what a record says of each. */
#ifndef RUNNER_BOX_CHANGES_H
#define RUNNER_BOX_CHANGES_H

#include "runner/box/snap.h"

#define CHANGES_SAID 2000u	/* files of a record; of the rest the number */
#define CHANGES_DIFF_BYTES (64u << 10)

enum change_kind { CHANGE_ADDED, CHANGE_CHANGED, CHANGE_REMOVED, CHANGE_MODE };

struct change {
	enum change_kind kind;
	const struct snap_entry *was, *is;	/* NULL: not there */
	const char *applied;	/* what --apply made of it, or NULL */
};

struct changes {
	struct change *v;
	size_t n;
	bool cut;		/* of one of the two */
};

/* Borrows both. */
int changes_find(struct changes *c, const struct snap *was,
		 const struct snap *is, struct err *e);
void changes_free(struct changes *c);

const char *change_path(const struct change *c);
const char *change_word(const struct change *c);	/* "added" ... */
/* As unified diff, or nothing. */
void change_diff(struct buf *out, const struct change *c);
/* The part of a record; at: where the directory is in the box. */
void change_put(struct buf *out, const struct change *c, const char *at);

#endif
