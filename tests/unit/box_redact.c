/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/prim.h"
#include "runner/broker/redact.h"
#include "runner/broker/text.h"
#include "tests/unit/tap.h"

static const char secret[] = "s3cr+t/\"Key\\%41&x";
static struct redact_set *set;

/* Each character written in one way. */
#define put_all(b, how) do { \
	for (const char *c_ = secret; *c_; c_++) \
		buf_addf(b, how, (unsigned)(uint8_t)*c_); \
} while (0)

/* Whether anything of the text is left, fed in pieces of `step` bytes. */
static void check_form(const char *name, const struct buf *form, size_t step)
{
	cleanup_buf struct buf text = { 0 }, out = { 0 }, want = { 0 };
	struct redact r = { 0 };
	buf_add_str(&text, "before ");
	buf_add(&text, form->data, form->len);
	buf_add_str(&text, " after");
	for (size_t at = 0; at < text.len; at += step) {
		size_t n = text.len - at < step ? text.len - at : step;
		redact_feed(&r, set, (struct bytes){ text.data + at, n },
			    at + n == text.len, &out);
	}
	buf_add_str(&want, "before ");
	for (size_t i = 0; i < form->len; i++)
		buf_add_byte(&want, '*');
	buf_add_str(&want, " after");
	ok(out.len == want.len && !memcmp(out.data, want.data, want.len) &&
	   r.found == 1, "%s in steps of %zu: '%s'", name, step,
	   buf_cstr(&out));
	redact_reset(&r);
}

static void check_steps(const char *name, struct buf *form)
{
	static const size_t steps[] = { 1, 2, 3, 7, 4096 };
	for (size_t i = 0; i < 5; i++)
		check_form(name, form, steps[i]);
	buf_reset(form);
}

static void test_forms(void)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, secret);
	check_steps("raw", &b);
	text_json(&b, bytes_str(secret));
	check_steps("json", &b);
	text_percent(&b, bytes_str(secret));
	check_steps("percent", &b);
	put_all(&b, "%%%02x");
	check_steps("all percent", &b);
	put_all(&b, "\\u%04X");
	check_steps("all \\u", &b);
	put_all(&b, "\\x%02x");
	check_steps("all \\x", &b);
	put_all(&b, "&#%u;");
	check_steps("all &#;", &b);
	put_all(&b, "%02X");
	check_steps("hex", &b);
	put_all(&b, "%02x");
	check_steps("hex, small", &b);
	buf_add_str(&b, "s3cr+t\\/&quot;Key\\\\%25%34\\u0031&amp;x");
	check_steps("mixed", &b);
}

/* In base64 the characters at the ends are shared with their neighbours. */
static void test_base64(void)
{
	static const char *const around[][2] = {
		{ "", "" }, { "a", "" }, { "ab", "b" }, { "abc", "bc" },
		{ "user:", "" }, { "{\"a\": \"", "\"}" },
	};
	for (size_t i = 0; i < 6; i++)
		for (int url = 0; url < 2; url++) {
			cleanup_buf struct buf b = { 0 }, t = { 0 }, d = { 0 };
			buf_add_str(&b, around[i][0]);
			buf_add_str(&b, secret);
			buf_add_str(&b, around[i][1]);
			text_base64(&t, buf_bytes(&b));
			for (size_t k = 0; url && k < t.len; k++)
				t.data[k] = t.data[k] == '+' ? '-' :
					    t.data[k] == '/' ? '_' : t.data[k];
			size_t n = redact_whole(set, t.data, t.len);
			size_t stars = 0;
			for (size_t k = 0; k < t.len; k++)
				stars += t.data[k] == '*';
			ok(n == 1 && stars * 6 + 12 > strlen(secret) * 8,
			   "base64 of %zu, url %d: %s", i, url, buf_cstr(&t));
		}
	cleanup_buf struct buf b = { 0 }, folded = { 0 };
	text_base64(&b, bytes_str(secret));
	for (size_t i = 0; i + 2 < b.len; i++) {
		buf_add(&folded, b.data + i, 1);
		if (i == 7)
			buf_add_str(&folded, "\r\n");
	}
	ok(redact_whole(set, folded.data, folded.len) == 1, "folded base64");
}

static void test_kept(void)
{
	static const char *const texts[] = {
		"", "s3cr+t", "nothing of it at all %41 \\u0041 &amp; &#65;",
		"s3cr+t/\"Key\\%41&y", "\\", "%", "&", "&#", "\\u00",
	};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct redact r = { 0 };
		cleanup_buf struct buf out = { 0 };
		for (const char *c = texts[i]; *c; c++)
			redact_feed(&r, set, (struct bytes){
				    (const uint8_t *)c, 1 }, false, &out);
		redact_feed(&r, set, (struct bytes){ NULL, 0 }, true, &out);
		is_str(out.len ? buf_cstr(&out) : "", texts[i],
		       "kept: %s", texts[i]);
		redact_reset(&r);
	}
}

static void test_text(void)
{
	cleanup_buf struct buf b = { 0 };
	static const char *const bad[] = { "a", "a=", "ab*d", "abcde", "=" };
	text_base64(&b, bytes_str("user:pass"));
	is_str(buf_cstr(&b), "dXNlcjpwYXNz", "base64");
	buf_reset(&b);
	is_int(text_from_base64(&b, bytes_str("dTpw")), 0, "from base64");
	is_int(text_from_base64(&b, bytes_str("dTo=")), 0, "with padding");
	is_str(buf_cstr(&b), "u:pu:", "both");
	for (size_t i = 0; i < 4; i++)
		ok(text_from_base64(&b, bytes_str(bad[i])) < 0, "no base64: %s",
		   bad[i]);
	is_int(b.len, 5, "and nothing added");
}

int main(void)
{
	if (prim_init() < 0 || !(set = redact_new()))
		return skip_all("no locked memory");
	is_int(redact_add(set, bytes_str(secret)), 0, "added");
	test_forms();
	test_base64();
	test_kept();
	test_text();
	redact_free(set);
	return done_testing();
}
