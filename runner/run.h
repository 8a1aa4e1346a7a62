/* SPDX-License-Identifier: MIT
 *
 * run: a program of this host (not of a job), run to its end. */
#ifndef AIRLOX_RUNNER_RUN_H
#define AIRLOX_RUNNER_RUN_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"

struct run_ask {
	const char *const *argv;	/* argv[0] is a path, or found in PATH */
	const char *const *env;		/* NULL: ours without AIRLOX_* */
	const char *dir;		/* NULL: / */
	uid_t uid;			/* (uid_t)-1: as we are */
	gid_t gid;
	int timeout_ms;
	int stop;			/* readable: kill it and fail; or -1 */
};

/* Its stdout and stderr, together at most 64 KiB (the rest is dropped), are
 * added to out.  Gives its exit status, 128 + signal, or -1: ERR_SYS where it
 * cannot be started, ERR_TIMEOUT. */
int run_program(const struct run_ask *ask, struct buf *out, struct err *e);

/* Where a program is: an absolute path of PATH, or false. */
bool run_find(const char *name, char *to, size_t cap);

#endif
