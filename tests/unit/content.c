/* SPDX-License-Identifier: MIT */
#include "core/content.h"
#include "tests/unit/tap.h"

static void is(enum item_type type, const char *mime, const void *p, size_t n,
	       enum err_code want, const char *what)
{
	struct bytes s = { p, n };
	struct zip_source body = zip_source_bytes(&s);
	struct err e = { 0 };

	content_check(type, mime, &body, &e);
	is_int(e.code, want, "%s: %s", what, e.why);
}

static int broken(void *arg, uint64_t off, void *to, size_t n)
{
	(void)arg;
	(void)off;
	memset(to, 0, n);
	return -1;
}

/* A character over the edge of what is read at once. */
static void edges(void)
{
	static const char *const last[] = {
		"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
	};
	enum { EDGE = 64 * 1024 };
	char *s = malloc(EDGE + 8);

	for (size_t i = 0; i < 4; i++) {
		size_t n = strlen(last[i]);
		for (size_t at = EDGE - 4; at <= EDGE; at++) {
			memset(s, 'x', EDGE + 8);
			memcpy(s + at, last[i], n);
			is(TYPE_MD, "", s, EDGE + 8, ERR_NONE, "over the edge");
			is(TYPE_MD, "", s, at + n, ERR_NONE, "at the end");
			if (n > 1)
				is(TYPE_PY, "", s, at + n - 1, ERR_CONTENT,
				   "cut short");
		}
	}
	free(s);
}

int main(void)
{
	struct zip_source src = { .read = broken, .size = 9 };
	struct err e = { 0 };

	is(TYPE_PY, "", "", 0, ERR_NONE, "an empty py");
	is(TYPE_PY, "", "a\0b", 3, ERR_NONE, "a NUL in py");
	is(TYPE_MD, "", "a\0b", 3, ERR_CONTENT, "a NUL in md");
	is(TYPE_MD, "", "\xff", 1, ERR_CONTENT, "no UTF-8");
	is(TYPE_PY, "", "\x80", 1, ERR_CONTENT, "a lone continuation");
	is(TYPE_ZIP, "", "PK", 2, ERR_CONTENT, "no archive");
	is(TYPE_ZIP, "", "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22,
	   ERR_NONE, "an empty archive");
	is(TYPE_IMAGE, "image/png", "\x89PNG\r\n\x1a\n", 8, ERR_NONE,
	   "a PNG's magic");
	is(TYPE_IMAGE, "image/jpeg", "\x89PNG\r\n\x1a\n", 8, ERR_CONTENT,
	   "not a JPEG's");
	is(TYPE_IMAGE, "image/png", "", 0, ERR_CONTENT, "an empty image");
	ok(content_check(TYPE_MD, "", &src, &e) < 0 && e.code == ERR_SYS,
	   "a body that cannot be read: %s", e.why);
	edges();
	return done_testing();
}
