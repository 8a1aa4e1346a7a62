/* SPDX-License-Identifier: MIT
 *
 * libs: the C libraries that an interpreter needs, and no more of the host's
 * library directory, which has programs too, some with set-id bits.
 *
 * The loader itself lists what the interpreter, the extensions of its standard
 * library and wheels (manylinux) ask for; those files are copied into a cache
 * once, named by what they are, and again when the host's change. */
#ifndef AIRLOX_RUNTIME_LIBS_H
#define AIRLOX_RUNTIME_LIBS_H

#include <limits.h>

#include "core/err.h"

struct libs_ask {
	const char *exe;	/* the interpreter */
	const char *extensions;	/* a directory of its .so files, or "" */
	const char *dir;	/* the host's library directory */
	int cache;		/* a directory, ours */
	const char *cache_path;
};

/* The directory that stands for ask->dir in a sandbox, into path. */
int libs_get(const struct libs_ask *ask, char path[PATH_MAX], struct err *e);

#endif
