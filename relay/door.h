/* SPDX-License-Identifier: MIT
 *
 * door: the listening sockets: ADDR:PORT, [ADDR]:PORT, tls:ADDR:PORT or
 * unix:PATH, several with commas between; or those that a service manager
 * hands over (sd_listen_fds(3)), of which one that is named "tls" does TLS. */
#ifndef RELAY_DOOR_H
#define RELAY_DOOR_H

#include <stdbool.h>

#include "core/err.h"

#define DOORS_MAX 8

struct door {
	int fd;
	bool tls;
	char where[160];	/* "http://127.0.0.1:8440", "unix:PATH" */
	char path[108];		/* of our unix socket, or "" */
};

struct doors {
	struct door door[DOORS_MAX];
	int n;
};

/* list: NULL for the default.  On failure nothing stays open. */
int doors_open(struct doors *ds, const char *list, struct err *e);
void doors_close(struct doors *ds);	/* removes the unix sockets */

#endif
