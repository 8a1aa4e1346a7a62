/* SPDX-License-Identifier: MIT
 *
 * check: `airlox-box check`, and reading a policy file for the others. */
#ifndef RUNNER_BOX_CHECK_H
#define RUNNER_BOX_CHECK_H

#include "runner/policy/policy.h"

int check_main(int argc, char **argv);	/* exit code */

/* The policy of a file, "-" for stdin.  NULL with e filled: "FILE: line N: ". */
struct policy *check_read(const char *path, struct err *e);
struct policy *check_read_fd(int fd, const char *name, struct err *e);

#endif
