/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/image_parts.h"
#include "core/sniff.h"

static const struct format {
	const char *mime;
	int (*clean)(struct bytes file, struct buf *out, struct err *e);
	int (*decode)(struct bytes file, uint32_t *pixels, struct err *e);
} formats[] = {
	{ "image/png", image_png_clean, image_png_decode },
	{ "image/jpeg", image_jpeg_clean, image_jpeg_decode },
	{ "image/webp", image_webp_clean, image_webp_decode },
};

static const struct format *format_of(struct bytes file, const char *mime,
				      struct err *e)
{
	if (sniff_magic(mime, file.p, file.n, e))
		return NULL;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(mime, formats[i].mime) == 0)
			return &formats[i];
	return NULL;	/* sniff_magic knows the same three */
}

int image_check(struct bytes file, const char *mime, struct err *e)
{
	const struct format *f = format_of(file, mime, e);

	return f ? f->decode(file, NULL, e) : -1;
}

int image_clean(struct bytes file, const char *mime, struct buf *out,
		struct err *e)
{
	const struct format *f = format_of(file, mime, e);

	if (!f || f->clean(file, out, e))
		return -1;
	return out->failed ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

/* A damaged file may be read by a library in a way that its container does
 * not say: what it shows then must not change either. */
int image_prepare(struct bytes file, const char *mime, struct buf *out,
		  struct err *e)
{
	const struct format *f = format_of(file, mime, e);
	uint32_t before = 0, after = 0;

	if (!f || f->decode(file, &before, e) || image_clean(file, mime, out, e))
		return -1;
	if (f->decode(buf_bytes(out), &after, e) || before != after)
		return err_set(e, ERR_CONTENT, "the image is damaged and "
			       "cannot be cleaned without changing it");
	return 0;
}

int image_fits(uint64_t width, uint64_t height, struct err *e)
{
	if (width == 0 || height == 0)
		return err_set(e, ERR_CONTENT, "the image has no pixels");
	if (width > IMAGE_MAX_SIDE || height > IMAGE_MAX_SIDE)
		return err_set(e, ERR_SIZE,
			       "the image is over %d pixels a side",
			       IMAGE_MAX_SIDE);
	if (width * height > IMAGE_MAX_DECODED / 4)
		return err_set(e, ERR_SIZE,
			       "the image is over 128 MiB when decoded");
	return 0;
}

/* --- EXIF: a TIFF file whose first directory may hold tag 0x0112 --- */

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3
#define ENTRY_BYTES 12

static unsigned tiff_u16(const uint8_t *p, bool little)
{
	return little ? (unsigned)(p[1] << 8 | p[0])
		      : (unsigned)(p[0] << 8 | p[1]);
}

static uint32_t tiff_u32(const uint8_t *p, bool little)
{
	return little ? (uint32_t)tiff_u16(p + 2, true) << 16 |
				tiff_u16(p, true)
		      : load_u32be(p);
}

unsigned image_exif_orientation(struct bytes tiff)
{
	if (tiff.n < 8 || (memcmp(tiff.p, "II", 2) && memcmp(tiff.p, "MM", 2)))
		return 1;
	bool little = tiff.p[0] == 'I';
	uint32_t at = tiff_u32(tiff.p + 4, little);
	if (tiff_u16(tiff.p + 2, little) != 42 || at > tiff.n - 2)
		return 1;
	unsigned n = tiff_u16(tiff.p + at, little);
	const uint8_t *p = tiff.p + at + 2, *end = tiff.p + tiff.n;
	for (; n > 0 && end - p >= ENTRY_BYTES; n--, p += ENTRY_BYTES) {
		if (tiff_u16(p, little) != TAG_ORIENTATION)
			continue;
		unsigned o = tiff_u16(p + 8, little);
		return tiff_u16(p + 2, little) == TYPE_SHORT && o >= 1 &&
		       o <= 8 ? o : 1;
	}
	return 1;
}

void image_exif_make(uint8_t out[IMAGE_EXIF_BYTES], unsigned orientation)
{
	static const uint8_t block[IMAGE_EXIF_BYTES] = {
		'M', 'M', 0, 42, 0, 0, 0, 8,	/* directory at 8 */
		0, 1,				/* of one entry: */
		1, 0x12, 0, TYPE_SHORT, 0, 0, 0, 1,
		0, 1, 0, 0,			/* its value */
		0, 0, 0, 0,			/* no other directory */
	};
	memcpy(out, block, sizeof block);
	out[19] = (uint8_t)orientation;
}
