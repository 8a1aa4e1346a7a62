/* SPDX-License-Identifier: MIT
 *
 * doors: the sockets by which a box reaches the broker: 127.0.0.1:3128, :80
 * and :443 of the box's own network namespace, opened before anything of the
 * box runs, by a process that enters that namespace and does nothing else, and
 * handed to the broker, which is outside. */
#ifndef RUNNER_BOX_DOORS_H
#define RUNNER_BOX_DOORS_H

#include <sys/types.h>

#define DOORS_PROXY_PORT 3128

struct doors {
	int control;		/* the broker's */
	uid_t uid;		/* the box's user: its namespaces are theirs */
	gid_t gid;
};

/* In the keeper, with the sandbox's first process; 0 or -1.  For box_ask's
 * prepare. */
int doors_open(void *doors, pid_t first);

#endif
