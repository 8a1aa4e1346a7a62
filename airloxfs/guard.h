/* SPDX-License-Identifier: MIT
 *
 * guard: for a command that touches a mount whose daemon may hang: a stat that
 * is never answered cannot be given up, but the process can end.
 *
 * Between guard_begin and guard_end (same thread, not nested) at most ms may
 * pass; then the sentence is printed and the process exits with ERR_TIMEOUT's
 * status.  For mains only. */
#ifndef AIRLOXFS_GUARD_H
#define AIRLOXFS_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct guard {
	pthread_t thread;
	bool on;
	int64_t ms;
	const char *path;	/* of the mount, for the sentence */
};

void guard_begin(struct guard *g, const char *path, int64_t ms);
void guard_end(struct guard *g);

#endif
