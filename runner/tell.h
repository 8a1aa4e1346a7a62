/* SPDX-License-Identifier: MIT
 *
 * tell: what airlox-runner says to people, on stderr, one line each, escaped.
 * Only mains and the commands call it. */
#ifndef AIRLOX_RUNNER_TELL_H
#define AIRLOX_RUNNER_TELL_H

#include "core/err.h"

void tell_init(const char *program);
void tell_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int tell_fail(const struct err *e);	/* gives its exit code */

#endif
