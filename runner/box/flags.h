/* SPDX-License-Identifier: MIT
 *
 * flags: the command line of `airlox-box run`. */
#ifndef RUNNER_BOX_FLAGS_H
#define RUNNER_BOX_FLAGS_H

#include "runner/box/files.h"
#include "runner/site.h"

struct flags {
	const char *policy, *session, *egress, *record;
	struct site_options site;
	char **command;
	bool help, no_record;
	enum files_apply apply;
};

extern const char flags_help[];
int flags_read(struct flags *o, int argc, char **argv, struct err *e);

#endif
