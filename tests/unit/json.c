/* SPDX-License-Identifier: MIT */
#include "core/json.h"
#include "tests/unit/tap.h"

static struct bytes lit(const char *s, size_t n)
{
	return (struct bytes){ (const uint8_t *)s, n };
}
#define LIT(s) lit(s, sizeof(s) - 1)

static bool takes(struct bytes s)
{
	struct err e = { 0 };
	struct json *doc = json_parse(s, &e);

	json_free(doc);
	return doc != NULL;
}

static void accepts(const char *s) { ok(takes(bytes_str(s)), "takes %s", s); }
static void refuses(const char *s, const char *why)
{
	struct err e = { 0 };
	struct json *doc = json_parse(bytes_str(s), &e);

	ok(!doc && e.code == ERR_INVALID, "refuses %s", why);
	json_free(doc);
}

static void integers(void)
{
	accepts("0");
	accepts("-1");
	accepts("9007199254740991");
	accepts("-9007199254740991");
	refuses("9007199254740992", "2^53");
	refuses("-9007199254740992", "-2^53");
	refuses("99999999999999999999999999", "what overflows");
	refuses("-0", "-0");
	refuses("01", "a leading zero");
	refuses("-", "a lone minus");
	refuses("+1", "a plus");
	refuses("1.0", "a fraction");
	refuses("1e3", "an exponent");
	struct json *doc = json_parse(bytes_str("-9007199254740991"), NULL);
	is_int(doc ? doc->num : 0, -JSON_INT_MAX, "-(2^53-1) is itself");
	json_free(doc);
}

static void strings(void)
{
	struct json *doc = json_parse(LIT("\"a\\u0000b\\n\\u001f\""), NULL);
	ok(doc && bytes_eq(doc->str, LIT("a\0b\n\x1f")),
	   "a NUL in a string is kept");
	json_free(doc);
	ok(takes(LIT("\"\xe2\x80\xa8/\x7f\"")), "U+2028, / and DEL are raw");
	ok(!takes(LIT("\"a\0b\"")), "refuses a raw NUL");
	refuses("\"\\u2028\"", "U+2028 escaped");
	refuses("\"\\/\"", "an escaped slash");
	refuses("\"\\u000a\"", "\\u000a for \\n");
	refuses("\"\\u001F\"", "uppercase hex");
	refuses("\"\\u0020\"", "an escaped space");
	refuses("\"\\ud83d\\ude00\"", "surrogate escapes");
	refuses("\"\n\"", "a raw line end");
	refuses("\"\xc0\xaf\"", "an overlong form");
	refuses("\"\xed\xa0\x80\"", "a surrogate in UTF-8");
	refuses("\"\xf4\x90\x80\x80\"", "what lies past U+10FFFF");
	refuses("\"\xe2\x80\"", "a character cut short");
	refuses("\"a", "a string that does not end");
	refuses("\"\\", "an escape that does not end");
	refuses("\"\\u00", "an escape cut short");
}

static void shapes(void)
{
	accepts("{\"a\":1,\"aa\":[true,false,null],\"b\":{}}");
	refuses("{\"b\":1,\"a\":1}", "keys out of order");
	refuses("{\"a\":1,\"a\":2}", "a key twice");
	refuses("{\"aa\":1,\"a\":2}", "a longer key first");
	refuses("{\"\xc3\xa9\":1}", "a key that is not ASCII");
	refuses("{\"a\":1,}", "a comma too many");
	refuses("[1,]", "a comma too many in an array");
	refuses("[,1]", "a comma too early");
	refuses("[1 ,2]", "a space");
	refuses(" 1", "a leading space");
	refuses("1\n", "a trailing line end");
	refuses("{}{}", "two values");
	refuses("", "nothing");
	refuses("[", "an open bracket");
	refuses("{\"a\"", "half a member");
	refuses("nul", "half a word");
	refuses("True", "another language");
}

static void nesting(void)
{
	char deep[200];

	for (size_t n = 32; n <= 33; n++) {
		memset(deep, '[', n);
		memset(deep + n, ']', n);
		ok(takes(lit(deep, 2 * n)) == (n == 32), "%zu deep is %s", n,
		   n == 32 ? "taken" : "refused");
	}
	struct buf b = { 0 };
	for (int i = 0; i < 1000000; i++)
		buf_add_byte(&b, '[');
	ok(!takes(buf_bytes(&b)), "a million deep is refused");
	buf_reset(&b);
	buf_add_byte(&b, '[');
	for (int i = 0; i < 300000; i++)
		buf_add_str(&b, "1,");
	buf_add_str(&b, "1]");
	ok(!takes(buf_bytes(&b)), "300000 values are refused");
	buf_free(&b);
}

static void raw_bytes(void)
{
	struct json *doc = json_parse(bytes_str("{\"a\":{\"b\":[1]},\"c\":2}"),
				      NULL);
	if (ok(doc, "a document")) {
		ok(bytes_eq(doc->child->raw, bytes_str("{\"b\":[1]}")),
		   "a member knows its own bytes");
		is_int(doc->count, 2, "and the object its members");
	}
	json_free(doc);
}

static int read_ab(const char *s, int64_t *a, struct err *e)
{
	struct json_reader r;
	struct json *doc = json_parse(bytes_str(s), e);

	json_open(&r, doc, "thing");
	*a = json_take_int(&r, "a", 1, 5);
	json_take_optional(&r, "b");
	json_take_bool(&r, "c");
	int res = json_close(&r, e);
	json_free(doc);
	return res;
}

static void reader(void)
{
	static const char *const bad[] = {
		"{\"a\":6,\"c\":true}", "{\"a\":\"1\",\"c\":true}",
		"{\"a\":1}", "{\"c\":true}", "{\"a\":1,\"c\":true,\"d\":1}",
		"{\"a\":1,\"c\":null}", "[]", "1", "{\"A\":0,\"a\":1,\"c\":true}",
	};
	struct err e = { 0 };
	int64_t a = 0;

	ok(read_ab("{\"a\":5,\"c\":true}", &a, &e) == 0 && a == 5,
	   "a closed structure is read");
	ok(read_ab("{\"a\":5,\"b\":[],\"c\":true}", &a, &e) == 0,
	   "with its optional field too");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		e = (struct err){ 0 };
		ok(read_ab(bad[i], &a, &e) < 0 && e.code == ERR_INVALID,
		   "%s is refused: %s", bad[i], e.why);
	}
}

static void writer(void)
{
	struct buf b = { 0 };

	buf_add_byte(&b, '{');
	json_put_key(&b, "a");
	json_put_string(&b, LIT("\0\x01\b\t\n\x0b\f\r\x1f \"\\/\x7f\xe2\x80\xa8"));
	json_put_key(&b, "b");
	json_put_int(&b, -JSON_INT_MAX);
	json_put_key(&b, "c");
	json_put_b64(&b, "foo", 3);
	buf_add_byte(&b, '}');
	is_str(buf_cstr(&b), "{\"a\":\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r"
	       "\\u001f \\\"\\\\/\x7f\xe2\x80\xa8\",\"b\":-9007199254740991,"
	       "\"c\":\"Zm9v\"}", "what is written is canonical");
	ok(takes(buf_bytes(&b)), "and is read");
	buf_free(&b);
}

int main(void)
{
	integers();
	strings();
	shapes();
	nesting();
	raw_bytes();
	reader();
	writer();
	return done_testing();
}
