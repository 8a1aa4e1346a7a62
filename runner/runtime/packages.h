/* SPDX-License-Identifier: MIT
 *
 * packages: a virtual environment for each (runtime, set of packages), kept in
 * a cache and mounted read-only.
 *
 * pip downloads wheels, and only wheels, as the job's user: nothing of a
 * package runs then.  They are unpacked by a few lines of Python in a sandbox,
 * and what that wrote is copied into the cache without links or set-id bits.
 * The set is what the session allows; where that cannot be had as a whole, what
 * the job wants. */
#ifndef AIRLOX_RUNTIME_PACKAGES_H
#define AIRLOX_RUNTIME_PACKAGES_H

#include "core/err.h"
#include "runner/site.h"
#include "runner/runtime/python.h"

/* Where a sandbox has it, and its interpreter. */
#define PACKAGES_DIR "/packages"
#define PACKAGES_PYTHON "/packages/bin/python3"

struct packages_ask {
	struct site *host;
	const struct python *python;
	const char *cache;		/* --cache-dir, or NULL */
	const char *const *allowed;	/* normalised names */
	size_t n_allowed;
	const char *const *wanted;
	size_t n_wanted;
	int stop;			/* readable: give up */
};

/* The environment's directory into path.  ERR_NOT_FOUND: a package or pip
 * cannot be had. */
int packages_get(const struct packages_ask *ask, char path[PATH_MAX],
		 struct err *e);

#endif
