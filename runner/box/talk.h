/* SPDX-License-Identifier: MIT
 *
 * talk: an agent in a box, driven from outside of it: its protocol
 * (runner/agent), who serves it in the box (runner/hand), the questions it
 * has (ask.h), and the record of all of it. */
#ifndef RUNNER_BOX_TALK_H
#define RUNNER_BOX_TALK_H

#include "runner/agent/acp.h"
#include "runner/agent/lines.h"
#include "runner/box/ask.h"
#include "runner/box/launch.h"

#define TALK_DIED 70	/* exit code: the agent ended before its answer */

struct talk {
	struct launch launch;
	bool auto_allow;
	const char *auth;
	int64_t patience_ms;
	struct buf prompt;
	int ready;		/* told RUN once it runs, then closed */
	/* its own */
	struct acp *acp;
	struct lines in;
	struct buf out;		/* for the box */
	struct buf said;	/* of one voice, not yet in the record */
	enum acp_voice voice;
	int64_t said_ms, stop_ms, end_ms;	/* since when; 0: not yet */
	int stop;		/* the signal that began it */
	struct asks asks;
	struct { unsigned tag, offers; } fresh[ASK_MAX];
	size_t fresh_n;		/* auto_allow: to be answered */
	bool ends, killed, over, named, lost;
	int code;		/* the agent's own */
};

/* The exit code, or -1 with e filled: it did not begin. */
int talk_run(struct talk *t, struct err *e);

#endif
