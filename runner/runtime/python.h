/* SPDX-License-Identifier: MIT
 *
 * python: the interpreter of a runtime ("python3.11"), and what of this host a
 * sandbox must see of it: the interpreter, its standard library and the C
 * libraries; no other program, no package of the host.
 *
 * /usr/bin/python3.N first, then PATH, then what uv has. */
#ifndef AIRLOX_RUNTIME_PYTHON_H
#define AIRLOX_RUNTIME_PYTHON_H

#include <limits.h>
#include <stdbool.h>

#include "core/err.h"
#include "runner/sandbox/plan.h"
#include "runner/site.h"

#define PYTHON_MOUNTS 12

struct python {
	char name[24];		/* "python3.11" */
	char exe[PATH_MAX];	/* the same path outside and inside */
	char prefix[PATH_MAX], stdlib[PATH_MAX], platlib[PATH_MAX];
	char libs[PATH_MAX];	/* where libc is */
	char trimmed[PATH_MAX];	/* python_trim's */
	char loader[2][PATH_MAX]; /* a symlink: from, to */
	struct plan_mount mounts[PYTHON_MOUNTS];	/* borrow from these */
	size_t n_mounts;
};

/* "python3." and digits. */
bool python_is_name(const char *name);

/* ERR_NOT_FOUND, with what was looked for.  The mounts borrow from *p: it may
 * not be moved. */
int python_find(struct python *p, const char *name, struct err *e);

/* In place of the host's library directory, a copy of what is needed of it, in
 * the cache (libs.h).  given: --cache-dir, or NULL.  After a failure the mounts
 * have the host's directory still. */
int python_trim(struct python *p, const struct site *s, const char *given,
		struct err *e);

#endif
