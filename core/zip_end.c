/* SPDX-License-Identifier: MIT
 *
 * Where an archive's directory is: bytes may stand before the archive and
 * after it, so the last end record that makes sense counts. */
#include "core/zip_parts.h"

#define SCAN_BYTES ((size_t)65536)
#define MAX_ENDS 64		/* false end records looked at */

static bool has_central_at(const struct zip_source *src, uint64_t at)
{
	uint8_t sig[4];

	return zip_read(src, at, sig, 4, NULL) == 0 &&
	       zip_u32(sig) == ZIP_CENTRAL_SIG;
}

/* Offsets count from the archive's first byte, which is not the file's when
 * something stands in front of it; the directory ends where `end` is. */
static bool place(const struct zip_source *src, uint64_t offset, uint64_t end,
		  struct zip_directory *d)
{
	if (offset > end || d->size > end - offset || d->size > src->size)
		return false;
	d->base = end - d->size - offset;
	d->at = d->base + offset;
	if (d->n == 0 || has_central_at(src, d->at))
		return true;
	d->base = 0;
	d->at = offset;
	return has_central_at(src, d->at);
}

static bool read_end64(const struct zip_source *src, uint64_t end,
		       struct zip_directory *d)
{
	uint8_t b[ZIP_END64_BYTES + ZIP_LOCATOR_BYTES];

	if (end < sizeof b || zip_read(src, end - sizeof b, b, sizeof b, NULL))
		return false;
	if (zip_u32(b) != ZIP_END64_SIG ||
	    zip_u32(b + ZIP_END64_BYTES) != ZIP_LOCATOR_SIG ||
	    zip_u32(b + 16) || zip_u32(b + 20) ||
	    zip_u64(b + 24) != zip_u64(b + 32))
		return false;
	d->n = zip_u64(b + 32);
	d->size = zip_u64(b + 40);
	return place(src, zip_u64(b + 48), end - sizeof b, d);
}

static bool read_end(const struct zip_source *src, uint64_t at,
		     const uint8_t b[ZIP_END_BYTES], struct zip_directory *d)
{
	uint32_t offset = zip_u32(b + 16);

	/* a comment that does not fit is another archive's, cut short */
	if (zip_u16(b + 20) > src->size - at - ZIP_END_BYTES)
		return false;
	d->n = zip_u16(b + 10);
	d->size = zip_u32(b + 12);
	if (d->n == UINT16_MAX || d->size == UINT32_MAX ||
	    offset == UINT32_MAX)
		return read_end64(src, at, d);
	return !zip_u16(b + 4) && !zip_u16(b + 6) && zip_u16(b + 8) == d->n &&
	       place(src, offset, at, d);
}

/* One window: the last end record that begins in [from, from + SCAN_BYTES).
 * Returns 1 when found, 0 when not, -1 on error. */
static int scan_window(const struct zip_source *src, uint64_t from,
		       uint8_t *window, int *left, struct zip_directory *d,
		       struct err *e)
{
	size_t n = SCAN_BYTES + ZIP_END_BYTES - 1;

	if (n > src->size - from)
		n = (size_t)(src->size - from);
	if (zip_read(src, from, window, n, e))
		return -1;
	if (n < ZIP_END_BYTES)
		return 0;
	for (size_t i = n - ZIP_END_BYTES + 1; i-- > 0;) {
		if (window[i] != 'P' || zip_u32(window + i) != ZIP_END_SIG)
			continue;
		if (read_end(src, from + i, window + i, d))
			return 1;
		if (--*left == 0)
			return 0;
	}
	return 0;
}

int zip_end_find(const struct zip_source *src, struct zip_directory *d,
		    struct err *e)
{
	cleanup_free uint8_t *window = malloc(SCAN_BYTES + ZIP_END_BYTES);
	uint64_t from = src->size;
	int found = 0, left = MAX_ENDS;

	if (!window)
		return err_set(e, ERR_MEMORY, "out of memory");
	while (!found && from > 0 && left > 0) {
		from = from > SCAN_BYTES ? from - SCAN_BYTES : 0;
		found = scan_window(src, from, window, &left, d, e);
	}
	if (found == 0)
		return err_set(e, ERR_INVALID, "this is not a zip archive");
	return found < 0 ? -1 : 0;
}
