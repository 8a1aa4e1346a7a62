/* SPDX-License-Identifier: MIT
 *
 * session: a mounted session of which a box gets names, never the root; and
 * what the box writes there.
 *
 * A clerk (clerk.h), a process of its own that is the box's user, looks at the
 * mount, then follows its events: nobody but that user may enter it, and a
 * mount that hangs holds up nobody else. */
#ifndef RUNNER_BOX_SESSION_H
#define RUNNER_BOX_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"

#define SESSION_READS 8
#define SESSION_NAMES 11
extern const char *const session_names[SESSION_NAMES]; /* reads, then writes */

/* What a clerk found. */
struct session_found {
	struct err why;		/* code 0: it is a session, and may be given */
	bool owner;
	bool has[SESSION_NAMES];
	char path[PATH_MAX];	/* of the mount, resolved */
};

/* Shared with the keeper of the box. */
struct session_box {
	_Atomic uint64_t pid_ns;	/* the box's, once it is known */
};

struct session {
	pid_t clerk;
	int from;		/* what it tells, or -1 */
	struct session_box *box;
	struct session_found found;
	struct buf rest;	/* a line that is not whole yet */
};

/* dir as user uid (-1: as we are).  ERR_USAGE where it is no mounted session,
 * or one that the policy does not want. */
int session_open(struct session *s, const char *dir, uid_t uid, gid_t gid,
		 bool owner_too, struct err *e);
/* In the keeper: whose writes are the box's. */
void session_is(struct session *s, pid_t first);
/* Reads what the clerk tells, without waiting.  Each line goes to add: kind
 * "session" or "notice", and canonical JSON. */
void session_follow(struct session *s, void (*add)(void *to, const char *kind,
		    struct bytes data), void *to);
/* The box has ended: what it wrote may still be on its way.  Waits for that,
 * a few seconds at most. */
void session_end(struct session *s, void (*add)(void *to, const char *kind,
		 struct bytes data), void *to);
void session_free(struct session *s);

#endif
