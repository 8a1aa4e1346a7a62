/* SPDX-License-Identifier: MIT
 *
 * What is read again of the owner's decisions on runners. */
#include "airloxfs/runners.c"
#include "tests/unit/tap.h"

static struct participant who;
static struct runner one = { .who = &who };
static struct runners all = { .first = &one };

static enum decision load(const char *text)
{
	struct err e;
	one.decision = DECIDED_NOTHING;
	is_int(load_record(&all, 0, bytes_str(text), &e), 0, "read");
	return one.decision;
}

int main(void)
{
	static const char *const bad[] = {
		"", "{", "{}", "[]", "{\"approve\":1}",
		"{\"approve\":2,\"done\":0,\"pub\":\"%s\",\"reason\":\"\"}",
		"{\"approve\":1,\"done\":0,\"pub\":\"AAAA\",\"reason\":\"\"}",
		"{\"approve\":1,\"done\":0,\"pub\":7,\"reason\":\"\"}",
	};
	cleanup_buf struct buf b = { 0 };
	memset(who.join.cert.pub, 7, PRIM_PUB);
	one.decision = DECIDED_APPROVE;
	put_note(&b, &one, false);
	is_int(load(buf_cstr(&b)), DECIDED_APPROVE, "to be approved");
	buf_reset(&b);
	one.decision = DECIDED_REJECT;
	set_reason(&one, bytes_str("no \"more\""));
	put_note(&b, &one, false);
	set_reason(&one, bytes_str(""));
	is_int(load(buf_cstr(&b)), DECIDED_REJECT, "to be rejected");
	is_str(one.reason, "no \"more\"", "and why");
	buf_reset(&b);
	put_note(&b, &one, true);
	is_int(load(buf_cstr(&b)), DECIDED_NOTHING, "it is done");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		is_int(load(bad[i]), DECIDED_NOTHING, "passed over: %s",
		       bad[i]);
	buf_reset(&b);
	one.decision = DECIDED_APPROVE;
	put_note(&b, &one, false);
	memset(who.join.cert.pub, 8, PRIM_PUB);
	is_int(load(buf_cstr(&b)), DECIDED_NOTHING, "another runner's");
	set_reason(&one, bytes_str(""));
	return done_testing();
}
