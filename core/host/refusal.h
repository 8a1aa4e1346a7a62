/* SPDX-License-Identifier: MIT
 *
 * refusal: what a relay's error answer means here. */
#ifndef AIRLOX_HOST_REFUSAL_H
#define AIRLOX_HOST_REFUSAL_H

#include "core/buf.h"
#include "core/err.h"

#define REFUSAL_BODY_MAX (8 * 1024)

/* Fills e from the status and the body ({"error","message"}, or anything),
 * and word with the relay's code ("" if it gave none).  The message is a
 * stranger's: escaped and cut.  Returns -1. */
int refusal_read(int http, struct bytes body, char word[32], struct err *e);

#endif
