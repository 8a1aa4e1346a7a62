/* SPDX-License-Identifier: MIT
 *
 * Goal: what was synced is there again, in order and whole; what a crash or
 * anybody else did to the file is cut off, and told. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "core/host/file.h"
#include "core/host/journal.h"
#include "core/prim.h"
#include "tests/unit/tap.h"

#define MAGIC_N 17

static const uint8_t key[32] = "0123456789abcdef0123456789abcde";
static const char sid[] = "AAAAAAAAAAAAAAAAAAAAAA";
static char root[] = "/tmp/airlox-journal-XXXXXX";
static int dir;

/* What a replay gave. */
struct seen {
	size_t n;
	uint64_t at[4096];
	struct buf all;		/* the records, one after the other */
	size_t stop_after;	/* 0: never */
};

static int each(void *arg, uint64_t at, struct bytes record, struct err *e)
{
	struct seen *s = arg;

	if (s->n < 4096)
		s->at[s->n] = at;
	s->n++;
	buf_add(&s->all, record.p, record.n);
	if (s->n == s->stop_after)
		return err_set(e, ERR_PROTO, "enough");
	return 0;
}

static struct journal *reopen(struct seen *s, uint64_t *cut)
{
	struct err e = { 0 };

	buf_free(&s->all);
	*s = (struct seen){ 0 };
	struct journal *j = journal_open(dir, "j", key, sid, each, s, cut, &e);
	if (!j)
		printf("# %s\n", e.why);
	return j;
}

static void append(struct journal *j, const char *s, uint64_t *at)
{
	if (journal_append(j, bytes_str(s), at, NULL) < 0)
		abort();
}

static void put_file(const char *name, struct bytes b)
{
	unlinkat(dir, name, 0);
	int fd = openat(dir, name, O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || file_put(fd, b.p, b.n, NULL) < 0)
		abort();
	close(fd);
}

static struct buf get_file(const char *name)
{
	struct buf b = { 0 };
	if (file_read(dir, name, 64 << 20, &b, NULL) != 0)
		abort();
	return b;
}

static void check_reopen(void)
{
	struct seen s = { 0 };
	struct err e = { 0 };
	uint64_t cut = 9, at[3];
	cleanup_buf struct buf big = { 0 }, got = { 0 }, raw = { 0 };
	struct journal *j = reopen(&s, &cut);

	ok(j && s.n == 0 && cut == 0, "a new one is empty");
	uint8_t *p = buf_room(&big, JOURNAL_RECORD_MAX + 1);
	memset(p, 'b', JOURNAL_RECORD_MAX + 1);
	big.len = JOURNAL_RECORD_MAX;
	append(j, "one secret", &at[0]);
	append(j, "", &at[1]);
	is_int(journal_append(j, buf_bytes(&big), &at[2], &e), 0, "the largest");
	big.len++;
	is_int(journal_append(j, buf_bytes(&big), NULL, &e), -1, "too large");
	is_int(e.code, ERR_SIZE, "  %s", e.why);
	is_int(journal_sync(j, &e), 0, "synced");
	is_int(journal_read(j, at[0], &got, &e), 0, "read at once");
	ok(bytes_eq(buf_bytes(&got), bytes_str("one secret")), "  the same");
	journal_close(j);

	raw = get_file("j");
	ok(!memmem(raw.data, raw.len, "secret", 6), "no word of it on disk");
	j = reopen(&s, &cut);
	is_int(s.n, 3, "all there again");
	is_int(cut, 0, "  nothing cut");
	is_mem(s.at, at, sizeof at, "  at the same places");
	ok(s.all.len == 10 + JOURNAL_RECORD_MAX &&
	   memcmp(s.all.data, "one secretbbbb", 14) == 0, "  the same bytes");
	is_int(journal_read(j, at[1], &got, &e), 0, "the empty one");
	is_int(got.len, 10, "  adds nothing");
	is_int(journal_read(j, at[0] + 1, &got, &e), -1, "none is there");
	is_int(journal_read(j, 1 << 30, &got, &e), -1, "nor there");
	append(j, "after", &at[0]);
	is_int(journal_read(j, at[0], &got, &e), 0, "it goes on");
	journal_close(j);
	j = reopen(&s, &cut);
	is_int(s.n, 4, "  and that is there too");
	journal_close(j);
	unlinkat(dir, "j", 0);
	buf_free(&s.all);
}

/* Ten records "record 0".. of one size each, and where each ends. */
static struct buf ten(uint64_t ends[11])
{
	uint64_t cut;
	struct seen s = { 0 };

	unlinkat(dir, "j", 0);
	struct journal *j = reopen(&s, &cut);
	for (int i = 0; i < 10; i++) {
		char text[16];
		snprintf(text, sizeof text, "record %d", i);
		append(j, text, &ends[i]);
	}
	journal_close(j);
	struct buf b = get_file("j");
	ends[10] = b.len;
	return b;
}

/* Whether the file opens with the first `n` records, says so, and goes on. */
static bool opens_with(struct bytes file, size_t n, uint64_t end)
{
	struct seen s = { 0 };
	uint64_t cut = 0;
	cleanup_buf struct buf want = { 0 };

	put_file("j", file);
	for (size_t i = 0; i < n; i++)
		buf_addf(&want, "record %zu", i);
	struct journal *j = reopen(&s, &cut);
	bool good = j && s.n == n && cut == file.n - end &&
		    bytes_eq(buf_bytes(&s.all), buf_bytes(&want));
	if (j)
		append(j, "more", NULL);
	journal_close(j);
	j = good ? reopen(&s, &cut) : NULL;
	buf_add_str(&want, "more");
	good = j && s.n == n + 1 && cut == 0 &&
	       bytes_eq(buf_bytes(&s.all), buf_bytes(&want));
	journal_close(j);
	buf_free(&s.all);
	return good;
}

static void check_torn(struct bytes whole, const uint64_t ends[11])
{
	int wrong = 0;

	for (size_t n = MAGIC_N; n <= whole.n; n++) {
		size_t k = 0;
		while (k < 10 && ends[k + 1] <= n)
			k++;
		wrong += !opens_with((struct bytes){ whole.p, n }, k, ends[k]);
	}
	is_int(wrong, 0, "torn at any byte: what is whole is there");
	for (size_t n = 0; n < MAGIC_N; n++)
		wrong += !opens_with((struct bytes){ whole.p, n }, 0, 0);
	is_int(wrong, 0, "torn as it was made: begun again");
}

static void check_flipped(struct bytes whole, uint8_t *raw,
			  const uint64_t ends[11])
{
	int wrong = 0;

	for (size_t n = MAGIC_N; n < whole.n; n++) {
		size_t k = 0;
		while (ends[k + 1] <= n)
			k++;
		raw[n] ^= (uint8_t)(1 << n % 8);
		wrong += !opens_with(whole, k, ends[k]);
		raw[n] ^= (uint8_t)(1 << n % 8);
	}
	is_int(wrong, 0, "a flipped bit anywhere: cut from its record");
}

static void check_moved(struct bytes whole, uint8_t *raw,
			const uint64_t ends[11])
{
	size_t n = (size_t)(ends[1] - ends[0]);
	uint8_t keep[2][64];
	cleanup_buf struct buf twice = { 0 };

	memcpy(keep[0], raw + ends[3], n);
	memcpy(keep[1], raw + ends[6], n);
	memcpy(raw + ends[3], keep[1], n);
	memcpy(raw + ends[6], keep[0], n);
	ok(opens_with(whole, 3, ends[3]), "swapped records are refused");
	memcpy(raw + ends[3], keep[0], n);
	memcpy(raw + ends[6], keep[1], n);
	buf_add(&twice, whole.p, whole.n);
	buf_add(&twice, raw + ends[9], n);
	ok(opens_with(buf_bytes(&twice), 10, ends[10]), "a repeated one too");
	buf_reset(&twice);
	buf_add(&twice, whole.p, ends[4]);
	buf_add(&twice, raw + ends[5], whole.n - ends[5]);
	ok(opens_with(buf_bytes(&twice), 4, ends[4]), "and one left out");
}

static void is_refused(const char *what, const char *name,
		       const uint8_t k[32], const char *session)
{
	struct err e = { 0 };
	uint64_t cut = 0;
	struct journal *j = journal_open(dir, name, k, session, NULL, NULL,
					 &cut, &e);
	ok(!j, "%s: %s", what, e.why);
	journal_close(j);
}

static void is_all_cut(const char *what, struct bytes whole, const char *name,
		       const uint8_t k[32], const char *session)
{
	struct err e = { 0 };
	struct seen s = { 0 };
	uint64_t cut = 0;

	put_file(name, whole);
	struct journal *j = journal_open(dir, name, k, session, each, &s, &cut,
					 &e);
	ok(j && s.n == 0 && cut == whole.n - MAGIC_N, "%s: nothing of it",
	   what);
	journal_close(j);
}

static void check_foreign(struct bytes whole)
{
	static const uint8_t other[32] = "another key";

	is_all_cut("another key", whole, "j", other, sid);
	is_all_cut("another session", whole, "j", key, "BAAAAAAAAAAAAAAAAAAAAA");
	is_all_cut("another journal's file", whole, "k", key, sid);

	static const char text[] = "airlox-journal 2\nwhat is this";
	put_file("j", bytes_str(text));
	is_refused("another version", "j", key, sid);
	cleanup_buf struct buf b = get_file("j");
	ok(bytes_eq(buf_bytes(&b), bytes_str(text)), "  is left as it is");
	if (symlinkat("k", dir, "link") < 0 || mkfifoat(dir, "fifo", 0600) < 0)
		abort();
	is_refused("a symlink", "link", key, sid);
	is_refused("a pipe", "fifo", key, sid);
}

static void check_stop(struct bytes whole)
{
	struct err e = { 0 };
	struct seen s = { .stop_after = 4 };
	uint64_t cut = 0;

	put_file("j", whole);
	ok(!journal_open(dir, "j", key, sid, each, &s, &cut, &e), "stopped");
	is_int(s.n, 4, "  where the reader said");
	is_int(e.code, ERR_PROTO, "  with its error: %s", e.why);
	cleanup_buf struct buf b = get_file("j");
	is_int(b.len, whole.n, "  and nothing is cut");
	buf_free(&s.all);
}

/* The limit of a file's size stands for a full disk: a write gets half. */
static void check_half_written(struct bytes whole)
{
	struct rlimit no, half;
	struct err e = { 0 };
	struct seen s = { 0 };
	uint64_t cut = 0;

	put_file("j", whole);
	struct journal *j = reopen(&s, &cut);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &no);
	half = no;
	half.rlim_cur = whole.n + 20;
	setrlimit(RLIMIT_FSIZE, &half);
	is_int(journal_append(j, bytes_str("no room"), NULL, &e), -1,
	       "half written: %s", e.why);
	setrlimit(RLIMIT_FSIZE, &no);
	cleanup_buf struct buf b = get_file("j");
	is_int(b.len, whole.n, "  is cut off at once");
	append(j, "room", NULL);
	journal_close(j);
	j = reopen(&s, &cut);
	ok(s.n == 11 && cut == 0, "  and it goes on");
	journal_close(j);
	buf_free(&s.all);
}

/* --- threads --- */

#define THREADS 4
#define ROUNDS 200

static void *thread_main(void *arg)
{
	struct journal *j = arg;
	intptr_t wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		cleanup_buf struct buf b = { 0 }, got = { 0 };
		uint64_t at;
		buf_addf(&b, "%d of %lx", i, (unsigned long)pthread_self());
		wrong += journal_append(j, buf_bytes(&b), &at, NULL) < 0 ||
			 (i % 8 == 0 && journal_sync(j, NULL) < 0) ||
			 journal_read(j, at, &got, NULL) < 0 ||
			 !bytes_eq(buf_bytes(&b), buf_bytes(&got));
	}
	return (void *)wrong;
}

static void check_threads(void)
{
	static struct seen s;
	pthread_t t[THREADS];
	uint64_t cut;
	intptr_t wrong = 0;

	unlinkat(dir, "j", 0);
	struct journal *j = reopen(&s, &cut);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, thread_main, j);
	for (int i = 0; i < THREADS; i++) {
		void *r;
		pthread_join(t[i], &r);
		wrong += (intptr_t)r;
	}
	is_int(wrong, 0, "threads append, sync and read");
	is_int(journal_sync(j, NULL), 0, "  and sync");
	journal_close(j);
	j = reopen(&s, &cut);
	is_int(s.n, THREADS * ROUNDS, "  and all of it is there");
	journal_close(j);
	buf_free(&s.all);
}

/* Told, not asserted: the suite has no timed assertion. */
static void tell_speed(void)
{
	struct timespec a, b;
	uint8_t record[300] = { 1 };
	uint64_t cut;
	static struct seen s;

	unlinkat(dir, "j", 0);
	struct journal *j = reopen(&s, &cut);
	for (int i = 0; i < 10000; i++)
		journal_append(j, (struct bytes){ record, 300 }, NULL, NULL);
	journal_close(j);
	clock_gettime(CLOCK_MONOTONIC, &a);
	j = reopen(&s, &cut);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("# 10,000 records replayed in %.1f ms\n",
	       (double)(b.tv_sec - a.tv_sec) * 1e3 +
	       (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	journal_close(j);
	buf_free(&s.all);
}

int main(void)
{
	uint64_t ends[11];

	if (prim_init() < 0 || !mkdtemp(root))
		return 1;
	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check_reopen();
	cleanup_buf struct buf raw = ten(ends);
	struct bytes whole = buf_bytes(&raw);
	check_torn(whole, ends);
	check_flipped(whole, raw.data, ends);
	check_moved(whole, raw.data, ends);
	check_foreign(whole);
	check_stop(whole);
	check_half_written(whole);
	check_threads();
	tell_speed();
	close(dir);
	is_int(file_remove_tree(AT_FDCWD, root, NULL), 0, "cleaned up");
	return done_testing();
}
