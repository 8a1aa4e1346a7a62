/* SPDX-License-Identifier: MIT
 *
 * account: the record of a run while it happens: what it was, what it printed,
 * what the broker decided, how it ended; and the signed page of it. */
#ifndef RUNNER_BOX_ACCOUNT_H
#define RUNNER_BOX_ACCOUNT_H

#include "runner/box/rundir.h"
#include "runner/box/session.h"
#include "runner/policy/policy.h"
#include "runner/record/chain.h"
#include "runner/sandbox/box.h"

struct account {
	struct chain *chain;	/* NULL: none is kept */
	char run[CHAIN_RUN + 1];
	int dir;		/* where the chain is: the run's */
	int place;		/* the directory the page goes to, or -1 */
	int egress;		/* the broker's account, to be read */
	struct buf rest;	/* of it: a line that is not whole yet */
	size_t skip;		/* so many of its lines are parts already */
	struct session *session; /* is followed too, or NULL; the caller's */
	struct buf said;	/* by one stream, in pieces: not a part yet */
	char said_by[16];
	int64_t said_ms;	/* since when */
	struct err why;		/* the first thing that went wrong */
	bool failed;
};

/* In the run's directory, which outlives it; the broker's file is there.  -1
 * with e filled. */
int account_open(struct account *a, const struct rundir *d, struct err *e);
/* The account of a run whose owner was killed: goes on with its record, adds
 * what the broker decided after the last part, says that it is incomplete, and
 * ends it.  One that has its end is left as it is. */
int account_finish(struct account *a, const struct rundir *d, struct err *e);
struct account_facts {
	const struct policy *policy;
	const char *const *command;
	const char *bubblewrap;	/* its version */
	const struct plan_limits *limits;
};
void account_begin(struct account *a, const struct account_facts *f);
/* A part of another kind: canonical JSON, an object. */
void account_part(struct account *a, enum part_kind kind, struct bytes data);
/* Any bytes. */
void account_notice(struct account *a, struct bytes text);
void account_say(struct account *a, const char *stream, struct bytes text);
/* What the broker has added, and the session's clerk. */
void account_follow(struct account *a);
/* A part of this kind, "session", "file" or "notice"; data is canonical JSON.  For
 * session_follow. */
void account_note(void *account, const char *kind, struct bytes data);
void account_end(struct account *a, const struct box_end *end, int code,
		 const char *limits);
/* The page, signed with the user's key, as file; NULL: airlox-RUN.html here.
 * Its name goes to name.  -1: also where a part was lost. */
int account_write(struct account *a, const char *file, struct buf *name,
		  struct err *e);
void account_free(struct account *a);

#endif
