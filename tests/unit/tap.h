/* SPDX-License-Identifier: MIT
 *
 * TAP for the unit tests: one C file with a main is one test program.
 *
 *	int main(void)
 *	{
 *		ok(buf_len(&b) == 3, "three bytes, not %zu", buf_len(&b));
 *		is_int(foo(), 7, "foo is seven");
 *		is_str(name, "a.md", "the name is kept");
 *		is_mem(got, want, 32, "the key");
 *		return done_testing();
 *	}
 *
 * Each macro gives 1 when it held and 0 when it did not, and says on a
 * failure where and what was there instead.  The plan is printed last, so
 * that a program that dies half-way is seen as one that did.
 */
#ifndef TESTS_UNIT_TAP_H
#define TESTS_UNIT_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count;
static int tap_failed;

__attribute__((format(printf, 4, 5), unused))
static int tap_ok(int held, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", held ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	if (!held) {
		tap_failed++;
		printf("#   at %s line %d\n", file, line);
	}
	fflush(stdout);
	return held;
}

__attribute__((unused))
static void tap_hex(const char *label, const void *mem, size_t n)
{
	const unsigned char *p = mem;

	printf("#   %s", label);
	for (size_t i = 0; i < n && i < 64; i++)
		printf("%02x", (unsigned)p[i]);
	printf("%s\n", n > 64 ? "..." : "");
}

/* Strings may be NULL; two NULLs are equal. */
__attribute__((unused))
static int tap_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

#define ok(cond, ...) tap_ok(!!(cond), __FILE__, __LINE__, __VA_ARGS__)

#define is_int(got, want, ...) __extension__ ({ \
	long long tap_g_ = (long long)(got), tap_w_ = (long long)(want); \
	int tap_r_ = tap_ok(tap_g_ == tap_w_, __FILE__, __LINE__, \
			    __VA_ARGS__); \
	if (!tap_r_) \
		printf("#   got %lld\n#   want %lld\n", tap_g_, tap_w_); \
	tap_r_; })

#define is_str(got, want, ...) __extension__ ({ \
	const char *tap_g_ = (got), *tap_w_ = (want); \
	int tap_r_ = tap_ok(tap_same(tap_g_, tap_w_), __FILE__, __LINE__, \
			    __VA_ARGS__); \
	if (!tap_r_) \
		printf("#   got '%s'\n#   want '%s'\n", \
		       tap_g_ ? tap_g_ : "(null)", \
		       tap_w_ ? tap_w_ : "(null)"); \
	tap_r_; })

#define is_mem(got, want, n, ...) __extension__ ({ \
	const void *tap_g_ = (got), *tap_w_ = (want); \
	size_t tap_n_ = (n); \
	int tap_r_ = tap_ok(tap_n_ == 0 || \
			    memcmp(tap_g_, tap_w_, tap_n_) == 0, \
			    __FILE__, __LINE__, __VA_ARGS__); \
	if (!tap_r_) { \
		tap_hex("got ", tap_g_, tap_n_); \
		tap_hex("want ", tap_w_, tap_n_); \
	} \
	tap_r_; })

/* For a test that cannot run here: `return skip_all("no /dev/fuse");` */
__attribute__((unused))
static int skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 77;
}

__attribute__((unused))
static int done_testing(void)
{
	printf("1..%d\n", tap_count);
	if (tap_failed)
		printf("# %d of %d failed\n", tap_failed, tap_count);
	fflush(stdout);
	return tap_failed || tap_count == 0;
}

#endif
