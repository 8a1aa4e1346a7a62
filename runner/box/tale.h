/* SPDX-License-Identifier: MIT
 *
 * tale: a run's record told on a terminal while it grows.  What an agent says
 * to people goes to standard output, all else to standard error; everything
 * is escaped, and colours are for terminals alone. */
#ifndef RUNNER_BOX_TALE_H
#define RUNNER_BOX_TALE_H

#include <stdint.h>

#include "core/buf.h"

#define TALE_ASKS 64

struct tale {
	bool colour;		/* of standard error */
	bool together;		/* both go to one terminal */
	bool in_line;		/* the agent's text has no newline yet */
	bool old;		/* what is told was before we came */
	unsigned open[TALE_ASKS];	/* questions, in their order */
	size_t open_n;
	bool over;
	int exit;		/* when it is over */
};

void tale_begin(struct tale *t);
/* A line of the chain; one that is none is left out. */
void tale_line(struct tale *t, struct bytes line);

#endif
