/* SPDX-License-Identifier: MIT
 *
 * args: a command's flags, as a table that is also its --help. */
#ifndef AIRLOX_RUNNER_ARGS_H
#define AIRLOX_RUNNER_ARGS_H

#include <stdbool.h>

#include "core/err.h"

/* A table ends with a name of NULL.  Texts are borrowed from argv. */
struct flag {
	const char *name;	/* "--name" */
	const char **text;	/* takes a value, or ... */
	bool *set;		/* ... is only there or not */
	const char *value;	/* "NAME", for --help */
	const char *what;	/* one line */
};

/* "--name value", "--name=value"; "--" ends the flags; "-" is no flag.  Gives
 * what is no flag in argv[0..*n).  argv[0] is skipped.  ERR_USAGE. */
int args_parse(const struct flag *flags, int argc, char **argv, int *n,
	       bool *help, struct err *e);
void args_help(const char *usage, const char *what, const struct flag *flags);

#endif
