/* SPDX-License-Identifier: MIT
 *
 * collect: what a sandbox left in its out directory, brought out.
 *
 * Here trust changes hands: names, kinds and sizes are the job's.  Each file
 * is opened beneath its directory without following anything (openat2), and
 * only regular files and directories are taken.  What is left behind is named
 * with the reason, never silently. */
#ifndef AIRLOX_SANDBOX_COLLECT_H
#define AIRLOX_SANDBOX_COLLECT_H

#include <stdint.h>

#include "core/buf.h"
#include "core/err.h"

struct collect_limits {
	uint64_t bytes;		/* in all */
	uint64_t files;		/* regular files */
};

struct collected {
	uint64_t bytes, files;
	uint64_t dropped;	/* how many were left behind */
	struct buf names;	/* "x (link), y (too large)", escaped; a few */
};

/* Copies what is below `from` into the directory `to` under the same names.
 * A name that `to` refuses (EINVAL, EFBIG, ENOSPC, ...) is dropped and named.
 * Fails only where `from` cannot be read or `to` is gone; c is to be freed in
 * any case. */
int collect_out(int from, int to, const struct collect_limits *limits,
		struct collected *c, struct err *e);
void collected_free(struct collected *c);

#endif
