/* SPDX-License-Identifier: MIT
 *
 * letters: from the events of a mount to what a record says a box has written
 * to its session. */
#ifndef RUNNER_BOX_LETTERS_H
#define RUNNER_BOX_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

struct letters {
	int dir;		/* the mount's root */
	uint64_t pid_ns;	/* the box's: what others write is not said */
	size_t on_way;		/* written, not sent yet */
};

/* A line of `events`; adds what it means: lines "session JSON". */
void letters_read(struct letters *l, struct bytes line, struct buf *out);
/* The last lines: what is still on its way; gone: the mount is. */
void letters_end(struct letters *l, bool gone, struct buf *out);

#endif
