/* SPDX-License-Identifier: MIT
 *
 * say: what airlox-box's main says to people.  Whatever comes from a policy or
 * a peer is escaped, so that it steers no terminal. */
#ifndef RUNNER_BOX_SAY_H
#define RUNNER_BOX_SAY_H

#include "core/buf.h"
#include "core/err.h"

/* stderr: "airlox-box: ..." */
void say_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int say_fail(const struct err *e);	/* gives the exit code */
/* stdout; newlines stay. */
void say_text(struct bytes text);
void say_clean(struct bytes text);	/* escaped already */
void say_json(struct bytes line);	/* as it is, and a newline */
int say_flush(void);	/* 0, or an exit code after saying why not */

#endif
