/* SPDX-License-Identifier: MIT
 *
 * tell_record: what an agent did, as parts of its record, of kind tool:
 *
 *	call, title, kind, status, name, input, output, content, places
 *			a tool call, or what changed of one (new: false)
 *	request, about	a file or command that was asked of the client
 *	ask, title, kind, input, offers		a question
 *	ask, answer, by				its answer
 *
 * Texts are as the agent wrote them, cut where they are long: who shows them
 * escapes them.  tale.h reads them. */
#ifndef RUNNER_BOX_TELL_RECORD_H
#define RUNNER_BOX_TELL_RECORD_H

#include "runner/agent/acp.h"
#include "runner/box/account.h"

void tell_call(struct account *a, const struct acp_call *c);
void tell_served(struct account *a, struct bytes method, struct bytes about);
void tell_question(struct account *a, unsigned tag, const struct acp_call *c,
		   unsigned offers);
void tell_answer(struct account *a, unsigned tag, const char *answer,
		 const char *by);

#endif
