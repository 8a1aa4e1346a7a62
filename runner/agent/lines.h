/* SPDX-License-Identifier: MIT
 *
 * lines: a stream cut into lines, each of at most LINES_MAX bytes. */
#ifndef RUNNER_AGENT_LINES_H
#define RUNNER_AGENT_LINES_H

#include "core/buf.h"

#define LINES_MAX (16u << 20)

struct lines {
	struct buf have;
	size_t from, seen;	/* begin of the next line; looked at so far */
};

/* Adds what was read.  -1: a line is longer than LINES_MAX, or no memory. */
int lines_add(struct lines *l, struct bytes in);
/* The next whole line without its end (LF or CR LF), valid until the next
 * call; false: there is none yet. */
bool lines_next(struct lines *l, struct bytes *line);
void lines_free(struct lines *l);

#endif
