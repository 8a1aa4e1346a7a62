/* SPDX-License-Identifier: MIT
 *
 * way: the broker of a run, as whoever runs the box sees it: a process of its
 * own, the authority it made, and its account. */
#ifndef RUNNER_BOX_WAY_H
#define RUNNER_BOX_WAY_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"

#define WAY_TOKEN 32	/* hex digits */

struct way {
	pid_t broker;
	int control;		/* when it is closed everywhere, it ends */
	struct buf ca;		/* PEM */
	char token[WAY_TOKEN + 1];	/* what a proxy's user must say */
};

/* Starts it with the policy's text; what it does goes to the open files egress
 * and copy, which stay the caller's.  0 once it is ready: the credentials are
 * there. */
int way_open(struct way *w, struct bytes policy, int egress, int copy,
	     struct err *e);
void way_close(struct way *w);	/* and waits for its end */

#endif
