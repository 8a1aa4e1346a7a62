/* SPDX-License-Identifier: MIT
 *
 * Fuzz: an archive of a peer, its records and its data. */
#include <assert.h>

#include "core/clear.h"
#include "core/name.h"
#include "core/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int count(void *arg, const void *p, size_t n)
{
	(void)p;
	*(uint64_t *)arg += n;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct bytes file = { p, n };
	struct zip_source src = zip_source_bytes(&file);
	struct zip_list list;
	struct err e = { 0 };

	if (zip_check(&src, &list, &e)) {
		assert(e.code == ERR_INVALID && !list.v && !list.n);
		return 0;
	}
	assert(list.n <= ZIP_MAX_ENTRIES && list.total <= ZIP_MAX_TOTAL_BYTES);
	for (size_t i = 0; i < list.n; i++) {
		const struct zip_entry *en = &list.v[i];
		uint64_t got = 0;
		struct zip_sink sink = { count, &got };

		assert(name_check_entry(bytes_str(en->path), NULL) == 0);
		assert(en->data_offset + en->compressed_size <= n);
		int r = zip_extract_entry(&src, en, sink, &e);
		assert(got <= en->size);
		assert(r || en->is_dir || got == en->size);
	}
	zip_list_free(&list);
	return 0;
}
