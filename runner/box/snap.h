/* SPDX-License-Identifier: MIT
 *
 * snap: what is in a directory, so that it can be compared later.  No link is
 * followed, no other mount entered, nothing special opened; names, sizes and
 * numbers are a box's, so all of it has an end. */
#ifndef RUNNER_BOX_SNAP_H
#define RUNNER_BOX_SNAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"
#include "runner/record/digest.h"

#define SNAP_ENTRIES 200000u
#define SNAP_DEPTH 32
#define SNAP_READ_BYTES (UINT64_C(4) << 30)	/* of all, for hashes */
#define SNAP_FILE_BYTES (UINT64_C(1) << 30)	/* of one */
#define SNAP_TEXT_BYTES (256u << 10)		/* of one that is kept */
#define SNAP_TEXTS_BYTES (32u << 20)		/* of all that are kept */

/* All but directories, which are there by what is in them. */
struct snap_entry {
	char *path;		/* below the directory, as it is named */
	mode_t mode;		/* with its type */
	uint64_t size;
	ino_t ino;
	struct timespec changed;	/* ctime */
	char sha256[DIGEST_HEX];	/* of a regular file; "": not read */
	bool has_text;
	struct buf text;	/* of a small UTF-8 file, or a link's target */
};

struct snap {
	struct snap_entry *v;	/* by path, as strcmp orders it */
	size_t n, cap;
	uint64_t read_bytes, text_bytes;
	bool cut;		/* more entries, or deeper: not all is here */
};

/* What has not changed since `before` (or NULL) is not read again. */
int snap_take(struct snap *s, int dir, const struct snap *before,
	      struct err *e);
const struct snap_entry *snap_find(const struct snap *s, const char *path);
void snap_free(struct snap *s);

#endif
