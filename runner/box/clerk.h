/* SPDX-License-Identifier: MIT
 *
 * clerk: the process that looks at a session's mount and follows its events
 * for a box (session.h).  It tells on `to`: a struct session_found, then lines
 * "session JSON" and "notice JSON". */
#ifndef RUNNER_BOX_CLERK_H
#define RUNNER_BOX_CLERK_H

#include "runner/box/session.h"

#define CLERK_WAIT_MS 5000	/* after the end, for what is on its way */

struct clerk_ask {
	const char *dir;
	uid_t uid;		/* who it becomes; only as root */
	gid_t gid;
};

/* In the forked child.  Ends once nobody writes to `to` any more and what the
 * box wrote was sent, or after CLERK_WAIT_MS. */
_Noreturn void clerk_run(const struct clerk_ask *ask,
			 const struct session_box *box, int to);

#endif
