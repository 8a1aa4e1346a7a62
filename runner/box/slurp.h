/* SPDX-License-Identifier: MIT
 *
 * slurp: a file that is small enough to be had whole. */
#ifndef RUNNER_BOX_SLURP_H
#define RUNNER_BOX_SLURP_H

#include "core/buf.h"
#include "core/err.h"

/* To its end, at most max bytes: ERR_SIZE above. */
int slurp(int fd, size_t max, struct buf *out, struct err *e);

#endif
