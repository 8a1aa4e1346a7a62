/* SPDX-License-Identifier: MIT
 *
 * options: the command line and the AIRLOX_* environment; the command line
 * wins. */
#ifndef RELAY_OPTIONS_H
#define RELAY_OPTIONS_H

#include "core/err.h"
#include "relay/limit.h"

struct options {
	const char *listen;	/* ADDR:PORT or unix:PATH */
	const char *data;	/* NULL: ephemeral */
	bool ephemeral, help, version;
	int64_t threads;	/* 0: one per core, at most 4 */
	struct limits limits;
};

int options_read(struct options *o, int argc, char **argv, struct err *e);
extern const char options_help[];

#endif
