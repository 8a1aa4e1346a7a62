/* SPDX-License-Identifier: MIT
 *
 * check_parts: what check.c (the parent) and check_child.c say to each other;
 * nobody else includes it.
 *
 * The parent sends one check_ask.  The child sends frames: CHECK_READ is
 * answered with n bytes of the file at off (the parent ends the talk where it
 * cannot), CHECK_OUT is followed by n bytes of the cleaned image or of an
 * unpacked entry, CHECK_ENTRY by a path of n bytes, with the entry's size and
 * CHECK_IS_* in off, CHECK_DONE by a sentence of n bytes, with the err_code in
 * off; it is the last.  Both
 * run the same binary: integers and structs are the host's. */
#ifndef AIRLOX_CHECK_PARTS_H
#define AIRLOX_CHECK_PARTS_H

#include <stdint.h>

#define CHECK_FD 3			/* the child's end */
#define CHECK_CHUNK ((size_t)64 * 1024)	/* n of READ and OUT, at most */
#define CHECK_WHY 256			/* n of DONE, at most */
#define CHECK_SECONDS 60
#define CHECK_EXIT_SANDBOX 3		/* the child could not lock itself in */

/* No picture of IMAGE_MAX_DECODED needs more. */
#define CHECK_IMAGE_BYTES ((uint64_t)160 << 20)
#define CHECK_IMAGE_MORE 65536		/* cleaning adds no more than this */

enum check_what { CHECK_ZIP = 1, CHECK_IMAGE, CHECK_UNZIP, CHECK_ZIP_WHOLE };

struct check_ask {
	uint64_t size;
	uint32_t what;
	char mime[36];		/* NUL-terminated */
};

enum check_op { CHECK_READ = 1, CHECK_OUT, CHECK_DONE, CHECK_ENTRY };
#define CHECK_IS_DIR ((uint64_t)1 << 63)
#define CHECK_IS_EXEC ((uint64_t)1 << 62)

struct check_frame {
	uint32_t op, n;
	uint64_t off;
};

#endif
