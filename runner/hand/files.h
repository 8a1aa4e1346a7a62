/* SPDX-License-Identifier: MIT
 *
 * files: fs/read_text_file and fs/write_text_file, within the roots alone:
 * neither `..` nor a symbolic link leads out of one (openat2). */
#ifndef RUNNER_HAND_FILES_H
#define RUNNER_HAND_FILES_H

#include "runner/agent/wire.h"

#define FILES_ROOTS 80
#define FILES_MAX_BYTES (8u << 20)	/* of a file that is read */

struct files {
	struct { const char *path; int fd; } root[FILES_ROOTS];
	size_t n;
};

/* A root that is not there is left out. */
void files_add_root(struct files *f, const char *path);
void files_read(struct files *f, struct bytes id, const struct wire *params);
void files_write(struct files *f, struct bytes id, const struct wire *params);

#endif
