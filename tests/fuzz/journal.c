/* SPDX-License-Identifier: MIT
 *
 * Fuzz: the records of a journal.  Input: triples of offset, offset, xor over
 * a good file; a last odd byte cuts it.  What opens is the first few of the
 * good records, and the rest is cut for good. */
#include <assert.h>
#include <fcntl.h>

#include "core/host/file.h"
#include "core/host/journal.h"

#define J dir, "j", (const uint8_t *)"a key of 32 bytes for the fuzzer", "id"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char root[] = "/dev/shm/airlox-fuzz-XXXXXX";
static int dir;
static struct buf good;

static void clean(void) { file_remove_tree(AT_FDCWD, root, NULL); }

static int each(void *arg, uint64_t at, struct bytes record, struct err *e)
{
	size_t *n = arg;
	assert(record.n == *n % 7 && at >= 17 && e);
	for (size_t i = 0; i < record.n; i++)
		assert(record.p[i] == *n);
	return *n += 1, 0;
}

static void make_good(void)
{
	assert(mkdtemp(root) && atexit(clean) == 0);
	dir = open(root, O_RDONLY | O_DIRECTORY);
	struct journal *j = journal_open(J, NULL, NULL, NULL, NULL);
	for (uint8_t i = 0; i < 20; i++) {
		struct bytes text = { (uint8_t[6]){ i, i, i, i, i, i }, i % 7 };
		assert(journal_append(j, text, NULL, NULL) == 0);
	}
	journal_close(j);
	assert(file_read(dir, "j", 1 << 20, &good, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	cleanup_buf struct buf file = { 0 };
	size_t seen[2] = { 0 };
	if (!dir)
		make_good();
	buf_add(&file, good.data, good.len);
	for (; n >= 3; p += 3, n -= 3)
		file.data[(p[0] << 8 | p[1]) % file.len] ^= p[2];
	if (n)
		file.len = file.len * *p / 256;
	assert(file_write(dir, "j", buf_bytes(&file), 0600, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		uint64_t cut = 0;
		struct err e;
		struct journal *j = journal_open(J, each, &seen[i], &cut, &e);
		assert(!i || !j || (seen[1] == seen[0] && cut == 0));
		journal_close(j);
	}
	return 0;
}
