/* SPDX-License-Identifier: MIT
 *
 * door: the listening socket: ADDR:PORT, [ADDR]:PORT or unix:PATH. */
#ifndef RELAY_DOOR_H
#define RELAY_DOOR_H

#include "core/err.h"

struct door {
	int fd;
	char where[160];	/* "http://127.0.0.1:8440", "unix:PATH" */
	char path[108];		/* of the unix socket, or "" */
};

int door_open(struct door *d, const char *listen, struct err *e);
void door_close(struct door *d);	/* removes the unix socket */

#endif
