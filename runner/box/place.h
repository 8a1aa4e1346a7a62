/* SPDX-License-Identifier: MIT
 *
 * place: where the record goes.  A box may have been given the very directory
 * for writing: that is opened before the box starts, and nothing that lies
 * there is ever written through, only replaced. */
#ifndef RUNNER_BOX_PLACE_H
#define RUNNER_BOX_PLACE_H

#include "core/buf.h"
#include "core/err.h"

/* The directory of file, to be closed by the caller; no link leads to it
 * where `plainly`.  ERR_NOT_FOUND: it is not there. */
int place_open(const char *file, bool plainly, struct err *e);
/* Whether file can be written there; ERR_USAGE: something else is. */
int place_check(int dir, const char *file, struct err *e);
/* The file, mode 0600, all of it or nothing, instead of what is there. */
int place_write(int dir, const char *file, struct bytes data, struct err *e);

#endif
