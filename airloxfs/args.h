/* SPDX-License-Identifier: MIT
 *
 * args: a command's flags, as a table that is also its --help. */
#ifndef AIRLOX_MOUNT_ARGS_H
#define AIRLOX_MOUNT_ARGS_H

#include <stdbool.h>

#include "core/err.h"

#define ARGS_LIST_MAX 256

enum flag_kind {
	FLAG_SET,	/* to: bool * */
	FLAG_TEXT,	/* to: const char ** */
	FLAG_LIST	/* to: struct flag_list *; may be repeated */
};

struct flag_list {
	const char *v[ARGS_LIST_MAX];
	int n;
};

/* A table ends with a name of NULL.  Texts are borrowed from argv. */
struct flag {
	const char *name;	/* "--relay", or "-f" */
	enum flag_kind kind;
	void *to;
	const char *value;	/* "URL", for --help; NULL with FLAG_SET */
	const char *what;	/* one line; NULL keeps it out of --help */
};

struct args {
	char **v;		/* what is no flag, in order */
	int n;
	bool help;
};

/* "--name value", "--name=value"; "--" ends the flags; "-" is no flag.  v
 * reuses argv's memory.  argv[0] is skipped.  ERR_USAGE. */
int args_parse(struct args *a, const struct flag *flags, int argc,
	       char **argv, struct err *e);
/* usage: "airloxfs send text [INVITE] TEXT" */
void args_help(const char *usage, const char *what, const struct flag *flags);

#endif
