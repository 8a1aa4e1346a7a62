/* SPDX-License-Identifier: MIT
 *
 * Fuzz: text and names of a peer. */
#include <assert.h>

#include "core/clear.h"
#include "core/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check_clean(struct bytes s)
{
	assert(clear_utf8(s));
	for (size_t at = 0; at < s.n;)
		assert(!clear_hidden(clear_next(s, &at)));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct bytes in = { p, n };
	cleanup_buf struct buf a = { 0 }, b = { 0 }, c = { 0 };
	struct err e;

	if (clear_check(in, 64, "text", &e) == 0)
		assert(clear_utf8(in) && clear_count(in) <= 64);
	clear_escape(&a, in);
	check_clean(buf_bytes(&a));
	if (name_check(in, &e) == 0)
		assert(name_check_entry(in, &e) == 0);
	name_reduce(&b, in, 32);
	assert(b.len >= 1 && b.len <= 32 && b.data[0] != '.');
	check_clean(buf_bytes(&b));
	buf_reset(&b);
	name_in(&b, n, n ? "alice" : "", in);
	assert(b.len <= NAME_MAX_BYTES);
	clear_fold(&c, in);
	assert(c.len >= 1);
	return 0;
}
