/* SPDX-License-Identifier: MIT
 *
 * digest: SHA-256 of a file, as a record has it. */
#ifndef RUNNER_RECORD_DIGEST_H
#define RUNNER_RECORD_DIGEST_H

#include <stdint.h>

#include "core/err.h"

#define DIGEST_HEX 65		/* with its NUL */

/* From where fd stands to its end; *bytes is how many that were.  -1: it could
 * not be read. */
int digest_fd(int fd, char hex[DIGEST_HEX], uint64_t *bytes, struct err *e);

#endif
