/* SPDX-License-Identifier: MIT
 *
 * Fuzz: the header of a draft, as it comes back from the disk. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/out_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct outgoing f = { 0 };
	struct stat st = { 0 };
	struct err e = { 0 };
	cleanup_buf struct buf path = { 0 };
	if (out_decode(&f, (struct bytes){ p, n }, &path, &st, &e) == 0) {
		assert(f.state <= OUT_FAILED && f.ref_n <= ITEM_REFS_MAX);
		assert(strlen(f.id) <= ITEM_ID);
		assert((st.st_mode & ~07777u) == 0);
		assert(st.st_mtim.tv_nsec < 1000000000);
	}
	out_drop_xattrs(&f);
	free(f.refs);
	return 0;
}
