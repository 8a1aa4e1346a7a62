/* SPDX-License-Identifier: MIT */
#include "runner/record/digest.h"

#include <errno.h>
#include <unistd.h>

#include "core/enc.h"
#include "core/hash.h"

int digest_fd(int fd, char hex[DIGEST_HEX], uint64_t *bytes, struct err *e)
{
	uint8_t block[65536], hash[HASH_SIZE];
	struct hash *h = hash_new();
	ssize_t n;
	if (!h)
		return err_set(e, ERR_MEMORY, "out of memory");
	*bytes = 0;
	while ((n = read(fd, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		hash_add(h, block, (size_t)n);
		*bytes += (uint64_t)n;
	}
	int sys = errno;
	hash_final(h, hash);
	hash_free(h);
	enc_hex(hex, hash, sizeof hash);
	errno = sys;
	return n < 0 ? err_sys(e, "cannot read it") : 0;
}
