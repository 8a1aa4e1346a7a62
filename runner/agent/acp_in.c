/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "runner/agent/acp_parts.h"

/* --- session/request_permission --- */

static int choice_of(const struct wire *kind)
{
	for (int c = 0; c < ACP_CHOICES; c++)
		if (wire_is(kind, acp_choice_word((enum acp_choice)c)))
			return c;
	return -1;
}

/* The first of each kind; the bits of what is offered. */
static unsigned read_options(struct acp_question *q, const struct wire *list)
{
	unsigned offers = 0;
	if (!list || list->type != WIRE_LIST)
		return 0;
	for (const struct wire *o = list->child; o; o = o->next) {
		struct bytes id = wire_text(wire_get(o, "optionId"));
		int c = choice_of(wire_get(o, "kind"));
		if (c < 0 || id.n == 0 || id.n >= ACP_ID_MAX ||
		    memchr(id.p, 0, id.n) || q->option[c][0])
			continue;
		acp_copy(q->option[c], sizeof q->option[c], id);
		offers |= 1u << c;
	}
	return offers;
}

static bool is_open(const struct acp *a, struct bytes id)
{
	for (size_t i = 0; i < ACP_OPEN_MAX; i++) {
		const struct acp_id *open[] = { &a->served[i],
						&a->question[i].id };
		for (int k = 0; k < 2; k++)
			if (open[k]->n == id.n &&
			    !memcmp(open[k]->raw, id.p, id.n))
				return true;
	}
	return false;
}

static void keep_id(struct acp_id *to, struct bytes id)
{
	memcpy(to->raw, id.p, id.n);
	to->n = id.n;
}

static void ask(struct acp *a, const struct wire *params, struct bytes id)
{
	struct acp_question *q = NULL;
	struct acp_call call;
	for (size_t i = 0; i < ACP_OPEN_MAX && !q; i++)
		if (!a->question[i].id.n)
			q = &a->question[i];
	if (!q) {
		acp_refuse(a, id, ACP_BUSY, "too many questions at once");
		return;
	}
	*q = (struct acp_question){ .tag = a->tags + 1 };
	unsigned offers = read_options(q, wire_get(params, "options"));
	if (!offers || !acp_call_read(a, &call, wire_get(params,
							 "toolCall"))) {
		acp_refuse(a, id, ACP_INVALID_PARAMS, "a permission needs a "
			   "toolCall and options of known kinds");
		return;
	}
	keep_id(&q->id, id);
	a->tags++;
	a->side.ask(a->side.arg, q->tag, &call, offers);
}

/* --- fs/ and terminal/ --- */

/* The member that says what it is about, and whether it is an absolute path. */
static const struct served {
	const char *method, *about;
	bool path;
} served[] = {
	{ "fs/read_text_file", "path", true },
	{ "fs/write_text_file", "path", true },
	{ "terminal/create", "command", false },
	{ "terminal/output", "terminalId", false },
	{ "terminal/wait_for_exit", "terminalId", false },
	{ "terminal/kill", "terminalId", false },
	{ "terminal/release", "terminalId", false },
	{ 0 }
};

static void serve(struct acp *a, const struct served *s,
		  const struct wire *params, struct bytes id,
		  struct bytes line)
{
	struct bytes about = wire_text(wire_get(params, s->about));
	struct acp_id *open = NULL;
	char text[64];
	for (size_t i = 0; i < ACP_OPEN_MAX && !open; i++)
		if (!a->served[i].n)
			open = &a->served[i];
	if (about.n == 0 || (s->path && about.p[0] != '/') ||
	    memchr(about.p, 0, about.n)) {
		snprintf(text, sizeof text, "%s must be %s", s->about,
			 s->path ? "an absolute path" : "a text");
		acp_refuse(a, id, ACP_INVALID_PARAMS, text);
	} else if (!open) {
		acp_refuse(a, id, ACP_BUSY, "too many requests at once");
	} else {
		keep_id(open, id);
		a->side.serve(a->side.arg, bytes_str(s->method), about, line);
	}
}

void acp_request(struct acp *a, const struct wire *doc, struct bytes id,
		 struct bytes line)
{
	const struct wire *method = wire_get(doc, "method");
	const struct wire *params = wire_get(doc, "params");
	const struct served *s = served;
	while (s->method && !wire_is(method, s->method))
		s++;
	bool question = wire_is(method, "session/request_permission");
	if (is_open(a, id))
		acp_refuse(a, id, ACP_INVALID_REQUEST, "this id is in use");
	else if (!s->method && !question)
		acp_refuse(a, id, ACP_NO_METHOD, "no such method here");
	else if (a->state != ACP_PROMPT)
		acp_refuse(a, id, ACP_INVALID_REQUEST, "there is no prompt");
	else if (!wire_is(wire_get(params, "sessionId"), a->session))
		acp_refuse(a, id, ACP_INVALID_PARAMS, "not this session");
	else if (a->cancelled && question)
		acp_refuse(a, id, ACP_CANCELLED, "cancelled");
	else if (question)
		ask(a, params, id);
	else
		serve(a, s, params, id, line);
}

/* --- session/update --- */

/* "[x] text" a line. */
static void say_plan(struct acp *a, const struct wire *update)
{
	const struct wire *list = wire_get(update, "entries");
	cleanup_buf struct buf b = { 0 };
	for (const struct wire *v = list && list->type == WIRE_LIST ?
	     list->child : NULL; v && b.len < ACP_TEXT_MAX; v = v->next) {
		const struct wire *status = wire_get(v, "status");
		struct bytes text = acp_cut(wire_text(wire_get(v, "content")),
					    500);
		buf_add_str(&b, wire_is(status, "completed") ? "[x] " :
			    wire_is(status, "in_progress") ? "[>] " : "[ ] ");
		buf_add(&b, text.p, text.n);
		buf_add_byte(&b, '\n');
	}
	if (b.len && !buf_failed(&b))
		a->side.say(a->side.arg, ACP_PLAN, buf_bytes(&b));
}

static void say_chunk(struct acp *a, enum acp_voice voice,
		      const struct wire *content)
{
	struct bytes text = wire_text(wire_get(content, "text"));
	struct bytes type = wire_text(wire_get(content, "type"));
	cleanup_buf struct buf b = { 0 };
	if (type.n && !bytes_eq(type, bytes_str("text"))) {
		buf_add_byte(&b, '[');
		type = acp_cut(type, 32);
		buf_add(&b, type.p, type.n);
		buf_add_str(&b, "]\n");
		text = buf_bytes(&b);
	}
	while (text.n) {
		struct bytes part = acp_cut(text, ACP_TEXT_MAX);
		a->side.say(a->side.arg, voice, part);
		text.p += part.n;
		text.n -= part.n;
	}
}

static void update(struct acp *a, const struct wire *v, struct bytes line)
{
	const struct wire *kind = wire_get(v, "sessionUpdate");
	bool is_new = wire_is(kind, "tool_call");
	struct acp_call call;
	if (wire_is(kind, "agent_message_chunk")) {
		say_chunk(a, ACP_MESSAGE, wire_get(v, "content"));
	} else if (wire_is(kind, "agent_thought_chunk")) {
		say_chunk(a, ACP_THOUGHT, wire_get(v, "content"));
	} else if (wire_is(kind, "plan")) {
		say_plan(a, v);
	} else if (is_new || wire_is(kind, "tool_call_update")) {
		if (!acp_call_read(a, &call, v)) {
			acp_bad(a, "a tool call without an id", line);
			return;
		}
		call.is_new = is_new;
		a->side.tool(a->side.arg, &call);
	} else if (!kind || kind->type != WIRE_TEXT) {
		acp_bad(a, "an update of no kind", line);
	}
	/* user_message_chunk is our own prompt; commands, modes and whatever
	 * else a version brings are of no use to one prompt */
}

/* --- $/cancel_request: the agent no longer wants an answer --- */

static void take_back(struct acp *a, const struct wire *params)
{
	const struct wire *id = wire_get(params, "requestId");
	for (size_t i = 0; id && i < ACP_OPEN_MAX; i++) {
		struct acp_question *q = &a->question[i];
		if (!q->id.n || q->id.n != id->raw.n ||
		    memcmp(q->id.raw, id->raw.p, id->raw.n) != 0)
			continue;
		acp_refuse(a, id->raw, ACP_CANCELLED, "cancelled");
		q->id.n = 0;
		if (a->side.unask)
			a->side.unask(a->side.arg, q->tag);
	}
}

void acp_tell(struct acp *a, const struct wire *doc)
{
	const struct wire *method = wire_get(doc, "method");
	const struct wire *params = wire_get(doc, "params");
	if (wire_is(method, "$/cancel_request"))
		take_back(a, params);
	/* what came before the session's answer is of a session, too */
	else if (wire_is(method, "session/update") &&
		 (a->state == ACP_SESSION ||
		  (a->state == ACP_PROMPT &&
		   wire_is(wire_get(params, "sessionId"), a->session))))
		update(a, wire_get(params, "update"), doc->raw);
	else if (wire_is(method, "session/update"))
		acp_bad(a, "an update of no session", doc->raw);
	/* other notifications need no answer: JSON-RPC */
}
