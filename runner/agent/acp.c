/* SPDX-License-Identifier: MIT */
#include "runner/agent/acp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "core/json.h"
#include "runner/agent/acp_parts.h"

struct acp *acp_new(const struct acp_ask *ask)
{
	struct acp *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->side = ask->side;
	a->cwd = strdup(ask->cwd);
	a->version = strdup(ask->version);
	a->auth = ask->auth ? strdup(ask->auth) : NULL;
	a->prompt = malloc(ask->prompt.n + 1);
	if (!a->cwd || !a->version || !a->prompt || (ask->auth && !a->auth)) {
		acp_free(a);
		return NULL;
	}
	if (ask->prompt.n)
		memcpy(a->prompt, ask->prompt.p, ask->prompt.n);
	a->prompt_n = ask->prompt.n;
	return a;
}

void acp_free(struct acp *a)
{
	if (!a)
		return;
	acp_call_free_all(a);
	free(a->cwd);
	free(a->version);
	free(a->auth);
	free(a->prompt);
	free(a);
}

struct bytes acp_cut(struct bytes s, size_t max)
{
	return s.n <= max ? s : (struct bytes){ s.p, clear_cut(s, max) };
}

void acp_copy(char *to, size_t size, struct bytes s)
{
	s = acp_cut(s, size - 1);
	if (s.n)
		memcpy(to, s.p, s.n);
	to[s.n] = 0;
}

/* --- how it ends --- */

void acp_fail(struct acp *a, enum err_code code, const char *fmt, ...)
{
	char text[300];
	va_list ap;
	if (a->state == ACP_DONE || a->state == ACP_BROKEN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	err_set(&a->why, code, "%s", text);
	a->state = ACP_BROKEN;
}

void acp_bad(struct acp *a, const char *what, struct bytes line)
{
	cleanup_buf struct buf b = { 0 }, start = { 0 };
	buf_addf(&b, "the agent wrote what is no message: %s: ", what);
	buf_add(&b, line.p, line.n < 60 ? line.n : 60);
	clear_escape(&start, acp_cut(line, 60));
	if (a->side.notice && !buf_failed(&b))
		a->side.notice(a->side.arg, buf_bytes(&b));
	if (++a->bad >= ACP_BAD_MAX)
		acp_fail(a, ERR_PROTO, "the agent does not speak the Agent "
			 "Client Protocol: %s: %s", what,
			 buf_cstr(&start) ? buf_cstr(&start) : "");
}

/* --- what we send --- */

static void send(struct acp *a, struct buf *b)
{
	if (buf_failed(b))
		acp_fail(a, ERR_MEMORY, "out of memory");
	else
		a->side.send(a->side.arg, buf_bytes(b));
}

/* {"jsonrpc":"2.0","id":N,"method":M,"params": */
static void put_request(struct acp *a, struct buf *b, const char *method)
{
	buf_addf(b, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\","
		 "\"params\":", (long long)++a->own, method);
}

void acp_begin(struct acp *a)
{
	cleanup_buf struct buf b = { 0 };
	a->state = ACP_INITIALIZE;
	put_request(a, &b, "initialize");
	buf_addf(&b, "{\"protocolVersion\":%d,\"clientCapabilities\":{\"fs\":{"
		 "\"readTextFile\":true,\"writeTextFile\":true},\"terminal\":"
		 "true},\"clientInfo\":{\"name\":\"airlox-box\",\"title\":"
		 "\"airlox-box\",\"version\":", ACP_VERSION);
	json_put_string(&b, bytes_str(a->version));
	buf_add_str(&b, "}}}");
	send(a, &b);
}

static void send_auth(struct acp *a)
{
	cleanup_buf struct buf b = { 0 };
	a->state = ACP_AUTHENTICATE;
	put_request(a, &b, "authenticate");
	buf_add_str(&b, "{\"methodId\":");
	json_put_string(&b, bytes_str(a->auth));
	buf_add_str(&b, "}}");
	send(a, &b);
}

static void send_session(struct acp *a)
{
	cleanup_buf struct buf b = { 0 };
	a->state = ACP_SESSION;
	put_request(a, &b, "session/new");
	buf_add_str(&b, "{\"cwd\":");
	json_put_string(&b, bytes_str(a->cwd));
	buf_add_str(&b, ",\"mcpServers\":[]}}");
	send(a, &b);
}

static void send_prompt(struct acp *a)
{
	cleanup_buf struct buf b = { 0 };
	a->state = ACP_PROMPT;
	put_request(a, &b, "session/prompt");
	buf_add_str(&b, "{\"sessionId\":");
	json_put_string(&b, bytes_str(a->session));
	buf_add_str(&b, ",\"prompt\":[{\"type\":\"text\",\"text\":");
	json_put_string(&b, (struct bytes){ (const uint8_t *)a->prompt,
					    a->prompt_n });
	buf_add_str(&b, "}]}}");
	send(a, &b);
}

void acp_refuse(struct acp *a, struct bytes id, int code, const char *text)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add(&b, id.p, id.n);
	buf_addf(&b, ",\"error\":{\"code\":%d,\"message\":", code);
	json_put_string(&b, bytes_str(text));
	buf_add_str(&b, "}}");
	send(a, &b);
}

/* --- answers to what we asked --- */

/* "a (Name), b" of the methods it knows, for a sentence. */
static void keep_methods(struct acp *a, const struct wire *list)
{
	cleanup_buf struct buf b = { 0 };
	if (!list || list->type != WIRE_LIST)
		return;
	for (const struct wire *m = list->child; m; m = m->next) {
		struct bytes id = wire_text(wire_get(m, "id"));
		if (id.n && b.len + id.n + 3 < sizeof a->methods)
			buf_addf(&b, "%s%.*s", b.len ? ", " : "", (int)id.n,
				 (const char *)id.p);
	}
	acp_copy(a->methods, sizeof a->methods, buf_bytes(&b));
}

static void keep_agent(struct acp *a, const struct wire *info)
{
	struct bytes name = wire_text(wire_get(info, "name"));
	struct bytes version = wire_text(wire_get(info, "version"));
	cleanup_buf struct buf b = { 0 };
	name = acp_cut(name, 60);
	version = acp_cut(version, 30);
	buf_add(&b, name.p, name.n);
	if (name.n && version.n)
		buf_add_byte(&b, ' ');
	buf_add(&b, version.p, version.n);
	acp_copy(a->agent, sizeof a->agent, buf_bytes(&b));
}

static void on_initialized(struct acp *a, const struct wire *result)
{
	int64_t version = -1;
	if (!wire_int(wire_get(result, "protocolVersion"), &version)) {
		acp_fail(a, ERR_PROTO, "the agent does not say which version "
			 "of the protocol it speaks");
		return;
	}
	if (version != ACP_VERSION) {
		acp_fail(a, ERR_PROTO, "the agent speaks version %lld of the "
			 "Agent Client Protocol, this is %d",
			 (long long)version, ACP_VERSION);
		return;
	}
	keep_agent(a, wire_get(result, "agentInfo"));
	keep_methods(a, wire_get(result, "authMethods"));
	if (a->auth)
		send_auth(a);
	else
		send_session(a);
}

static void on_session(struct acp *a, const struct wire *result)
{
	struct bytes id = wire_text(wire_get(result, "sessionId"));
	if (id.n == 0 || id.n >= sizeof a->session ||
	    memchr(id.p, 0, id.n)) {
		acp_fail(a, ERR_PROTO, "the agent gave no session");
		return;
	}
	acp_copy(a->session, sizeof a->session, id);
	send_prompt(a);
}

static void on_prompt_end(struct acp *a, const struct wire *result)
{
	static const char *const words[] = {
		"end_turn", "max_tokens", "max_turn_requests", "refusal",
		"cancelled", NULL
	};
	const struct wire *reason = wire_get(result, "stopReason");
	for (int i = 0; words[i]; i++)
		if (wire_is(reason, words[i]))
			acp_copy(a->reason, sizeof a->reason,
				 bytes_str(words[i]));
	if (!a->reason[0])
		acp_fail(a, ERR_PROTO, "the agent ended without a reason that "
			 "the protocol has");
	else
		a->state = ACP_DONE;
}

static void on_error(struct acp *a, const struct wire *error)
{
	cleanup_buf struct buf text = { 0 }, data = { 0 };
	int64_t code = 0;
	bool has = wire_int(wire_get(error, "code"), &code);
	const struct wire *more = wire_get(error, "data");
	if (a->state == ACP_PROMPT && a->cancelled) {
		acp_copy(a->reason, sizeof a->reason, bytes_str("cancelled"));
		a->state = ACP_DONE;
		return;
	}
	clear_escape(&text, acp_cut(wire_text(wire_get(error, "message")),
				    120));
	if (more)
		clear_escape(&data, acp_cut(more->raw, 100));
	const char *s = buf_cstr(&text), *d = buf_cstr(&data);
	if (has && code == ACP_AUTH_REQUIRED && !a->auth)
		acp_fail(a, ERR_AUTH, "the agent wants to be authenticated%s%s;"
			 " see --auth", a->methods[0] ? ", by one of " : "",
			 a->methods);
	else
		acp_fail(a, ERR_PROTO, "the agent refused %s: %s (%lld)%s%s",
			 acp_state_word(a->state), s && *s ? s : "no reason",
			 (long long)code, d && *d ? ": " : "", d ? d : "");
}

void acp_response(struct acp *a, const struct wire *doc)
{
	const struct wire *result = wire_get(doc, "result");
	const struct wire *error = wire_get(doc, "error");
	if (error && error->type == WIRE_MAP)
		on_error(a, error);
	else if (a->state == ACP_INITIALIZE)
		on_initialized(a, result);
	else if (a->state == ACP_AUTHENTICATE)
		send_session(a);
	else if (a->state == ACP_SESSION)
		on_session(a, result);
	else if (a->state == ACP_PROMPT)
		on_prompt_end(a, result);
}

/* --- a line of the agent --- */

static void take_response(struct acp *a, const struct wire *doc,
			  const struct wire *id, struct bytes line)
{
	int64_t n;
	if (!id || !wire_int(id, &n) || n != a->own) {
		acp_bad(a, "an answer to what was not asked", line);
		return;
	}
	if (!wire_get(doc, "result") == !wire_get(doc, "error")) {
		acp_bad(a, "an answer needs result or error", line);
		return;
	}
	a->own++;		/* a second answer is to nothing */
	acp_response(a, doc);
}

static void take_message(struct acp *a, const struct wire *doc,
			 struct bytes line)
{
	const struct wire *id = wire_get(doc, "id");
	const struct wire *method = wire_get(doc, "method");
	if (doc->type != WIRE_MAP ||
	    !wire_is(wire_get(doc, "jsonrpc"), "2.0")) {
		acp_bad(a, "no JSON-RPC 2.0", line);
	} else if (!method) {
		take_response(a, doc, id, line);
	} else if (method->type != WIRE_TEXT) {
		acp_bad(a, "a method that is no text", line);
	} else if (!id) {
		acp_tell(a, doc);
	} else if ((id->type != WIRE_NUMBER && id->type != WIRE_TEXT) ||
		   id->raw.n >= ACP_ID_MAX) {
		acp_bad(a, "an id that is no number and no short text", line);
	} else {
		acp_request(a, doc, id->raw, line);
	}
}

void acp_line(struct acp *a, struct bytes line)
{
	struct err e = { 0 };
	if (a->state == ACP_BROKEN || a->state == ACP_DONE || line.n == 0)
		return;
	struct wire *doc = wire_read(line, &e);
	if (!doc) {
		acp_bad(a, e.why, line);
		return;
	}
	take_message(a, doc, line);
	wire_free(doc);
}

/* --- answers to what the agent asked --- */

static struct bytes id_bytes(const struct acp_id *id)
{
	return (struct bytes){ (const uint8_t *)id->raw, id->n };
}

void acp_served(struct acp *a, struct bytes line)
{
	struct wire *doc = wire_read(line, NULL);
	const struct wire *id = wire_get(doc, "id");
	bool done = a->state == ACP_DONE || a->state == ACP_BROKEN;
	for (size_t i = 0; id && !done && i < ACP_OPEN_MAX; i++) {
		struct acp_id *open = &a->served[i];
		if (!open->n || !bytes_eq(id->raw, id_bytes(open)))
			continue;
		open->n = 0;
		a->side.send(a->side.arg, line);
		break;
	}
	wire_free(doc);
}

static void send_outcome(struct acp *a, const struct acp_question *q,
			 const char *option)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add(&b, q->id.raw, q->id.n);
	buf_add_str(&b, ",\"result\":{\"outcome\":{\"outcome\":");
	if (option) {
		buf_add_str(&b, "\"selected\",\"optionId\":");
		json_put_string(&b, bytes_str(option));
	} else {
		buf_add_str(&b, "\"cancelled\"");
	}
	buf_add_str(&b, "}}}");
	send(a, &b);
}

enum acp_choice acp_answer(struct acp *a, unsigned tag, enum acp_choice c)
{
	const enum acp_choice other = c == ACP_ALLOW_ONCE ? ACP_ALLOW_ALWAYS :
		c == ACP_ALLOW_ALWAYS ? ACP_ALLOW_ONCE :
		c == ACP_REJECT_ONCE ? ACP_REJECT_ALWAYS : ACP_REJECT_ONCE;
	for (size_t i = 0; i < ACP_OPEN_MAX; i++) {
		struct acp_question *q = &a->question[i];
		if (!q->id.n || q->tag != tag)
			continue;
		enum acp_choice told = q->option[c][0] ? c :
			q->option[other][0] ? other : ACP_CHOICES;
		send_outcome(a, q, told < ACP_CHOICES ? q->option[told] :
			     NULL);
		q->id.n = 0;
		return told;
	}
	return ACP_CHOICES;
}

bool acp_cancel(struct acp *a)
{
	cleanup_buf struct buf b = { 0 };
	if (a->state != ACP_PROMPT)
		return false;
	if (a->cancelled)
		return true;
	a->cancelled = true;
	buf_add_str(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\","
		    "\"params\":{\"sessionId\":");
	json_put_string(&b, bytes_str(a->session));
	buf_add_str(&b, "}}");
	send(a, &b);
	for (size_t i = 0; i < ACP_OPEN_MAX; i++) {
		struct acp_question *q = &a->question[i];
		if (!q->id.n)
			continue;
		send_outcome(a, q, NULL);
		q->id.n = 0;
		if (a->side.unask)
			a->side.unask(a->side.arg, q->tag);
	}
	return true;
}

/* --- words --- */

const char *acp_choice_word(enum acp_choice c)
{
	static const char *const words[] = {
		"allow_once", "allow_always", "reject_once", "reject_always",
		"cancelled"
	};
	return words[c];
}

enum acp_state acp_state(const struct acp *a) { return a->state; }

const char *acp_state_word(enum acp_state s)
{
	static const char *const words[] = {
		[ACP_BEGIN] = "nothing", [ACP_INITIALIZE] = "initialize",
		[ACP_AUTHENTICATE] = "authenticate",
		[ACP_SESSION] = "session/new", [ACP_PROMPT] = "session/prompt",
		[ACP_DONE] = "nothing", [ACP_BROKEN] = "nothing",
	};
	return words[s];
}

const char *acp_stop_reason(const struct acp *a) { return a->reason; }
const struct err *acp_why(const struct acp *a) { return &a->why; }
const char *acp_agent(const struct acp *a) { return a->agent; }
