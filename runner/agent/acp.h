/* SPDX-License-Identifier: MIT
 *
 * acp: the client's side of the Agent Client Protocol, version 1, as a state
 * machine: the agent's lines go in, lines for it and what happened come out
 * by the functions of a struct acp_side.  No I/O, no clock.
 *
 * One session, one prompt: initialize, authenticate where it was asked for,
 * session/new, session/prompt, until its answer.  The agent is hostile: what
 * it asks is bounded, what it may not ask is answered with an error, and after
 * ACP_BAD_MAX lines that are no such protocol it is over.
 *
 * fs/ and terminal/ requests are checked here and served elsewhere, in the
 * box; see runner/hand.  Source: agentclientprotocol.com, protocol version 1;
 * JSON-RPC 2.0, one message a line. */
#ifndef RUNNER_AGENT_ACP_H
#define RUNNER_AGENT_ACP_H

#include "core/buf.h"
#include "core/err.h"

#define ACP_VERSION 1
#define ACP_BAD_MAX 20u
#define ACP_OPEN_MAX 64u	/* requests of the agent that wait, of a kind */
#define ACP_TEXT_MAX 65536u	/* bytes of one text that are passed on */

enum acp_state {
	ACP_BEGIN, ACP_INITIALIZE, ACP_AUTHENTICATE, ACP_SESSION, ACP_PROMPT,
	ACP_DONE,	/* acp_stop_reason */
	ACP_BROKEN	/* acp_why */
};

enum acp_voice { ACP_MESSAGE, ACP_THOUGHT, ACP_PLAN };

/* As the protocol's option kinds. */
enum acp_choice {
	ACP_ALLOW_ONCE, ACP_ALLOW_ALWAYS, ACP_REJECT_ONCE, ACP_REJECT_ALWAYS,
	ACP_CHOICES
};
const char *acp_choice_word(enum acp_choice c);

/* A tool call as far as it is known: nothing is empty.  Raw JSON in input,
 * output, content and places; texts are the agent's, any UTF-8. */
struct acp_call {
	struct bytes id, title, kind, status, name;
	struct bytes input, output, content, places;
	bool is_new;		/* tool_call, not tool_call_update */
};

/* All borrowed for the time of the call; no calls of acp_ functions within. */
struct acp_side {
	void *arg;
	/* a line for the agent, without its end */
	void (*send)(void *arg, struct bytes line);
	/* a request of the agent's that is served in the box: method, what it
	 * is about (a path, a command), and the line itself */
	void (*serve)(void *arg, struct bytes method, struct bytes about,
		      struct bytes line);
	void (*say)(void *arg, enum acp_voice voice, struct bytes text);
	void (*tool)(void *arg, const struct acp_call *call);
	/* a question: acp_answer with its tag; offers has a bit a choice */
	void (*ask)(void *arg, unsigned tag, const struct acp_call *call,
		    unsigned offers);
	/* nobody needs to answer it any more */
	void (*unask)(void *arg, unsigned tag);
	void (*notice)(void *arg, struct bytes text);	/* any bytes */
};

struct acp_ask {
	struct acp_side side;
	const char *cwd;	/* of the session, in the box */
	struct bytes prompt;	/* UTF-8 */
	const char *auth;	/* the method to authenticate with, or NULL */
	const char *version;	/* ours */
};

struct acp;
struct acp *acp_new(const struct acp_ask *ask);	/* copies; NULL: memory */
void acp_free(struct acp *a);

void acp_begin(struct acp *a);			/* sends initialize */
void acp_line(struct acp *a, struct bytes line);	/* of the agent */
/* A line of whoever serves its requests: an answer to one of them. */
void acp_served(struct acp *a, struct bytes line);
/* What was chosen, if it was offered, else what comes next to it, never an
 * allowing one for a rejecting one; the choice that was told, or ACP_CHOICES:
 * none of that kind was offered, and the agent was told "cancelled". */
enum acp_choice acp_answer(struct acp *a, unsigned tag, enum acp_choice c);
/* session/cancel, where a prompt is on its way; open questions are answered
 * "cancelled".  False: there is nothing that could be cancelled. */
bool acp_cancel(struct acp *a);

enum acp_state acp_state(const struct acp *a);
const char *acp_state_word(enum acp_state s);	/* what it is waiting for */
const char *acp_stop_reason(const struct acp *a);	/* "end_turn", ... */
const struct err *acp_why(const struct acp *a);
const char *acp_agent(const struct acp *a);	/* "NAME VERSION" as
						 * it says, or "" */

#endif
