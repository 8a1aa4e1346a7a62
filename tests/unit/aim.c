/* SPDX-License-Identifier: MIT
 *
 * Where a job is to go: what a header may say, and what it may not. */
#include "relay/aim.h"
#include "relay/flat.h"
#include "tests/unit/tap.h"

#define PUB "0nmMyIVCWc1pynXfa9I6Bi3H_BjZij9bpRRgs9vi7N4"
#define L16 "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"," \
	    "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\""

static struct aim t;

static bool takes(const char *text)
{
	struct err e;
	return aim_parse(&t, bytes_str(text), &e) == 0;
}

static void taken(void)
{
	ok(takes("{\"type\":\"any\"}") && t.kind == AIM_ANY, "any");
	ok(takes(" { \"type\" : \"any\" } "), "with spaces");
	ok(takes("{\"type\": \"labels\", \"labels\": [\"gpu\", \"x.1_-\"]}") &&
	   t.kind == AIM_LABELS && t.label_n == 2, "labels");
	is_str(t.label[1], "x.1_-", "the second");
	ok(takes("{\"labels\":[" L16 "],\"type\":\"labels\"}") &&
	   t.label_n == 16, "sixteen");
	ok(takes("{\"type\":\"runner\",\"participant_pub\":\"" PUB
		 "\",\"name\":\"box\"}") && t.kind == AIM_RUNNER, "a runner");
	is_str(t.name, "box", "its name");
	ok(t.pub[0] == 0xd2 && t.pub[31] == 0xde, "its key");
}

static void refused(void)
{
	static const char *const bad[] = {
		"", "{", "{}", "[]", "null", "\"any\"", "{\"type\":\"any\"",
		"{\"type\":\"any\"}}", "{\"type\":\"any\",}",
		"{\"type\":\"Any\"}", "{\"type\":null}", "{\"type\":[\"any\"]}",
		"{\"type\":\"a\\u006ey\"}", "{\"type\":\"any\",\"x\":null}",
		"{\"type\":\"any\",\"type\":\"any\"}", "{\"type\":any}",
		"{'type':'any'}", "{\"type\":\"any\"}\001", "{\"type\":1}",
		"{\"type\":\"labels\"}", "{\"type\":\"labels\",\"labels\":[]}",
		"{\"type\":\"labels\",\"labels\":[\"a\",]}",
		"{\"type\":\"labels\",\"labels\":[\"A\"]}",
		"{\"type\":\"labels\",\"labels\":[\"\"]}",
		"{\"type\":\"labels\",\"labels\":[null]}",
		"{\"type\":\"labels\",\"labels\":[[\"a\"]]}",
		"{\"type\":\"labels\",\"labels\":[" L16 ",\"a\"]}",
		"{\"type\":\"runner\",\"name\":\"box\"}",
		"{\"type\":\"runner\",\"participant_pub\":\"" PUB "\"}",
		"{\"type\":\"runner\",\"participant_pub\":\"" PUB
			"=\",\"name\":\"box\"}",
		"{\"type\":\"runner\",\"participant_pub\":\"" PUB
			"\",\"name\":\"box\",\"x\":\"y\"}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ok(!takes(bad[i]), "no target: %s", bad[i]);
}

static void cut(void)
{
	static const char whole[] = "{\"labels\":[\"gpu\",\"b\"],\"type\":"
				    "\"labels\"}";
	bool held = true;
	struct err e;
	for (size_t n = 0; n < sizeof whole - 1; n++) {
		/* of its own, so that a byte too far is noticed */
		uint8_t *p = malloc(n ? n : 1);
		memcpy(p, whole, n);
		held &= aim_parse(&t, (struct bytes){ p, n }, &e) < 0;
		free(p);
	}
	ok(held, "cut anywhere: none");
}

static void beats(void)
{
	struct flat f;
	struct err e;
	ok(flat_parse(&f, bytes_str("{\"job\":null}"), "it", &e) == 0 &&
	   f.n == 1 && flat_get(&f, "job", FLAT_NULL) &&
	   !flat_get(&f, "job", FLAT_STRING), "null");
	ok(flat_parse(&f, bytes_str("{\"job\":nul}"), "it", &e) < 0,
	   "not quite null");
	is_str(e.why, "it is malformed", "it says what");
	ok(flat_parse(&f, bytes_str("{\"a\":null,\"b\":null,\"c\":null,"
				    "\"d\":null,\"e\":null}"), "it", &e) < 0,
	   "five fields");
}

int main(void)
{
	taken();
	refused();
	cut();
	beats();
	return done_testing();
}
