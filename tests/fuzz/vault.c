/* SPDX-License-Identifier: MIT
 *
 * Fuzz: the headers of an encrypted file.  Input: triples of offset, offset,
 * xor over a good file's headers; a last odd byte cuts it.  It opens as one of
 * the two states it was in, or not at all. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "core/host/file.h"
#include "core/host/vault.h"

#define V dir, "v", (const uint8_t *)"a key of 32 bytes for the fuzzer", "id"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char root[] = "/dev/shm/airlox-fuzz-XXXXXX";
static int dir;
static struct buf good;

static void clean(void) { file_remove_tree(AT_FDCWD, root, NULL); }

static void make_good(void)
{
	assert(mkdtemp(root) && atexit(clean) == 0);
	dir = open(root, O_RDONLY | O_DIRECTORY);
	struct vault *v = vault_create(V, NULL);
	assert(v && vault_set_record(v, bytes_str("old"), NULL) == 0);
	assert(vault_write(v, 0, "old", 3, NULL) == 0);
	assert(vault_sync(v, NULL) == 0);
	assert(vault_set_record(v, bytes_str("new"), NULL) == 0);
	assert(vault_write(v, 5000, "new", 3, NULL) == 0);
	assert(vault_flush_header(v, NULL) == 0);
	vault_close(v);
	assert(file_read(dir, "v", 1 << 20, &good, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!dir)
		make_good();
	cleanup_buf struct buf file = { 0 };
	buf_add(&file, good.data, good.len);
	for (; n >= 3; p += 3, n -= 3)
		file.data[(p[0] << 8 | p[1]) % 8192] ^= p[2];
	if (n)
		file.len = file.len * *p / 256;
	assert(file_write(dir, "v", buf_bytes(&file), 0600, NULL) == 0);
	struct vault *v = vault_open(V, NULL);
	if (v) {
		char c[5003] = "";
		bool is_new = bytes_eq(vault_record(v), bytes_str("new"));
		ssize_t size = is_new ? 5003 : 3;
		assert(is_new || bytes_eq(vault_record(v), bytes_str("old")));
		assert(vault_read(v, 0, c, sizeof c, NULL) == size);
		assert(memcmp(c, "old", 3) == 0);
	}
	vault_close(v);
	return 0;
}
