/* SPDX-License-Identifier: MIT
 *
 * dirs: directories that a sandbox writes in, seen from outside.  Nothing here
 * follows a link or crosses a mount, and no depth or number of entries
 * exhausts this process.  `dir` is a directory's descriptor. */
#ifndef AIRLOX_SANDBOX_DIRS_H
#define AIRLOX_SANDBOX_DIRS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

/* Deeper than a path of an archive may be. */
#define DIRS_DEPTH 32

/* `path` relative to dir, resolved beneath it and without a link on the way;
 * flags as of open(2), closed on exec.  -1 with errno. */
int dirs_open(int dir, const char *path, int flags);

/* `name` in dir and all below it; 0 also where there is none. */
int dirs_remove(int dir, const char *name, struct err *e);

struct dirs_use {
	uint64_t bytes;		/* blocks on the disk */
	uint64_t entries;
	bool too_deep;		/* more than DIRS_DEPTH; not all was counted */
};
/* Adds what is below dir, until there are more than max_entries.  What goes
 * away meanwhile is not counted. */
void dirs_measure(int dir, uint64_t max_entries, struct dirs_use *use);

/* Copies the files and directories of `from` into the empty directory `to`,
 * owned by uid and gid (-1: as they come), files 0644, directories 0755.
 * ERR_INVALID if something else is there, ERR_SIZE beyond max_bytes; *bytes
 * is what was copied. */
int dirs_copy_in(int from, int to, uid_t uid, gid_t gid, uint64_t max_bytes,
		 uint64_t *bytes, struct err *e);

/* One file, from its start to its end. */
int dirs_copy_file(int from, int to, struct err *e);

#endif
