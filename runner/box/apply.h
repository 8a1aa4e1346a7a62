/* SPDX-License-Identifier: MIT
 *
 * apply: one change of a copy, made to what was copied.
 *
 * Here trust changes hands: names, kinds and contents are a box's.  Only
 * regular files are written, beneath the directory, through no link and into
 * no other mount, under another name first; what is not as it was when it was
 * copied is not touched, and the box's is kept aside. */
#ifndef RUNNER_BOX_APPLY_H
#define RUNNER_BOX_APPLY_H

#include "runner/box/changes.h"

struct apply {
	int original, copy;	/* directories; the caller's */
	const char *aside;	/* a directory, made when it is needed, */
	int aside_fd;		/* and open then; or -1 */
	bool root;		/* files get the owner of what they replace */
};

/* Why this change is never applied, or NULL. */
const char *apply_refuses(const struct change *c);
/* What runs programs when it is merely looked at: it is not taken unasked. */
bool apply_is_risky(const struct change *c);

/* true: it is done.  false: it is not, and *why has the reason, a constant; it
 * was kept aside where that could be. */
bool apply_change(struct apply *a, const struct change *c, const char **why);
/* false: it could not be. */
bool apply_keep_aside(struct apply *a, const struct change *c);

#endif
