/* SPDX-License-Identifier: MIT
 *
 * options: the command line and the AIRLOX_* environment; the command line
 * wins. */
#ifndef RELAY_OPTIONS_H
#define RELAY_OPTIONS_H

#include "core/err.h"
#include "relay/limit.h"

struct options {
	const char *listen;	/* a list; NULL: the default */
	const char *data;	/* NULL: ephemeral */
	const char *cert, *key;	/* TLS, or NULL */
	const char *user;	/* to become, or NULL */
	const char *access_log;	/* a file, "-", or NULL */
	const char *fsck;	/* the directory to look at, or NULL */
	bool ephemeral, help, version, log_addresses;
	int64_t threads;	/* 0: one per core, at most 4 */
	struct limits limits;
};

int options_read(struct options *o, int argc, char **argv, struct err *e);
void options_help(void);	/* to standard output */

#endif
