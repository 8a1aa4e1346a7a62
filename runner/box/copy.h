/* SPDX-License-Identifier: MIT
 *
 * copy: a directory of the user's, copied for a box: files with their mode
 * (no set-id) and time, links as they are, nothing else. */
#ifndef RUNNER_BOX_COPY_H
#define RUNNER_BOX_COPY_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

#define COPY_DEPTH 32
#define COPY_MAX_BYTES (UINT64_C(4) << 30)

struct copied {
	uint64_t bytes;
	uint64_t left_out;	/* sockets, fifos, devices, other mounts */
};

/* `to` is empty; uid and gid own it, -1: as they come.  ERR_SIZE above
 * COPY_MAX_BYTES, ERR_INVALID where it is too deep. */
int copy_in(int from, int to, uid_t uid, gid_t gid, struct copied *c,
	    struct err *e);

#endif
