/* SPDX-License-Identifier: MIT
 *
 * diff: what it says, and that what it says leads from one text to the
 * other. */
#include "runner/record/diff.h"
#include "tests/unit/tap.h"

static void is_diff(const char *was, const char *is, const char *want)
{
	struct buf b = { 0 };
	diff_put(&b, bytes_str(was), bytes_str(is), 1 << 20);
	is_str(buf_cstr(&b) ? buf_cstr(&b) : "", want, "a diff of %zu bytes", strlen(want));
	buf_free(&b);
}

static uint32_t seed = 7;
static unsigned roll(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void make(struct buf *b, unsigned lines, unsigned kinds)
{
	for (unsigned i = 0; i < lines; i++)
		buf_addf(b, "%u\n", roll(kinds));
	if (lines && roll(4) == 0)
		b->len--;
}

/* The two texts again: from context, lines out and lines in of all hunks, and
 * what no hunk has, of the first. */
static int leads(struct bytes was, struct bytes is, struct bytes diff)
{
	struct buf got = { 0 };
	size_t at = 0, line = 0;	/* of was */
	const char *p = (const char *)diff.p, *end = p + diff.n;
	int bad = 0;
	while (p < end) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		size_t n = lf ? (size_t)(lf - p) + 1 : (size_t)(end - p);
		unsigned long a = 0, a_n = 0;
		bool cut = p + n < end && p[n] == '\\';
		char head[64];
		snprintf(head, sizeof head, "%.*s", n < 63 ? (int)n : 63, p);
		if (sscanf(head, "@@ -%lu,%lu", &a, &a_n) == 2) {
			size_t to = a_n ? a - 1 : a;
			while (line < to && at < was.n) {
				const uint8_t *e = memchr(was.p + at, '\n',
							  was.n - at);
				size_t m = e ? (size_t)(e - was.p) + 1 - at :
					   was.n - at;
				buf_add(&got, was.p + at, m);
				at += m;
				line++;
			}
		} else if (p[0] == '+' || p[0] == ' ' || p[0] == '-') {
			if (p[0] != '-')
				buf_add(&got, p + 1, n - 1 - cut);
			if (p[0] != '+') {
				bad |= memcmp(was.p + at, p + 1, n - 1 - cut);
				at += n - 1 - cut;
				line++;
			}
		}
		p += n;
	}
	buf_add(&got, was.p + at, was.n - at);
	bad |= !bytes_eq(buf_bytes(&got), is);
	buf_free(&got);
	return !bad;
}

int main(void)
{
	is_diff("a\nb\nc\n", "a\nb\nc\n", "");
	is_diff("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
	is_diff("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
	is_diff("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ no newline at the end\n"
		"+a\n");
	is_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
		"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
	int all = 1;
	for (int i = 0; i < 3000 && all; i++) {
		struct buf a = { 0 }, b = { 0 }, d = { 0 };
		unsigned kinds = 1 + roll(30);
		make(&a, roll(40), kinds);
		make(&b, roll(40), kinds);
		diff_put(&d, buf_bytes(&a), buf_bytes(&b), 1 << 20);
		all = leads(buf_bytes(&a), buf_bytes(&b), buf_bytes(&d));
		buf_free(&a);
		buf_free(&b);
		buf_free(&d);
	}
	ok(all, "a diff leads from one text to the other");
	struct buf a = { 0 }, b = { 0 }, d = { 0 };
	make(&a, 60000, 1u << 20);
	make(&b, 60000, 1u << 20);
	diff_put(&d, buf_bytes(&a), buf_bytes(&b), 4096);
	ok(d.len < 4200 && strstr(buf_cstr(&d), " bytes more\n"),
	   "two that have nothing in common, cut: %zu bytes", d.len);
	buf_free(&a);
	buf_free(&b);
	buf_free(&d);
	return done_testing();
}
