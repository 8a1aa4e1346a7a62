/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "runner/runtime/cache.h"

static int find(const struct site *s, const char *given, char path[PATH_MAX],
		struct err *e)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;
	if (given)
		n = snprintf(path, PATH_MAX, "%s", given);
	else if (s->root)
		n = snprintf(path, PATH_MAX, "/var/cache/airlox-runner");
	else if (xdg && xdg[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/airlox-runner", xdg);
	else if (home && home[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/.cache/airlox-runner", home);
	else
		return err_set(e, ERR_USAGE, "no HOME: where is the cache of "
			       "packages? give --cache-dir");
	return n < 3900 ? 0 : err_set(e, ERR_USAGE, "the cache's path is too "
				      "long");
}

int cache_open(const struct site *s, const char *given, char path[PATH_MAX],
	       struct err *e)
{
	char part[PATH_MAX];
	if (find(s, given, path, e) < 0)
		return -1;
	for (size_t n = 1;; n++) {
		if (path[n] && path[n] != '/')
			continue;
		snprintf(part, sizeof part, "%.*s", (int)n, path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "cannot make %s", part);
		if (!path[n])
			break;
	}
	char *real = realpath(path, NULL);
	if (!real || strlen(real) >= 3900) {
		free(real);
		return err_sys(e, "cannot look at %s", path);
	}
	strcpy(path, real);
	free(real);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "cannot open %s", path) : fd;
}
