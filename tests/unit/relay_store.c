/* SPDX-License-Identifier: MIT
 *
 * The relay's log: cut off at every byte and flipped at every byte, it gives
 * a prefix of what was written with every earlier batch whole, or refuses;
 * dropped records are gone from the disk and stepped over. */
#include "relay/store.c"
#include "relay/store_load.c"
#include "core/hash.h"
#include "tests/unit/tap.h"

#define RECORDS 7	/* in batches of 3, 2, 2 */

static char dir[] = "/tmp/relay-store-XXXXXX";
static int dirfd_;

struct seen {
	int n, broken, tail;
	bool wrong;
};

static void fill(struct buf *body, struct buf *blob, int i)
{
	for (int k = 0; k < 20 + i * 7; k++)
		buf_add_byte(body, (uint8_t)(i * 16 + k));
	for (int k = 0; k < i * 31; k++)
		buf_add_byte(blob, (uint8_t)(i + k));
}

static int take(void *arg, const struct store_rec *r, bool intact, bool tail,
		struct err *e)
{
	struct seen *s = arg;
	struct buf body = { 0 }, blob = { 0 };
	(void)e;
	fill(&body, &blob, s->n);
	if (!intact)
		s->broken++;
	else if (r->tag != (uint32_t)s->n || r->type != REC_ITEM ||
		 !bytes_eq(r->body, buf_bytes(&body)))
		s->wrong = true;
	s->tail += tail;
	s->n++;
	buf_free(&body);
	buf_free(&blob);
	return 0;
}

static void append(struct store *st, int from, int n, struct rec_loc *locs)
{
	struct buf body[3] = { 0 }, blob[3] = { 0 };
	struct store_rec r[3];
	struct err e;
	for (int i = 0; i < n; i++) {
		fill(&body[i], &blob[i], from + i);
		r[i] = (struct store_rec){ .type = REC_ITEM,
					   .tag = (uint32_t)(from + i),
					   .body = buf_bytes(&body[i]),
					   .blob = buf_bytes(&blob[i]) };
	}
	ok(store_room(st, 4096, &e) == 0 &&
	   store_append(st, r, (size_t)n, &e) == 0, "a batch of %d", n);
	for (int i = 0; i < n; i++) {
		locs[from + i] = r[i].loc;
		buf_free(&body[i]);
		buf_free(&blob[i]);
	}
}

static int load(struct seen *s, uint64_t *dropped, struct err *e)
{
	struct store *st = store_open(dirfd_, e);
	*s = (struct seen){ 0 };
	int rc = store_load(st, &(struct store_reader){ take, s }, dropped, e);
	store_close(st);
	return rc;
}

static void put_file(const uint8_t *p, size_t n)
{
	int fd = openat(dirfd_, "log/00000001.log", O_WRONLY | O_TRUNC);
	if (store_write_all(fd, p, n, 0) < 0)
		abort();
	close(fd);
}

static size_t get_file(uint8_t *p, size_t cap)
{
	int fd = openat(dirfd_, "log/00000001.log", O_RDONLY);
	ssize_t n = read(fd, p, cap);
	close(fd);
	return n < 0 ? 0 : (size_t)n;
}

static void test_cut(const uint8_t *p, size_t n, const struct rec_loc *loc)
{
	struct seen s;
	struct err e;
	uint64_t dropped;
	bool held = true;
	for (size_t cut = 0; cut <= n; cut++) {
		int whole = 0;
		while (whole < RECORDS &&
		       loc[whole].at + store_record_size(loc[whole].body_n,
						   loc[whole].blob_n) <= cut)
			whole++;
		put_file(p, cut);
		if (load(&s, &dropped, &e) < 0 || s.wrong || s.broken ||
		    s.n < whole || s.n > whole + 1) {
			held = false;
			printf("# cut at %zu: %d records, not %d\n", cut, s.n,
			       whole);
		}
		if (load(&s, &dropped, &e) < 0 || dropped)
			held = false;
	}
	ok(held, "cut at each of %zu bytes: whole records, repaired once", n);
}

static void test_flip(uint8_t *p, size_t n, const struct rec_loc *loc)
{
	struct seen s;
	struct err e;
	uint64_t dropped;
	bool held = true;
	int refused = 0, cut = 0;
	for (size_t at = 0; at < n; at++) {
		p[at] ^= 0x10;
		put_file(p, n);
		int rc = load(&s, &dropped, &e);
		p[at] ^= 0x10;
		bool early = at < loc[5].at;	/* before the last batch */
		refused += rc < 0 || s.broken;
		cut += rc == 0 && dropped;
		if (s.wrong || (early && rc == 0 && dropped) ||
		    (rc == 0 && s.n < 5)) {
			held = false;
			printf("# at %zu: %d records, %llu dropped\n", at,
			       s.n, (unsigned long long)dropped);
		}
	}
	ok(held, "flipped at each of %zu bytes: no acknowledged record is "
	   "dropped in silence", n);
	ok(refused > 300 && cut > 100, "refused %d times, cut %d", refused,
	   cut);
	put_file(p, n);
}

static void test_drop(const struct rec_loc *loc, uint8_t *p, size_t cap)
{
	struct seen s;
	struct err e;
	uint64_t dropped;
	struct store *st = store_open(dirfd_, &e);
	struct buf b = { 0 };
	s = (struct seen){ 0 };
	store_load(st, &(struct store_reader){ take, &s }, &dropped, &e);
	is_int(s.n, RECORDS, "all of it");
	store_punch(st, &loc[6]);
	store_drop(st, &loc[1]);
	store_drop(st, &loc[2]);
	ok(store_blob(st, &loc[6], &b, &e) == 0, "a punched blob");
	bool zero = true;
	for (size_t i = 0; i < b.len; i++)
		zero &= b.data[i] == 0;
	ok(zero && b.len == 6 * 31, "is zeros");
	buf_reset(&b);
	ok(store_read(st, &loc[6], &b, &e) == 0 && b.len == 20 + 6 * 7 &&
	   b.data[0] == 6 * 16, "its body is there");
	buf_free(&b);
	store_close(st);
	size_t n = get_file(p, cap);
	zero = true;
	for (size_t i = 0; i < loc[1].body_n + loc[1].blob_n; i++)
		zero &= p[loc[1].at + HEAD_N + i] == 0;
	ok(zero && n > loc[6].at, "a dropped record is zeros");
	is_int(load(&s, &dropped, &e), 0, "it is stepped over");
	is_int(s.n, RECORDS, "all headers");
	is_int(s.broken, 2, "two that are gone");
}

int main(void)
{
	static uint8_t p[1 << 16];
	struct rec_loc loc[RECORDS];
	struct err e;
	if (prim_init() < 0 || !mkdtemp(dir))
		return 1;
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	struct store *st = store_open(dirfd_, &e);
	append(st, 0, 3, loc);
	append(st, 3, 2, loc);
	append(st, 5, 2, loc);
	store_close(st);
	size_t n = get_file(p, sizeof p);
	test_cut(p, n, loc);
	test_flip(p, n, loc);
	test_drop(loc, p, sizeof p);
	unlinkat(dirfd_, "log/00000001.log", 0);
	unlinkat(dirfd_, "log", AT_REMOVEDIR);
	close(dirfd_);
	rmdir(dir);
	return done_testing();
}
