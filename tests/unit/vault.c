/* SPDX-License-Identifier: MIT
 *
 * Goal: the encrypted file behaves as a file does, shows the disk nothing,
 * and after any crash opens as it was at a header, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "core/host/file.h"
#include "core/host/vault.h"
#include "core/prim.h"
#include "tests/unit/tap.h"

#define SECTOR 4096
#define DATA (2 * SECTOR)

static const uint8_t key[32] = "0123456789abcdef0123456789abcde";
static const char sid[] = "AAAAAAAAAAAAAAAAAAAAAA";
static char root[] = "/tmp/airlox-vault-XXXXXX";
static int dir;

static struct vault *make(const char *id)
{
	struct err e = { 0 };
	struct vault *v = vault_create(dir, id, key, sid, &e);
	if (!v)
		printf("# create %s: %s\n", id, e.why);
	return v;
}

static struct vault *again(struct vault *v)
{
	char id[VAULT_ID_MAX + 1];
	struct err e = { 0 };

	strcpy(id, vault_id(v));
	vault_close(v);
	v = vault_open(dir, id, key, sid, &e);
	if (!v)
		printf("# open %s: %s\n", id, e.why);
	return v;
}

static bool holds(struct vault *v, const uint8_t *want, size_t n)
{
	cleanup_free uint8_t *got = malloc(n + 1);
	return vault_size(v) == n &&
	       vault_read(v, 0, got, n + 1, NULL) == (ssize_t)n &&
	       memcmp(got, want, n) == 0;
}

static void set_record(struct vault *v, const char *s)
{
	if (vault_set_record(v, bytes_str(s), NULL) < 0)
		abort();
}

static bool has_record(struct vault *v, const char *s)
{
	return bytes_eq(vault_record(v), bytes_str(s));
}

/* --- a file like others: against a model in memory --- */

#define MODEL (70 * SECTOR)

static uint32_t seed = 1;
static uint32_t below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static size_t model_write(struct vault *v, uint8_t *model, size_t size)
{
	static uint8_t data[MODEL];
	size_t off = below(MODEL - 1);
	size_t n = 1 + below((uint32_t)(MODEL - off));

	if (below(2)) {
		off -= off % SECTOR;
		n = n > SECTOR ? n - n % SECTOR : n;
	}
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)below(256);
	for (size_t i = 0; i < n; i += SECTOR)
		if (below(3) == 0)
			memset(data + i, 0, n - i < SECTOR ? n - i : SECTOR);
	if (vault_write(v, off, data, n, NULL) < 0)
		abort();
	memcpy(model + off, data, n);
	return off + n > size ? off + n : size;
}

static size_t model_truncate(struct vault *v, uint8_t *model, size_t size)
{
	size_t to = below(MODEL);

	if (vault_truncate(v, to, NULL) < 0)
		abort();
	if (to < size)
		memset(model + to, 0, size - to);
	return to;
}

static void check_model(void)
{
	static uint8_t model[MODEL];
	struct vault *v = make("model");
	size_t size = 0;
	int wrong = 0;

	for (int i = 0; i < 4000; i++) {
		switch (below(8)) {
		case 0:
			size = model_truncate(v, model, size);
			break;
		case 1:
			if (vault_flush_header(v, NULL) < 0)
				abort();
			v = again(v);
			break;
		case 2:
			if (i % 16 == 0 && vault_sync(v, NULL) < 0)
				abort();
			break;
		default:
			size = model_write(v, model, size);
		}
		size_t off = below(MODEL);
		size_t n = off < size ? below((uint32_t)(size - off) + 1) : 0;
		uint8_t got[MODEL];
		wrong += vault_read(v, off, got, n, NULL) != (ssize_t)n ||
			 memcmp(got, model + off, n) != 0;
		wrong += i % 50 == 0 && !holds(v, model, size);
	}
	is_int(wrong, 0, "4,000 random steps give what a file gives");
	ok(holds(v, model, size), "and all of it at the end");
	vault_close(v);
}

static void check_ends(void)
{
	struct err e = { 0 };
	uint8_t b[8] = "xxxxxxx";
	struct vault *v = make("ends");

	is_int(vault_size(v), 0, "new: empty");
	is_int(vault_read(v, 0, b, 8, &e), 0, "  nothing to read");
	is_int(vault_write(v, 1 << 20, "end", 3, &e), 0, "past the end");
	is_int(vault_size(v), (1 << 20) + 3, "  grows");
	is_int(vault_read(v, (1 << 20) - 2, b, 8, &e), 5, "  read to the end");
	is_mem(b, "\0\0end", 5, "  with zeros before");
	is_int(vault_read(v, 1 << 21, b, 8, &e), 0, "nothing past the end");
	is_int(vault_write(v, UINT64_MAX - 2, "end", 3, &e), -1, "too far");
	is_int(e.code, ERR_SIZE, "  is a matter of size");
	is_int(vault_truncate(v, UINT64_MAX, &e), -1, "nor too large");
	vault_close(v);
	ok(!vault_create(dir, "ends", key, sid, &e), "not twice");
	is_int(e.code, ERR_EXISTS, "  %s", e.why);
	ok(!vault_open(dir, "absent", key, sid, &e), "not one that is not");
	is_int(e.sys, ENOENT, "  %s", e.why);
	static const char *const bad[] = {
		"", "../x", "A", ".", "a/b", "a.b",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ok(!vault_create(dir, bad[i], key, sid, &e) &&
		   e.code == ERR_INVALID, "no id: '%s'", bad[i]);
}

static void check_record(void)
{
	struct err e = { 0 };
	uint8_t big[VAULT_RECORD_MAX + 1];
	struct vault *v = make("record");

	memset(big, 'r', sizeof big);
	is_int(vault_set_record(v, (struct bytes){ big, sizeof big }, &e), -1,
	       "a record that is too large");
	is_int(vault_set_record(v, (struct bytes){ big, sizeof big - 1 }, &e),
	       0, "the largest");
	is_int(vault_flush_header(v, &e), 0, "  is written");
	v = again(v);
	is_int(vault_record(v).n, VAULT_RECORD_MAX, "  and there again");
	set_record(v, "name=a.md");
	vault_close(v);
	v = vault_open(dir, "record", key, sid, &e);
	is_int(vault_record(v).n, VAULT_RECORD_MAX, "unwritten is not kept");
	vault_close(v);
	is_int(vault_unlink(dir, "record", &e), 0, "removed");
	ok(!vault_open(dir, "record", key, sid, &e), "  and gone");
}

/* --- what the disk sees --- */

static off_t blocks(const char *id)
{
	struct stat st;
	fstatat(dir, id, &st, 0);
	return st.st_blocks * 512;
}

static void check_disk(void)
{
	uint8_t text[3 * SECTOR];
	cleanup_buf struct buf raw = { 0 };
	struct err e = { 0 };
	struct stat st;

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)"top secret text "[i % 16];
	struct vault *v = make("disk");
	set_record(v, "top secret text record");
	vault_write(v, 0, text, sizeof text, &e);
	vault_write(v, sizeof text, text, 100, &e);
	is_int(vault_sync(v, &e), 0, "synced");
	is_int(file_read(dir, "disk", 1 << 20, &raw, &e), 0, "on disk");
	is_int(raw.len, DATA + 4 * SECTOR, "  two slots, four sectors");
	ok(!memmem(raw.data, raw.len, "secret", 6), "  no word of it");
	ok(memcmp(raw.data + DATA, raw.data + DATA + SECTOR, SECTOR) != 0,
	   "  equal sectors differ");
	fstatat(dir, "disk", &st, 0);
	is_int(st.st_mode & 07777, 0600, "  for its owner only");

	vault_truncate(v, 1 << 30, &e);
	vault_sync(v, &e);
	off_t before = blocks("disk");
	ok(before < 64 << 10, "a hole of 1 GiB takes no room");
	memset(text, 0, sizeof text);
	vault_write(v, 0, text, sizeof text, &e);
	vault_sync(v, &e);
	ok(blocks("disk") < before, "zeros give room back");
	vault_truncate(v, 10, &e);
	vault_sync(v, &e);
	fstatat(dir, "disk", &st, 0);
	is_int(st.st_size, DATA + SECTOR, "cut after the header is durable");
	vault_close(v);
}

/* --- crashes: the file's bytes put back as a crash could leave them --- */

static void put_file(const char *id, struct bytes b)
{
	unlinkat(dir, id, 0);
	int fd = openat(dir, id, O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || file_put(fd, b.p, b.n, NULL) < 0)
		abort();
	close(fd);
}

static uint8_t old_text[3 * SECTOR + 5], new_text[6 * SECTOR + 7];

enum seen { SEEN_NONE, SEEN_OLD, SEEN_NEW, SEEN_WRONG };

/* Which state the bytes open as.  A state is its length, record and text: the
 * new one is the old one with more after it. */
static enum seen look(struct bytes file)
{
	struct err e = { 0 };

	put_file("crash", file);
	struct vault *v = vault_open(dir, "crash", key, sid, &e);
	if (!v)
		return e.code == ERR_DECRYPT ? SEEN_NONE : SEEN_WRONG;
	enum seen s = SEEN_WRONG;
	if (has_record(v, "old") && holds(v, old_text, sizeof old_text))
		s = SEEN_OLD;
	else if (has_record(v, "new") && holds(v, new_text, sizeof new_text))
		s = SEEN_NEW;
	/* and what comes later does not show what was behind the length */
	uint64_t size = vault_size(v);
	uint8_t c = 1;
	if (vault_truncate(v, size + 3 * SECTOR, &e) < 0)
		s = SEEN_WRONG;
	for (uint64_t at = size; at < size + 3 * SECTOR; at++)
		if (vault_read(v, at, &c, 1, &e) != 1 || c)
			s = SEEN_WRONG;
	vault_close(v);
	return s;
}

static struct buf crash_file(void)
{
	struct buf raw = { 0 };
	struct vault *v = make("crash");

	for (size_t i = 0; i < sizeof new_text; i++)
		new_text[i] = (uint8_t)(1 + below(255));
	memcpy(old_text, new_text, sizeof old_text);
	set_record(v, "old");
	vault_write(v, 0, old_text, sizeof old_text, NULL);
	if (vault_sync(v, NULL) < 0)
		abort();
	set_record(v, "new");
	vault_write(v, 0, new_text, sizeof new_text, NULL);
	for (int i = 0; i < 3; i++) {	/* never over the durable one */
		set_record(v, "new");
		vault_flush_header(v, NULL);
	}
	vault_close(v);
	if (file_read(dir, "crash", 1 << 20, &raw, NULL) != 0)
		abort();
	return raw;
}

static void check_torn(struct bytes whole, uint8_t *raw)
{
	int wrong = 0;

	for (int slot = 0; slot < 2; slot++) {
		enum seen want = slot == 0 ? SEEN_NEW : SEEN_OLD;
		uint8_t keep[SECTOR], *at = raw + slot * SECTOR;
		memcpy(keep, at, SECTOR);
		for (size_t n = 0; n < SECTOR; n += 1 + n / 8) {
			memset(at + n, 0, SECTOR - n);
			wrong += look(whole) != want;
			memcpy(at, keep, SECTOR);
			at[n] ^= (uint8_t)(1 << n % 8);
			wrong += look(whole) != want;
			memcpy(at, keep, SECTOR);
		}
		is_int(wrong, 0, "slot %d torn or flipped: the other one",
		       slot);
	}
	raw[100] ^= 1;
	raw[SECTOR + 100] ^= 1;
	is_int(look(whole), SEEN_NONE, "both flipped: it does not open");
	raw[100] ^= 1;
	raw[SECTOR + 100] ^= 1;
}

static void check_cut(struct bytes whole)
{
	int wrong = 0;

	for (size_t n = 0; n < whole.n; n += n % SECTOR > 2 ? 997 : 1) {
		enum seen want = n >= DATA + 7 * SECTOR ? SEEN_NEW :
				 n >= DATA + 4 * SECTOR ? SEEN_OLD : SEEN_NONE;
		wrong += look((struct bytes){ whole.p, n }) != want;
	}
	is_int(wrong, 0, "cut anywhere: what is all there, or nothing");
}

static void check_foreign(struct bytes whole, uint8_t *raw)
{
	struct err e = { 0 };
	uint8_t junk[DATA + 2 * SECTOR], slot[SECTOR];
	static const uint8_t other[32] = "another key";

	memset(junk, 'j', sizeof junk);
	is_int(look((struct bytes){ junk, sizeof junk }), SEEN_NONE,
	       "a foreign file");
	put_file("other", whole);
	ok(!vault_open(dir, "other", key, sid, &e), "under another id");
	put_file("crash", whole);
	ok(!vault_open(dir, "crash", other, sid, &e), "another key");
	ok(!vault_open(dir, "crash", key, "BAAAAAAAAAAAAAAAAAAAAA", &e),
	   "another session");
	memcpy(slot, raw, SECTOR);
	memcpy(raw, raw + SECTOR, SECTOR);
	memcpy(raw + SECTOR, slot, SECTOR);
	is_int(look(whole), SEEN_NONE, "slots swapped");
	unlinkat(dir, "crash", 0);
	if (symlinkat("ends", dir, "crash") < 0 || mkfifoat(dir, "fifo", 0600))
		abort();
	ok(!vault_open(dir, "crash", key, sid, &e), "a symlink: %s", e.why);
	ok(!vault_open(dir, "fifo", key, sid, &e), "a pipe: %s", e.why);
}

/* A header that did not fit must not fit later, over other bytes. */
static void check_regrown(struct bytes whole)
{
	cleanup_buf struct buf raw = { 0 };
	struct err e = { 0 };

	put_file("crash", (struct bytes){ whole.p, DATA + 5 * SECTOR });
	struct vault *v = vault_open(dir, "crash", key, sid, &e);
	vault_write(v, vault_size(v), new_text, 9 * SECTOR / 2, &e);
	vault_close(v);	/* without a header */
	if (file_read(dir, "crash", 1 << 20, &raw, &e) != 0)
		abort();
	is_int(look(buf_bytes(&raw)), SEEN_OLD, "nor when the file has grown");
}

static void check_crashes(void)
{
	cleanup_buf struct buf raw = crash_file();
	struct bytes whole = buf_bytes(&raw);

	is_int(look(whole), SEEN_NEW, "killed: the header that was flushed");
	check_torn(whole, raw.data);
	check_cut(whole);
	check_regrown(whole);
	check_foreign(whole, raw.data);
}

/* --- a full disk --- */

/* A tmpfs of 1 MiB that only this process sees, or -1. */
static int small_disk(char path[64])
{
	snprintf(path, 64, "%s/disk-1m", root);
	if (unshare(CLONE_NEWNS) < 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -1;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mkdir(path, 0700) < 0 ||
	    mount("none", path, "tmpfs", 0, "size=1m") < 0)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void check_full(void)
{
	static uint8_t text[2 << 20];
	struct err e = { 0 };
	struct stat st;
	char path[64];

	int fd = small_disk(path);
	if (fd < 0) {
		printf("# no small disk here: full disk not tried\n");
		return;
	}
	memset(text, 't', sizeof text);
	struct vault *v = vault_create(fd, "full", key, sid, &e);
	is_int(vault_write(v, 0, text, 5000, &e), 0, "what fits");
	is_int(vault_write(v, 5000, text, sizeof text, &e), -1, "does not fit");
	is_int(e.code, ERR_FULL, "  %s", e.why);
	ok(holds(v, text, 5000), "  what fitted is there, no more");
	fstatat(fd, "full", &st, 0);
	ok(st.st_blocks * 512 <= DATA + 2 * SECTOR, "  the rest is freed");
	is_int(vault_write(v, 5000, text, 500 << 10, &e), 0, "then less");
	ok(holds(v, text, 5000 + (500 << 10)), "  is written");
	is_int(vault_sync(v, &e), 0, "  and synced");
	struct vault *w = vault_create(fd, "more", key, sid, &e);
	while (vault_write(w, vault_size(w), text, SECTOR, &e) == 0)
		;
	is_int(e.code, ERR_FULL, "now it is full");
	is_int(vault_truncate(v, 0, &e), 0, "which does not forbid to cut");
	is_int(vault_write(w, vault_size(w), text, 400 << 10, &e), 0,
	       "  and makes room");
	vault_close(v);
	vault_close(w);
	close(fd);
	umount2(path, MNT_DETACH);
}

/* Told, not asserted: the suite has no timed assertion. */
static void tell_speed(void)
{
	static uint8_t text[1 << 20];
	struct timespec t[3];
	struct vault *v = make("speed");

	prim_random(text, sizeof text);
	clock_gettime(CLOCK_MONOTONIC, &t[0]);
	for (uint64_t i = 0; i < 128; i++)
		vault_write(v, i << 20, text, sizeof text, NULL);
	clock_gettime(CLOCK_MONOTONIC, &t[1]);
	for (uint64_t i = 0; i < 128; i++)
		vault_read(v, i << 20, text, sizeof text, NULL);
	clock_gettime(CLOCK_MONOTONIC, &t[2]);
	for (int i = 0; i < 2; i++)
		printf("# %s: %.0f MB/s\n", i ? "read" : "write", 128 * 1.048576 /
		       ((double)(t[i + 1].tv_sec - t[i].tv_sec) +
			(double)(t[i + 1].tv_nsec - t[i].tv_nsec) / 1e9));
	vault_close(v);
}

int main(void)
{
	if (prim_init() < 0 || !mkdtemp(root))
		return 1;
	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check_model();
	check_ends();
	check_record();
	check_disk();
	check_crashes();
	tell_speed();
	check_full();
	close(dir);
	is_int(file_remove_tree(AT_FDCWD, root, NULL), 0, "cleaned up");
	return done_testing();
}
