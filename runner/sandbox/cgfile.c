/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "runner/sandbox/cgfile.h"

int cgfile_open(const char *dir, const char *name, int flags)
{
	char path[PATH_MAX + 256];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >=
	    (int)sizeof path)
		return -1;
	return open(path, flags | O_CLOEXEC);
}

int cgfile_put(const char *dir, const char *name, const char *text)
{
	cleanup_fd int fd = cgfile_open(dir, name, O_WRONLY);
	size_t n = strlen(text);
	return fd >= 0 && write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

int cgfile_put_number(const char *dir, const char *name, uint64_t v)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, v);
	return cgfile_put(dir, name, text);
}

bool cgfile_get(const char *dir, const char *name, char *to, size_t cap)
{
	cleanup_fd int fd = cgfile_open(dir, name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, to, cap - 1);
	to[n > 0 ? n : 0] = 0;
	return n >= 0;
}

uint64_t cgfile_number(const char *dir, const char *name)
{
	char text[64];
	bool fine = cgfile_get(dir, name, text, sizeof text);
	return fine ? strtoull(text, NULL, 10) : 0;
}

uint64_t cgfile_value(const char *dir, const char *name, const char *key)
{
	char text[1024];
	size_t n = strlen(key);
	if (!cgfile_get(dir, name, text, sizeof text))
		return 0;
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && line[n] == ' ')
			return strtoull(line + n, NULL, 10);
	}
	return 0;
}
