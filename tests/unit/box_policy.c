/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <unistd.h>

#include "runner/policy/match.h"
#include "runner/policy/show.h"
#include "tests/unit/tap.h"

static struct policy *read_text(const char *text, struct err *e)
{
	return policy_read(bytes_str(text), e);
}

/* --- what is refused, and on which line --- */

#define ALLOW "allow:\n  - host: a.example\n"
#define CRED ALLOW "credentials:\n  - host: a.example\n"

static const struct { const char *text; unsigned line; const char *word; }
refused[] = {
	{ "", 1, "empty" },
	{ "# nothing\n", 2, "empty" },
	{ "allow\n", 1, "keys and values" },
	{ "alow: []\n", 1, "no key alow" },
	{ "allow: a.example\n", 1, "list" },
	{ ALLOW "\tport: 3\n", 3, "tab" },
	{ ALLOW "    methods: GET\n", 3, "no key methods" },
	{ ALLOW "  - host: a.example\n", 3, "twice, first on line 2" },
	{ ALLOW "    host: b.example\n", 3, "given twice, first on line 2" },
	{ "allow:\n  - '*'\n", 2, "*" },
	{ "allow:\n  - '*.com'\n", 2, "too much" },
	{ "allow:\n  - 'a.*.com'\n", 2, "*" },
	{ "allow:\n  - https://a.example\n", 2, "without scheme" },
	{ "allow:\n  - host:\n", 2, "not a host" },
	{ "allow:\n  - 10.0.0.1\n", 2, "needs its port" },
	{ "allow:\n  - localhost\n", 2, "needs its port" },
	{ "allow:\n  - 127.1:80\n", 2, "not a host" },
	{ "allow:\n  - 0x7f.1\n", 2, "not a host" },
	{ "allow:\n  - 2130706433\n", 2, "not a host" },
	{ "allow:\n  - a..example\n", 2, "not a host" },
	{ "allow:\n  - a.example:0\n", 2, "not a host" },
	{ "allow:\n  - a.example:99999\n", 2, "not a host" },
	{ "allow:\n  - m\xc3\xbcnchen.example\n", 2, "not a host" },
	{ ALLOW "    method: get\n", 3, "capitals" },
	{ ALLOW "    method: TRACE\n", 3, "never" },
	{ ALLOW "    path: v1\n", 3, "path" },
	{ ALLOW "    path: /a/../b\n", 3, "path" },
	{ ALLOW "    path: /*/b\n", 3, "path" },
	{ ALLOW "    tls: off\n", 3, "one of" },
	{ ALLOW "    tls: passthrough\n    method: GET\n", 2, "passthrough" },
	{ ALLOW "    method: GET\n  - host: a.example\n    tls: passthrough\n",
	  4, "another tls on line 2" },
	{ "x: &a [1]\nallow: *a\n", 1, "anchors" },
	{ "allow: &a\n  - &b [a.example]\n", 1, "anchors" },
	{ "allow: !!seq []\n", 1, "tags" },
	{ ALLOW "---\nallow: []\n", 3, "second document" },
	{ "allow: [a.example\n", 2, "not YAML" },
	{ "allow:\n  - a.example\n\xff\n", 3, "not UTF-8" },
	{ "allow:\n  - \"a\\0b\"\n", 2, "control" },
	{ "unmatched: allow\n", 1, "one of deny" },
	{ "limits:\n  time: 5\n", 2, "like 90s" },
	{ "limits:\n  memory: 0 MiB\n", 2, "like 64 KiB" },
	{ "limits:\n  requests_per_minute: -1\n", 2, "like 100" },
	{ "session: all\n", 1, "one of none, read, write" },
	{ "files:\n  - path: .\n    at: work\n", 3, "path like /work" },
	{ "files:\n  - path: .\n", 2, "needs path and at" },
	{ CRED "    scheme: bearer\n", 4, "needs from" },
	{ CRED "    from: env:A\n", 4, "needs scheme" },
	{ CRED "    scheme: bearer\n    from: A\n", 6, "from must be" },
	{ CRED "    scheme: bearer\n    from: 'env:A B'\n", 6, "variable" },
	{ CRED "    scheme: bearer\n    from: 'cmd:'\n", 6, "names nothing" },
	{ CRED "    scheme: basic\n    from: env:A\n", 4, "needs a user" },
	{ CRED "    scheme: header\n    from: env:A\n", 4, "needs a header" },
	{ CRED "    scheme: header\n    header: Host\n    from: env:A\n", 6,
	  "carries no" },
	{ CRED "    scheme: substitute\n    from: env:A\n", 4, "placeholder" },
	{ CRED "    scheme: substitute\n    from: env:A\n    placeholder: abc\n",
	  7, "8 or more" },
	{ CRED "    scheme: bearer\n    from: env:A\n    surfaces: body\n", 4,
	  "is for the scheme substitute" },
	{ ALLOW "credentials:\n  - host: b.example\n    scheme: bearer\n"
	  "    from: env:A\n", 4, "not a host of allow" },
	{ ALLOW "    tls: none\ncredentials:\n  - host: a.example\n"
	  "    scheme: bearer\n    from: env:A\n", 5, "no TLS by line 2" },
	{ ALLOW "    tls: passthrough\ncredentials:\n  - host: a.example\n"
	  "    scheme: bearer\n    from: env:A\n", 5, "passthrough by line 2" },
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct err e = { 0 };
		char line[32];
		struct policy *p = read_text(refused[i].text, &e);
		snprintf(line, sizeof line, "line %u: ", refused[i].line);
		ok(!p && !strncmp(e.why, line, strlen(line)) &&
		   strstr(e.why, refused[i].word), "%zu: %s", i, e.why);
		policy_free(p);
	}
}

static void test_bounds(void)
{
	struct err e = { 0 };
	cleanup_buf struct buf b = { 0 };
	for (int i = 0; i < 12; i++)
		buf_add_str(&b, "[");
	struct policy *p = policy_read(buf_bytes(&b), &e);
	ok(!p && strstr(e.why, "deep"), "nested: %s", e.why);
	buf_reset(&b);
	buf_add_str(&b, "allow:\n");
	for (int i = 0; i < 600; i++)
		buf_addf(&b, "  - h%d.example\n", i);
	p = policy_read(buf_bytes(&b), &e);
	ok(!p && !strncmp(e.why, "line 514: more", 14), "rules: %s", e.why);
	buf_reset(&b);
	for (int i = 0; i < 300000; i++)
		buf_add_byte(&b, '#');
	p = policy_read(buf_bytes(&b), &e);
	ok(!p && strstr(e.why, "256 KiB"), "size: %s", e.why);
}

/* --- decisions --- */

static const char policy_text[] =
	"allow:\n"
	"  - api.example.com\n"
	"  - host: '*.Cdn.Example'\n"
	"    method: [GET, HEAD]\n"
	"    path: [/a, /pkg/*]\n"
	"    reason: packages\n"
	"  - host: plain.example\n"
	"    tls: none\n"
	"  - host: 127.0.0.2:8443\n"
	"  - host: two.example\n"
	"    method: GET\n"
	"  - host: two.example\n"
	"    path: /in/*\n"
	"credentials:\n"
	"  - host: api.example.com\n"
	"    path: /v1/*\n"
	"    scheme: bearer\n"
	"    from: env:A\n";

static const struct {
	const char *host;
	uint16_t port;
	bool tls;
	const char *method, *path;
	bool allowed;
	const char *why;
} asked[] = {
	{ "api.example.com", 443, true, "GET", "/", true, "" },
	{ "API.Example.COM.", 443, true, "GET", "/", true, "" },
	{ "api.example.com", 8443, true, "GET", "/", false, "port" },
	{ "api.example.com", 443, false, "GET", "/", false, "TLS only" },
	{ "api.example.com", 443, true, "TRACE", "/", false, "never" },
	{ "xapi.example.com", 443, true, "GET", "/", false, "host" },
	{ "api.example.com.evil.org", 443, true, "GET", "/", false, "host" },
	{ "x.cdn.example", 443, true, "GET", "/a", true, "packages" },
	{ "x.y.cdn.example", 443, true, "HEAD", "/pkg/z", true, "packages" },
	{ "cdn.example", 443, true, "GET", "/a", false, "host" },
	{ "evilcdn.example", 443, true, "GET", "/a", false, "host" },
	{ "x.cdn.example", 443, true, "POST", "/a", false, "method" },
	{ "x.cdn.example", 443, true, "get", "/a", false, "method" },
	{ "x.cdn.example", 443, true, "GET", "/ab", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/../a/b", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/%2e%2e/b", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/..%2fb", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/..;/b", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/..\\b", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg//b", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/%252e", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/%zz", false, "path" },
	{ "x.cdn.example", 443, true, "GET", "/pkg/%41", true, "packages" },
	{ "plain.example", 80, false, "GET", "/", true, "" },
	{ "plain.example", 80, true, "GET", "/", false, "without TLS" },
	{ "127.0.0.2", 8443, true, "GET", "/", true, "" },
	{ "two.example", 443, true, "GET", "/x", true, "" },
	{ "two.example", 443, true, "PUT", "/in/x", true, "" },
	{ "two.example", 443, true, "PUT", "/x", false, "path" },
};

static void test_asked(void)
{
	struct err e = { 0 };
	struct policy *p = read_text(policy_text, &e);
	if (!ok(p != NULL, "a policy: %s", e.why))
		return;
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		struct host h;
		struct policy_answer a;
		struct policy_ask ask = { &h, asked[i].port, asked[i].tls,
			bytes_str(asked[i].method), bytes_str(asked[i].path) };
		int rc = host_parse(&h, bytes_str(asked[i].host));
		policy_decide(p, &ask, &a);
		ok(rc == 0 && a.allowed == asked[i].allowed &&
		   strstr(a.why, asked[i].why), "%s %s:%u%s: %s",
		   asked[i].method, asked[i].host, asked[i].port,
		   asked[i].path, a.why);
	}
	struct host h;
	host_parse(&h, bytes_str("api.example.com"));
	struct policy_ask ask = { &h, 443, true, bytes_str("GET"),
				  bytes_str("/v1/me") };
	ok(policy_credential_holds(&p->credential[0], &ask), "its path");
	ask.path = bytes_str("/v2");
	ok(!policy_credential_holds(&p->credential[0], &ask), "another path");
	ask.path = bytes_str("/v1/../v2");
	ok(!policy_credential_holds(&p->credential[0], &ask), "dots");
	ok(policy_has_credential(p, &h, 443), "its host");
	ok(!policy_has_credential(p, &h, 80), "another port");
	policy_free(p);
}

static void test_hosts(void)
{
	static const struct { const char *in, *name; int kind; unsigned port; }
	good[] = {
		{ "A.b", "a.b", HOST_NAME, 0 },
		{ "a.b.:8443", "a.b", HOST_NAME, 8443 },
		{ "1.2.3.4:5", "1.2.3.4", HOST_V4, 5 },
		{ "[::FFFF:1.2.3.4]:1", "::ffff:1.2.3.4", HOST_V6, 1 },
		{ "[0:0::1]", "::1", HOST_V6, 0 },
		{ "_x-y.b1", "_x-y.b1", HOST_NAME, 0 },
	};
	static const char *const bad[] = {
		"", ".", "a..b", "-a.b", "a-.b", "a b", "a:b", "a:", "a:1:2",
		"::1", "[::1", "[::1]x", "[::1%eth0]", "[1.2.3.4]", "1.2.3",
		"1.2.3.4.5", "01.2.3.4", "0x1.2.3.4", "a.0x10", "a.b:065536",
		"user@a", "a\xc3\xa9.b", "[::1]:0",
	};
	struct host h;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ok(host_parse(&h, bytes_str(good[i].in)) == 0 &&
		   !strcmp(h.name, good[i].name) &&
		   (int)h.kind == good[i].kind && h.port == good[i].port,
		   "host %s", good[i].in);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ok(host_parse(&h, bytes_str(bad[i])) < 0, "no host: '%s'",
		   bad[i]);
	ok(host_parse(&h, (struct bytes){ (const uint8_t *)"a\0b", 3 }) < 0,
	   "no host with a NUL");
}

/* --- what is printed --- */

static void test_shown(void)
{
	struct err e = { 0 };
	cleanup_buf struct buf b = { 0 };
	struct policy *p = read_text(policy_text, &e);
	unsetenv("A");
	ok(show_missing(&b, p) == 1, "one is missing");
	is_str(buf_cstr(&b), "line 15: env:A is not set\n", "it is named");
	buf_reset(&b);
	setenv("A", "seven77", 1);
	show_missing(&b, p);
	is_str(buf_cstr(&b), "line 15: env:A is shorter than 8 bytes\n",
	       "short, and its value is not shown");
	setenv("A", "long enough", 1);
	is_int(show_missing(&b, p), 0, "nothing is missing");
	buf_reset(&b);
	show_json(&b, p);
	ok(buf_cstr(&b) && !strstr(buf_cstr(&b), "long enough"), "no value");
	unsetenv("A");
	policy_free(p);
}

int main(void)
{
	test_refused();
	test_bounds();
	test_asked();
	test_hosts();
	test_shown();
	return done_testing();
}
