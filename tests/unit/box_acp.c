/* SPDX-License-Identifier: MIT
 *
 * JSON as agents write it, lines, and the client's side of the protocol with
 * agents that keep to it and agents that do not. */
#include <string.h>

#include "runner/agent/acp.h"
#include "runner/agent/lines.h"
#include "runner/agent/wire.h"
#include "tests/unit/tap.h"

/* --- wire --- */

static void reads(const char *text, bool want)
{
	struct wire *w = wire_read(bytes_str(text), NULL);
	ok(!!w == want, "%s: %.40s", want ? "JSON" : "none", text);
	wire_free(w);
}

static void test_wire(void)
{
	static const char *const good[] = {
		" { \"b\" : 1.5e-3 , \"a\" : [ true , null ] }\t", "-0", "0.5",
		"\"\\/\\u00E9\"", "[]", "{}", "\"\"", NULL
	};
	static const char *const bad[] = {
		"", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5",
		"+1", "1e", "\"\\x\"", "\"\\u12g4\"", "\"a", "\"a\nb\"",
		"\"\xff\"", "nul", "true false", "'a'", "[1 2]", "{\"a\" 1}",
		"NaN", "\"\xed\xa0\x80\"", NULL
	};
	char deep[200];
	for (int i = 0; good[i]; i++)
		reads(good[i], true);
	for (int i = 0; bad[i]; i++)
		reads(bad[i], false);
	memset(deep, '[', 100);
	memset(deep + 100, ']', 99);
	deep[199] = 0;
	reads(deep + 36, false);	/* 64 opened, 99 closed */
	deep[100 + 64] = 0;
	reads(deep + 36, true);
	deep[100 + 65] = 0;
	reads(deep + 35, false);
	struct wire *w = wire_read(bytes_str("{\"a\":\"\\ud83d\\ude00\\ud83d"
				   "x\\ude00\",\"n\":-12,\"f\":1.0,\"a\":2,"
				   "\"big\":99999999999999999999}"), NULL);
	struct bytes s = wire_text(wire_get(w, "a"));
	int64_t n = 0;
	ok(s.n == 11 && !memcmp(s.p, "\xf0\x9f\x98\x80\xef\xbf\xbdx\xef\xbf"
				"\xbd", 11), "pairs, and halves of them");
	ok(wire_int(wire_get(w, "n"), &n) && n == -12, "a number");
	ok(!wire_int(wire_get(w, "f"), &n) &&
	   !wire_int(wire_get(w, "big"), &n) &&
	   !wire_int(wire_get(w, "a"), &n), "what is no whole number");
	ok(!wire_get(w, "z") && !wire_get(NULL, "z") &&
	   wire_text(NULL).n == 0, "what is not there");
	wire_free(w);
}

static void test_lines(void)
{
	struct lines l = { 0 };
	struct bytes line;
	ok(lines_add(&l, bytes_str("a\r\n\nb")) == 0 &&
	   lines_next(&l, &line) && bytes_eq(line, bytes_str("a")) &&
	   lines_next(&l, &line) && line.n == 0 && !lines_next(&l, &line),
	   "lines, and the start of one");
	ok(lines_add(&l, bytes_str("c\nd\n")) == 0 && lines_next(&l, &line) &&
	   bytes_eq(line, bytes_str("bc")) && lines_next(&l, &line) &&
	   bytes_eq(line, bytes_str("d")) && !lines_next(&l, &line),
	   "and its end");
	uint8_t *big = calloc(1, LINES_MAX);
	ok(lines_add(&l, (struct bytes){ big, LINES_MAX }) == 0 &&
	   lines_add(&l, bytes_str("\n")) == 0 && lines_next(&l, &line) &&
	   line.n == LINES_MAX, "as long as it may be");
	ok(lines_add(&l, (struct bytes){ big, LINES_MAX }) == 0 &&
	   lines_add(&l, bytes_str("x")) < 0, "and longer");
	free(big);
	lines_free(&l);
}

/* --- the protocol --- */

static struct buf sent, told;
static unsigned tag, offers;
static struct acp *a;

static void on_send(void *arg, struct bytes line)
{
	(void)arg;
	buf_reset(&sent);
	buf_add(&sent, line.p, line.n);
}

static void on_serve(void *arg, struct bytes method, struct bytes about,
		     struct bytes line)
{
	(void)arg, (void)line;
	buf_addf(&told, "serve %.*s %.*s;", (int)method.n,
		 (const char *)method.p, (int)about.n, (const char *)about.p);
}

static void on_say(void *arg, enum acp_voice voice, struct bytes text)
{
	(void)arg;
	buf_addf(&told, "say%d %.*s;", (int)voice, (int)text.n,
		 (const char *)text.p);
}

static void on_tool(void *arg, const struct acp_call *c)
{
	(void)arg;
	buf_addf(&told, "tool %.*s|%.*s|%.*s|%.*s|%.*s;", (int)c->id.n,
		 (const char *)c->id.p, (int)c->title.n,
		 (const char *)c->title.p, (int)c->kind.n,
		 (const char *)c->kind.p, (int)c->status.n,
		 (const char *)c->status.p, (int)c->input.n,
		 (const char *)c->input.p);
}

static void on_ask(void *arg, unsigned t, const struct acp_call *c, unsigned o)
{
	on_tool(arg, c);
	tag = t;
	offers = o;
}

static void on_unask(void *arg, unsigned t)
{
	(void)arg;
	buf_addf(&told, "unask %u;", t);
}

static void on_notice(void *arg, struct bytes text)
{
	(void)arg;
	buf_addf(&told, "notice %.*s;", (int)text.n, (const char *)text.p);
}

static void begin(const char *auth)
{
	const struct acp_ask ask = {
		{ NULL, on_send, on_serve, on_say, on_tool, on_ask, on_unask,
		  on_notice }, "/work", bytes_str("do \"it\""), auth, "0.1" };
	acp_free(a);
	a = acp_new(&ask);
	acp_begin(a);
	buf_reset(&told);
}

static void line(const char *text) { acp_line(a, bytes_str(text)); }

static bool said(const char *want)
{
	const char *s = buf_cstr(&told);
	bool held = s && strstr(s, want);
	if (!held)
		printf("# told '%s'\n", s ? s : "");
	buf_reset(&told);
	return held;
}

static bool wrote(const char *want)
{
	const char *s = buf_cstr(&sent);
	bool held = s && strstr(s, want);
	if (!held)
		printf("# sent '%s'\n", s ? s : "");
	buf_reset(&sent);
	return held;
}

#define RPC "{\"jsonrpc\":\"2.0\","
#define UP RPC "\"method\":\"session/update\",\"params\":{\"sessionId\":" \
	"\"s\",\"update\":{\"sessionUpdate\":"
#define OPTIONS "\"options\":[{\"optionId\":\"y\",\"name\":\"Y\",\"kind\":" \
	"\"allow_once\"},{\"optionId\":\"n\",\"name\":\"N\",\"kind\":" \
	"\"reject_always\"}]"
#define ASK(id) RPC "\"id\":" id ",\"method\":\"session/request_permission\"," \
	"\"params\":{\"sessionId\":\"s\",\"toolCall\":{\"toolCallId\":\"c\"}," \
	OPTIONS "}}"

static void to_prompt(void)
{
	begin(NULL);
	ok(wrote("\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"),
	   "initialize");
	line(RPC "\"id\":1,\"result\":{\"protocolVersion\":1,\"agentInfo\":{"
	     "\"name\":\"robo\\u001b\",\"version\":\"2\"}}}");
	is_str(acp_agent(a), "robo\x1b 2", "its name");
	ok(wrote("\"session/new\",\"params\":{\"cwd\":\"/work\","
		 "\"mcpServers\":[]}"), "a session");
	line(RPC "\"id\":3,\"result\":{\"sessionId\":\"s\"}}");
	ok(wrote("\"prompt\":[{\"type\":\"text\",\"text\":\"do \\\"it\\\"\"}]"),
	   "a prompt");
	is_int(acp_state(a), ACP_PROMPT, "on its way");
}

static void test_turn(void)
{
	to_prompt();
	line(UP "\"agent_message_chunk\",\"content\":{\"type\":\"text\","
	     "\"text\":\"hi\"}}}}");
	ok(said("say0 hi;"), "a message");
	line(UP "\"agent_thought_chunk\",\"content\":{\"type\":\"audio\"}}}}");
	ok(said("say1 [audio]\n;"), "what is no text is named");
	line(UP "\"agent_message_chunk\",\"content\":{\"type\":\"text\","
	     "\"text\":\"\"}}}}");
	ok(told.len == 0, "an empty text is nothing");
	line(UP "\"plan\",\"entries\":[{\"content\":\"p\",\"status\":"
	     "\"completed\"},{\"content\":\"q\"}]}}}");
	ok(said("say2 [x] p\n[ ] q\n;"), "a plan");
	line(UP "\"tool_call\",\"toolCallId\":\"c\",\"title\":\"List\","
	     "\"kind\":\"execute\",\"status\":\"pending\",\"rawInput\":{"
	     "\"x\":1.50}}}}");
	ok(said("tool c|List|execute|pending|{\"x\":1.50};"), "a tool call");
	line(UP "\"available_commands_update\",\"availableCommands\":[]}}}");
	line(UP "\"from_the_future\"}}}");
	ok(told.len == 0, "what says nothing to us");
	line(ASK("7"));
	ok(said("tool c|List|execute||{\"x\":1.50};"),
	   "a question knows what its call was");
	is_int(offers, 1u << ACP_ALLOW_ONCE | 1u << ACP_REJECT_ALWAYS,
	       "what it offers");
	line(RPC "\"id\":7,\"method\":\"terminal/output\",\"params\":{"
	     "\"sessionId\":\"s\",\"terminalId\":\"t\"}}");
	ok(wrote("\"id\":7,\"error\":{\"code\":-32600"), "an id that is in use");
	is_int(acp_answer(a, tag, ACP_REJECT_ONCE), ACP_REJECT_ALWAYS,
	       "a no is the no that there is");
	ok(wrote("{\"outcome\":\"selected\",\"optionId\":\"n\"}"), "and told");
	is_int(acp_answer(a, tag, ACP_ALLOW_ONCE), ACP_CHOICES, "once");
	line(RPC "\"id\":5,\"result\":{\"stopReason\":\"end_turn\"}}");
	is_int(acp_state(a), ACP_DONE, "the end");
	is_str(acp_stop_reason(a), "end_turn", "and why");
	buf_reset(&sent);
	line(ASK("8"));
	line("nonsense");
	ok(sent.len == 0 && told.len == 0, "after it nothing is heard");
}

static void test_served(void)
{
	to_prompt();
	line(RPC "\"id\":\"r1\",\"method\":\"fs/read_text_file\",\"params\":{"
	     "\"sessionId\":\"s\",\"path\":\"/work/a\"}}");
	ok(said("serve fs/read_text_file /work/a;"), "a file is asked for");
	acp_served(a, bytes_str(RPC "\"id\":\"r2\",\"result\":{}}"));
	ok(sent.len == 0, "an answer to nothing is dropped");
	acp_served(a, bytes_str(RPC "\"id\":\"r1\",\"result\":{\"content\":"
				"\"A\"}}"));
	ok(wrote("\"content\":\"A\""), "and given");
	acp_served(a, bytes_str(RPC "\"id\":\"r1\",\"result\":{}}"));
	ok(sent.len == 0, "once");
	line(RPC "\"id\":1,\"method\":\"fs/write_text_file\",\"params\":{"
	     "\"sessionId\":\"s\",\"path\":\"a\",\"content\":\"\"}}");
	ok(wrote("-32602"), "a relative path");
	line(RPC "\"id\":1,\"method\":\"terminal/create\",\"params\":{"
	     "\"sessionId\":\"other\",\"command\":\"ls\"}}");
	ok(wrote("-32602"), "another session");
	line(RPC "\"id\":1,\"method\":\"session/elicitation\",\"params\":{}}");
	ok(wrote("-32601"), "a method that we lack");
	for (int i = 0; i < (int)ACP_OPEN_MAX + 1; i++) {
		char text[200];
		snprintf(text, sizeof text, RPC "\"id\":%d,\"method\":"
			 "\"terminal/create\",\"params\":{\"sessionId\":\"s\","
			 "\"command\":\"x\"}}", 100 + i);
		line(text);
	}
	ok(wrote("\"id\":164,\"error\":{\"code\":-32603"), "too many at once");
}

static void test_cancel(void)
{
	begin(NULL);
	ok(!acp_cancel(a), "nothing to cancel yet");
	to_prompt();
	line(ASK("7"));
	line(ASK("8"));
	buf_reset(&told);
	line(RPC "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":"
	     "8}}");
	ok(wrote("\"id\":8,\"error\":{\"code\":-32800") && said("unask 2;"),
	   "a question taken back");
	ok(acp_cancel(a) && wrote("\"id\":7,\"result\":{\"outcome\":{"
				  "\"outcome\":\"cancelled\"}}") &&
	   said("unask 1;"), "cancel answers what is open");
	line(ASK("9"));
	ok(wrote("-32800"), "and what is asked after it");
	line(RPC "\"id\":5,\"error\":{\"code\":-32603,\"message\":"
	     "\"AbortError\"}}");
	is_int(acp_state(a), ACP_DONE, "an error then is the end");
	is_str(acp_stop_reason(a), "cancelled", "cancelled");
}

static void broken(const char *first, const char *second, const char *want)
{
	line(first);
	if (second)
		line(second);
	ok(acp_state(a) == ACP_BROKEN && strstr(acp_why(a)->why, want),
	   "%s (%s)", want, acp_why(a)->why);
}

static void test_broken(void)
{
	begin(NULL);
	broken(RPC "\"id\":1,\"result\":{\"protocolVersion\":2}}", NULL,
	       "version 2");
	begin(NULL);
	broken(RPC "\"id\":1,\"result\":{}}", NULL, "which version");
	begin(NULL);
	broken(RPC "\"id\":1,\"result\":{\"protocolVersion\":1,"
	       "\"authMethods\":[{\"id\":\"key\"},{\"id\":\"web\"}]}}",
	       RPC "\"id\":3,\"error\":{\"code\":-32000,\"message\":"
	       "\"no\"}}", "by one of key, web; see --auth");
	begin("key");
	line(RPC "\"id\":1,\"result\":{\"protocolVersion\":1}}");
	ok(wrote("\"authenticate\",\"params\":{\"methodId\":\"key\"}"),
	   "authenticate");
	broken(RPC "\"id\":3,\"error\":{\"code\":-32603,\"message\":\"b\\nad"
	       "\"}}", NULL, "refused authenticate: b\\nad (-32603)");
	begin(NULL);
	broken(RPC "\"id\":1,\"result\":{\"protocolVersion\":1}}",
	       RPC "\"id\":3,\"result\":{\"sessionId\":\"\"}}", "no session");
	to_prompt();
	broken(RPC "\"id\":5,\"result\":{\"stopReason\":\"tired\"}}", NULL,
	       "without a reason");
}

static void test_rude(void)
{
	static const char *const rude[] = {
		"Listening on port 3000", "[]", "3", "{}",
		"{\"jsonrpc\":\"1.0\",\"id\":5,\"result\":{}}",
		RPC "\"id\":4,\"result\":{}}", RPC "\"id\":\"5\",\"result\":{}}",
		RPC "\"id\":5}", RPC "\"id\":5,\"result\":1,\"error\":{}}",
		RPC "\"id\":null,\"method\":\"x\"}", RPC "\"method\":5}",
		RPC "\"method\":\"session/update\",\"params\":{\"sessionId\":"
		"\"z\",\"update\":{\"sessionUpdate\":\"plan\"}}}",
		UP "\"tool_call\",\"title\":\"x\"}}}", UP "7}}}", NULL
	};
	to_prompt();
	for (int i = 0; rude[i]; i++) {
		line(rude[i]);
		ok(said("notice the agent wrote what is no message"), "%.40s",
		   rude[i]);
	}
	ok(acp_state(a) == ACP_PROMPT, "a few are borne");
	for (int i = 0; i < 10; i++)
		line("\x1b[2J");
	ok(acp_state(a) == ACP_BROKEN &&
	   strstr(acp_why(a)->why, "does not speak the Agent Client Protocol"),
	   "not all (%s)", acp_why(a)->why);
	to_prompt();
	line(RPC "\"id\":1,\"method\":\"session/request_permission\","
	     "\"params\":{\"sessionId\":\"s\",\"toolCall\":{\"toolCallId\":"
	     "\"c\"},\"options\":[{\"optionId\":\"?\",\"kind\":\"maybe\"}]}}");
	ok(wrote("-32602"), "a question with nothing to choose");
	for (int i = 0; i < 200; i++) {
		char text[200];
		snprintf(text, sizeof text, UP "\"tool_call\",\"toolCallId\":"
			 "\"c%d\",\"title\":\"t\",\"rawInput\":[%d]}}}", i, i);
		line(text);
	}
	ok(said("tool c199|t|||[199];"), "calls without end");
	for (int i = 0; i < (int)ACP_OPEN_MAX + 1; i++) {
		char text[400];
		snprintf(text, sizeof text, ASK("%d"), 1000 + i);
		line(text);
	}
	ok(wrote("\"id\":1064,\"error\":{\"code\":-32603"), "and questions");
}

int main(void)
{
	test_wire();
	test_lines();
	test_turn();
	test_served();
	test_cancel();
	test_broken();
	test_rude();
	acp_free(a);
	buf_free(&sent);
	buf_free(&told);
	return done_testing();
}
