/* SPDX-License-Identifier: MIT
 *
 * Goal: of what a job prints the start and the end are kept, as UTF-8, within
 * their limits; live output is a frame at a time and says what it left out. */
#include "airloxfs/kept.h"
#include "core/clear.h"
#include "tests/unit/tap.h"

static void add_str(struct kept *k, const char *s) { kept_add(k, s, strlen(s)); }

static void is_text(struct kept *k, size_t max, const char *want, bool cut)
{
	cleanup_buf struct buf b = { 0 };
	is_int(kept_text(k, &b, max), cut, "%s", cut ? "cut" : "whole");
	is_str(buf_cstr(&b), want, "  as it should be");
}

static void check_small(void)
{
	struct kept k = { 0 };
	is_text(&k, 100, "", false);
	add_str(&k, "one\n");
	add_str(&k, "tw\xc3");
	add_str(&k, "\xa4\n");
	is_text(&k, 100, "one\ntw\xc3\xa4\n", false);
	add_str(&k, "\xff.\xc3");
	is_text(&k, 100, "one\ntw\xc3\xa4\n\xef\xbf\xbd.\xef\xbf\xbd", false);
	kept_reset(&k);
	add_str(&k, "anew");
	is_text(&k, 100, "anew", false);
	kept_free(&k);
}

/* Numbered lines, so that it is seen which are there. */
static void check_large(size_t step)
{
	struct kept k = { 0 };
	cleanup_buf struct buf all = { 0 }, got = { 0 }, text = { 0 };
	for (int i = 0; i < 300000; i++)
		buf_addf(&all, "line %d\n", i);
	for (size_t at = 0; at < all.len; at += step)
		kept_add(&k, all.data + at,
			 all.len - at < step ? all.len - at : step);
	kept_read(&k, &got);
	ok(got.len < KEPT_MAX && got.len > KEPT_MAX - 200, "kept: %zu",
	   got.len);
	ok(memcmp(got.data, all.data, KEPT_HALF) == 0, "the start");
	is_mem(got.data + got.len - KEPT_HALF, all.data + all.len - KEPT_HALF,
	       KEPT_HALF, "the end");
	is_int(kept_text(&k, &text, KEPT_MAX), true, "cut");
	ok(text.len <= KEPT_MAX && text.len > KEPT_MAX - 400, "%zu", text.len);
	const char *mark = strstr(buf_cstr(&text), " bytes skipped]\n");
	ok(mark != NULL, "a marker");
	unsigned long long n = 0;
	const char *from = mark ? mark : "";
	while (mark && *from != '[')
		from--;
	sscanf(from, "[%llu", &n);
	size_t around = mark ? (size_t)(mark + 16 - from) : 0;
	if (mark && from > (char *)text.data && from[-1] == '\n' &&
	    all.data[from - (char *)text.data - 1] != '\n')
		around++;	/* the marker's own line break */
	is_int((int)(n + text.len - around), (int)all.len, "it says how many");
	kept_free(&k);
}

static void check_bad_bytes(void)
{
	struct kept k = { 0 };
	cleanup_buf struct buf junk = { 0 }, text = { 0 };
	memset(buf_room(&junk, 900000), 0xff, 900000);
	kept_add(&k, junk.data, 900000);
	is_int(kept_text(&k, &text, KEPT_MAX), true, "what grows is cut");
	ok(text.len <= KEPT_MAX, "  to %zu", text.len);
	ok(clear_utf8(buf_bytes(&text)), "  and is UTF-8");
	buf_reset(&text);
	is_int(kept_text(&k, &text, 10), true, "a limit of ten bytes");
	ok(text.len <= 10, "  is kept");
	kept_free(&k);
}

static void check_live(void)
{
	struct kept k = { 0 };
	cleanup_buf struct buf b = { 0 }, big = { 0 };
	kept_take_live(&k, &b);
	is_int((int)b.len, 0, "nothing yet");
	add_str(&k, "a\n");
	kept_take_live(&k, &b);
	is_str(buf_cstr(&b), "a\n", "a line");
	memset(buf_room(&big, 100000), 'x', 100000);
	kept_add(&k, big.data, 100000);
	add_str(&k, "later\n");
	kept_take_live(&k, &b);
	is_int((int)b.len, KEPT_LIVE, "a frame");
	add_str(&k, "new\n");
	kept_take_live(&k, &b);
	char want[64];
	snprintf(want, sizeof want, "\n[%d bytes skipped]\nnew\n",
		 100000 - KEPT_LIVE + 6);
	is_str(buf_cstr(&b), want, "then what was left out, and what is new");
	kept_take_live(&k, &b);
	is_int((int)b.len, 0, "nothing more");
	kept_free(&k);
}

static int rest_of(const char *seen, const char *whole)
{
	return (int)kept_rest(bytes_str(seen), bytes_str(whole));
}

static void check_rest(void)
{
	struct kept k = { 0 };
	cleanup_buf struct buf b = { 0 };
	is_int(rest_of("b\n", "a\nb\nc\n"), 4, "on after what was seen");
	is_int(rest_of("x", "axxb"), 3, "the last such place");
	is_int(rest_of("a\xff\n", "a\xef\xbf\xbd\nb"), 5,
	       "bytes that are no text in a result");
	is_int(rest_of("", "a"), 0, "nothing seen: all of it");
	is_int(rest_of("longer than all", "a"), 0, "not found: all of it");
	is_int(rest_of("no", "a\n[12 bytes skipped]\nb"), 2,
	       "not found, and the whole is none: its end");
	is_int(rest_of("no", " bytes skipped]\n"), 0, "no marker");
	is_int(rest_of("no", ""), 0, "an empty one");
	add_str(&k, "a\n");
	kept_take_live(&k, &b);
	add_str(&k, "b");
	kept_lost(&k, 2);
	add_str(&k, "c");
	kept_take_live(&k, &b);
	is_str(buf_cstr(&b), "\n[3 bytes skipped]\nc", "a frame that was lost");
	kept_free(&k);
}

int main(void)
{
	check_small();
	check_large(1 << 20);
	check_large(997);
	check_bad_bytes();
	check_live();
	check_rest();
	return done_testing();
}
