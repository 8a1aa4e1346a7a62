/* SPDX-License-Identifier: MIT
 *
 * room: what a box is made of: mounts, files of /etc, environment; from the
 * policy, as data for a plan. */
#ifndef RUNNER_BOX_ROOM_H
#define RUNNER_BOX_ROOM_H

#include "runner/box/session.h"
#include "runner/policy/policy.h"
#include "runner/sandbox/plan.h"

#define ROOM_MOUNTS 192
#define ROOM_TEXTS 256
#define ROOM_ENV 256

struct room_ask {
	const struct policy *policy;
	const char *const *masks;
	const char *work;	/* the box's directory on the disk */
	const char *copies;	/* where copy-N are, of the policy's files */
	const char *egress;	/* the account, as a file */
	const struct session_found *session;	/* or NULL */
	struct bytes ca;	/* PEM of the broker's authority */
	const char *token;	/* what its proxy wants to hear */
};

struct room {
	struct plan_mount mount[ROOM_MOUNTS];
	size_t mount_n;
	const char *env[ROOM_ENV + 1];
	size_t env_n;
	char *text[ROOM_TEXTS];	/* what the others borrow */
	size_t text_n;
	const char **argv;	/* program.h's */
	bool failed;		/* memory, or too many */
};

/* ERR_USAGE: a file of the policy, or the session, is not what it must be. */
int room_make(struct room *r, const struct room_ask *ask, struct err *e);
void room_free(struct room *r);
/* A text that lives as long as the room. */
const char *room_keep(struct room *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void room_mount(struct room *r, enum plan_kind kind, const char *from,
		const char *to, uint64_t size_bytes);

#endif
