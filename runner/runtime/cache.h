/* SPDX-License-Identifier: MIT
 *
 * cache: where environments and libraries are kept: --cache-dir, else
 * /var/cache/airlox-runner as root, else the user's cache directory. */
#ifndef AIRLOX_RUNTIME_CACHE_H
#define AIRLOX_RUNTIME_CACHE_H

#include <limits.h>

#include "core/err.h"
#include "runner/site.h"

/* Its descriptor; it is made where it is missing, and the job's user may pass
 * through what is made.  given: --cache-dir, or NULL. */
int cache_open(const struct site *s, const char *given, char path[PATH_MAX],
	       struct err *e);

#endif
