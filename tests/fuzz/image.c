/* SPDX-License-Identifier: MIT
 *
 * Fuzz: an image, cleaned, and decoded before and after.  What is sent decodes,
 * and cleaning it once more changes nothing. */
#include <assert.h>
#include <string.h>

#include "core/image_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

typedef int decode_fn(struct bytes, uint32_t *, struct err *);

static void check(struct bytes file, const char *mime, decode_fn *decode)
{
	cleanup_buf struct buf clean = { 0 }, again = { 0 }, sent = { 0 };
	uint32_t pixels = 0;

	int r = image_clean(file, mime, &clean, NULL);
	if (image_prepare(file, mime, &sent, NULL) == 0) {
		assert(r == 0 && bytes_eq(buf_bytes(&clean),
					  buf_bytes(&sent)));
		assert(decode(buf_bytes(&sent), &pixels, NULL) == 0);
	}
	if (r == 0) {
		assert(image_clean(buf_bytes(&clean), mime, &again,
				   NULL) == 0);
		assert(bytes_eq(buf_bytes(&clean), buf_bytes(&again)));
	}
}

/* No time for large images here: their size is in the header. */
static bool is_small(const uint8_t *p, size_t n)
{
	return n < 24 || memcmp(p, "\x89PNG", 4) ||
	       (load_u32be(p + 16) < 512 && load_u32be(p + 20) < 512);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct bytes file = { p, n };

	if (n < 4 || !is_small(p, n))
		return 0;
	if (p[0] == 0x89)
		check(file, "image/png", image_png_decode);
	else if (p[0] == 0xff)
		check(file, "image/jpeg", image_jpeg_decode);
	else
		check(file, "image/webp", image_webp_decode);
	image_exif_orientation(file);
	return 0;
}
