/* SPDX-License-Identifier: MIT
 *
 * check: `airlox-box check`, and reading a policy file for the others. */
#ifndef RUNNER_BOX_CHECK_H
#define RUNNER_BOX_CHECK_H

#include "runner/policy/policy.h"

int check_main(int argc, char **argv);	/* exit code */

/* The policy of a file, "-" for stdin.  NULL with e filled: "FILE: line N: ".
 * text, if not NULL, receives its bytes. */
struct policy *check_read(const char *path, struct buf *text, struct err *e);

#endif
