/* SPDX-License-Identifier: MIT
 *
 * The Agent Client Protocol, the agent being the input: whatever it says, each
 * line for it is one message, its questions and requests are bounded, and
 * after the end nothing is said any more. */
#include <stdlib.h>
#include <string.h>

#include "core/clear.h"
#include "runner/agent/acp.h"
#include "runner/agent/lines.h"
#include "runner/agent/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct acp *acp;
static unsigned open_asks, tags[ACP_OPEN_MAX + 1];

static void on_send(void *arg, struct bytes line)
{
	(void)arg;
	struct wire *w = wire_read(line, NULL);
	if (!w || memchr(line.p, '\n', line.n) ||
	    !wire_is(wire_get(w, "jsonrpc"), "2.0"))
		abort();
	wire_free(w);
}

static void on_serve(void *arg, struct bytes method, struct bytes about,
		     struct bytes line)
{
	(void)arg;
	if (!method.n || !about.n || memchr(line.p, '\n', line.n))
		abort();
}

static void on_say(void *arg, enum acp_voice voice, struct bytes text)
{
	(void)arg, (void)voice;
	if (!clear_utf8(text))
		abort();
}

static void on_tool(void *arg, const struct acp_call *c)
{
	(void)arg;
	if (!c->id.n || c->output.n > ACP_TEXT_MAX || !clear_utf8(c->title))
		abort();
}

static void on_ask(void *arg, unsigned tag, const struct acp_call *c,
		   unsigned offers)
{
	(void)arg, (void)c;
	if (!offers || open_asks == ACP_OPEN_MAX)
		abort();
	tags[open_asks++] = tag;
}

static void on_unask(void *arg, unsigned tag)
{
	(void)arg;
	for (unsigned i = 0; i < open_asks; i++)
		if (tags[i] == tag)
			tags[i] = tags[--open_asks];
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const struct acp_ask ask = {
		{ NULL, on_send, on_serve, on_say, on_tool, on_ask, on_unask,
		  NULL }, "/work", bytes_str("do it"), NULL, "0" };
	struct lines l = { 0 };
	struct bytes line;
	unsigned turn = 0;
	acp = acp_new(&ask);
	open_asks = 0;
	acp_begin(acp);
	if (lines_add(&l, (struct bytes){ p, n }) == 0)
		while (lines_next(&l, &line)) {
			acp_line(acp, line);
			acp_served(acp, line);
			if (++turn % 3 == 0 && open_asks)
				acp_answer(acp, tags[--open_asks],
					   (enum acp_choice)(turn / 3 % 4));
			if (turn == 40)
				acp_cancel(acp);
		}
	lines_free(&l);
	acp_free(acp);
	return 0;
}
