/* SPDX-License-Identifier: MIT */
#include "runner/queue/spec.h"
#include "tests/unit/tap.h"

#define HEAD "{\"created_ms\":1,\"entry\":\"main.py\",\"job\":\"j\","
#define TAIL "\"network\":false,\"out_max_bytes\":10,\"out_max_files\":3," \
	"\"packages\":[\"a-b\",\"numpy\"],\"requirements\":[\"numpy\"]," \
	"\"return_out\":true,\"runtime\":\"python3.11\",\"seq\":1," \
	"\"timeout_s\":60}"

static int parse(const char *text, struct spec *s, struct err *e)
{
	*e = (struct err){ 0 };
	return spec_parse(s, bytes_str(text), e);
}

static void refused(const char *text, const char *what)
{
	struct spec s;
	struct err e;
	ok(parse(text, &s, &e) < 0 && strstr(e.why, what), "refused: %s (%s)",
	   what, e.why);
	spec_free(&s);
}

static void test_good(void)
{
	struct spec s;
	struct err e;
	is_int(parse(HEAD "\"memory_mb\":512," TAIL "\n", &s, &e), 0,
	       "a spec, with a newline");
	is_str(s.entry, "main.py", "entry");
	is_str(s.runtime, "python3.11", "runtime");
	is_int(s.timeout_s, 60, "timeout");
	is_int(s.memory_mb, 512, "memory");
	is_int(s.out_max_bytes, 10, "bytes of out/");
	is_int(s.out_max_files, 3, "files of out/");
	ok(!s.network && s.return_out, "network, return_out");
	is_int(s.packages.n, 2, "packages");
	is_str(s.requirements.v[0], "numpy", "requirements");
	spec_free(&s);
	is_int(s.packages.n, 0, "freed");
}

static void test_bad(void)
{
	refused("", "spec.json");
	refused("[]", "object");
	refused("{}", "entry");
	refused(HEAD TAIL, "memory_mb");
	refused(HEAD "\"memory_mb\":31," TAIL, "memory_mb");
	refused(HEAD "\"memory_mb\":\"512\"," TAIL, "memory_mb");
	refused("{\"entry\":\"../x.py\"}", "entry");
	refused("{\"entry\":\".x.py\"}", "entry");
	refused("{\"entry\":\"x\\u0000y\"}", "entry");
	refused("{\"entry\":\"x.py\",\"runtime\":\"python3.11; rm\"}",
		"runtime");
	refused("{\"entry\":\"x.py\",\"runtime\":\"python3.\"}", "runtime");
	refused("{\"entry\":\"x.py\",\"runtime\":\"../../bin/sh\"}",
		"runtime");
}

/* A name is put into pip's argv: none may be a flag, a path or an address. */
static void test_packages(void)
{
	static const char *const bad[] = { "", "-r", "a-", "a--b", "A", "a.b",
		"a/b", "a==1", "a b", "git+x", "a;b", "\xc3\xa4" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct spec s;
		struct err e;
		char text[600];
		snprintf(text, sizeof text, HEAD "\"memory_mb\":512,"
			 "\"network\":false,\"out_max_bytes\":1,"
			 "\"out_max_files\":1,\"packages\":[],"
			 "\"requirements\":[\"%s\"],\"return_out\":true,"
			 "\"runtime\":\"python3.11\",\"timeout_s\":1}", bad[i]);
		ok(parse(text, &s, &e) < 0 && strstr(e.why, "requirements"),
		   "no package: '%s'", bad[i]);
		spec_free(&s);
	}
}

int main(void)
{
	test_good();
	test_bad();
	test_packages();
	return done_testing();
}
