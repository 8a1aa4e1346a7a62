/* SPDX-License-Identifier: MIT
 *
 * Goal: what is hashed as it passes is what will be shown, or the hash says
 * that it does not know; in whatever pieces it passes. */
#include <string.h>

#include "airloxfs/view_hash.h"
#include "core/payload.h"
#include "core/prim.h"
#include "tests/unit/tap.h"

static void fill(struct buf *b, size_t n)
{
	uint8_t *p = buf_room(b, n + 1);
	prim_random(p, n);
	b->len += n;
}

/* Whether the hash knows [off, off + n), and then is right. */
static int pass(const struct buf *text, bool zip, uint64_t off, uint64_t n)
{
	struct view_hash *v = view_hash_new(text->len, zip);
	const struct zip_sink sink = view_hash_sink(v);
	uint8_t sum[HASH_SIZE], want[HASH_SIZE];
	int r = 0;
	for (size_t at = 0; at < text->len;) {
		size_t left = text->len - at;
		size_t step = 1 + prim_random_below(60);
		step = step < left ? step : left;
		sink.take(sink.arg, text->data + at, step);
		at += step;
	}
	if (view_hash_final(v, off, n, sum)) {
		hash_sha256(want, text->data + off, (size_t)n);
		r = memcmp(sum, want, sizeof sum) == 0 ? 1 : -1;
	}
	view_hash_free(v);
	return r;
}

static void frame(struct buf *b, size_t meta)
{
	buf_add_u32be(b, (uint32_t)meta);
	fill(b, meta);
}

static void check_plain(void)
{
	int wrong = 0;
	for (size_t body = 1; body < 200; body += 3)
		for (int zip = 0; zip < 2; zip++) {
			cleanup_buf struct buf b = { 0 };
			frame(&b, body % 50);
			uint64_t off = b.len;
			fill(&b, body);
			int r = pass(&b, zip, off, body);
			/* the shortest archives it leaves to others */
			wrong += r < 0 || (r == 0 && (!zip || body != 30));
			wrong += pass(&b, zip, off + 1, body - 1) != 0;
			wrong += pass(&b, zip, off, body - 1) != 0;
		}
	is_int(wrong, 0, "a body as it is");
}

static void check_wrapped(void)
{
	int wrong = 0;
	const struct bytes name = bytes_str("a name.bin");
	for (size_t n = 0; n < 200; n += 7) {
		cleanup_buf struct buf b = { 0 }, file = { 0 };
		fill(&file, n);
		const struct zip_wrap w = {
			.size = n, .crc = zip_crc32(0, file.data, n) };
		frame(&b, 33);
		uint64_t off = b.len;
		zip_wrap_head(&b, name, w);
		uint64_t entry = b.len;
		buf_add(&b, file.data, n);
		zip_wrap_tail(&b, name, w);
		wrong += pass(&b, true, entry, n) != 1;
		wrong += pass(&b, true, off, b.len - off) != 0;
		wrong += pass(&b, false, off, b.len - off) != 1;
	}
	is_int(wrong, 0, "the one entry of a wrap");
}

static void check_odd(void)
{
	cleanup_buf struct buf b = { 0 };
	is_int(pass(&b, true, 0, 0), 0, "nothing at all");
	buf_add_u32be(&b, UINT32_MAX);
	fill(&b, 100);
	is_int(pass(&b, true, 4, 100), 0, "a meta beyond the end");
	is_int(pass(&b, false, 4, 100), 0, "  of no archive either");
}

int main(void)
{
	if (prim_init() < 0)
		return 1;
	check_plain();
	check_wrapped();
	check_odd();
	return done_testing();
}
