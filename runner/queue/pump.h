/* SPDX-License-Identifier: MIT
 *
 * pump: what a job prints, written into its directory as it comes, and the
 * watch for `cancelled`.
 *
 * Everything is passed on, in pieces of at most 64 KiB: the mount keeps the
 * head and the tail of 512 KiB each and says what it left out.  Nothing is kept
 * here, so a job that prints gigabytes costs no memory. */
#ifndef AIRLOX_QUEUE_PUMP_H
#define AIRLOX_QUEUE_PUMP_H

#include <stdbool.h>

#include "core/err.h"

struct pump {
	int dir;		/* borrowed */
	int inotify;
	int from[2], to[2];	/* stdout, stderr; from is -1 at its end */
	char last[256];		/* the first line of stderr */
};

/* Takes neither descriptor over. */
int pump_open(struct pump *p, int dir, int out, int err, struct err *e);
/* What is there now, without waiting. */
int pump_some(struct pump *p, struct err *e);
/* To the end of both: nobody writes any more. */
int pump_rest(struct pump *p, struct err *e);
bool pump_cancelled(struct pump *p);
void pump_close(struct pump *p);

#endif
