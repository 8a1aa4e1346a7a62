/* SPDX-License-Identifier: MIT
 *
 * PNG (third edition): a signature, then chunks of length, type, data, CRC. */
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "core/image_parts.h"
#include "core/zip.h"

#define SIGNATURE_BYTES 8
#define CHUNK_BYTES 12		/* around the data */
#define IHDR_BYTES 13
#define ANCILLARY 0x20		/* this bit of the type's first byte */
#define PIECE_BYTES (8u << 20)	/* one ancillary chunk in memory */

/* What pixels and their colours need; the order of the file is kept. */
static const char kept[][5] = {
	"IHDR", "PLTE", "tRNS", "IDAT", "IEND", "gAMA", "cHRM", "sRGB",
	"iCCP", "sBIT", "cICP", "acTL", "fcTL", "fdAT",
};

struct chunk {
	struct bytes all, data;
	const uint8_t *type;
};

static bool is_type(const struct chunk *c, const char *type)
{
	return memcmp(c->type, type, 4) == 0;
}

static bool is_kept(const struct chunk *c)
{
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (is_type(c, kept[i]))
			return true;
	return false;
}

static int chunk_next(struct bytes file, size_t *at, struct chunk *c,
		      struct err *e)
{
	size_t left = file.n - *at;

	if (left < CHUNK_BYTES ||
	    load_u32be(file.p + *at) > left - CHUNK_BYTES)
		return err_set(e, ERR_CONTENT, "the PNG is cut short");
	const uint8_t *p = file.p + *at;
	size_t n = load_u32be(p);
	*c = (struct chunk){
		{ p, CHUNK_BYTES + n }, { p + 8, n }, p + 4,
	};
	if (zip_crc32(0, c->type, 4 + n) != load_u32be(p + 8 + n))
		return err_set(e, ERR_CONTENT,
			       "the PNG is damaged (checksum of a chunk)");
	if (!(c->type[0] & ANCILLARY) && !is_kept(c))
		return err_set(e, ERR_CONTENT,
			       "the PNG has a chunk that is not known");
	*at += c->all.n;
	return 0;
}

/* Walks to IEND.  With out, the chunks that are kept go there. */
static int walk(struct bytes file, unsigned *orientation, struct buf *out,
		struct err *e)
{
	size_t at = SIGNATURE_BYTES;
	struct chunk c = { 0 };

	for (bool first = true; first || !is_type(&c, "IEND"); first = false) {
		if (chunk_next(file, &at, &c, e))
			return -1;
		if (is_type(&c, "IHDR") != first ||
		    (first && c.data.n != IHDR_BYTES))
			return err_set(e, ERR_CONTENT,
				       "the PNG's header is out of place");
		if (!out && is_type(&c, "eXIf"))
			*orientation = image_exif_orientation(c.data);
		if (!out || !is_kept(&c))
			continue;
		buf_add(out, c.all.p, c.all.n);
		if (!first || *orientation == 1)
			continue;
		uint8_t exif[4 + IMAGE_EXIF_BYTES] = "eXIf";
		image_exif_make(exif + 4, *orientation);
		buf_add_u32be(out, IMAGE_EXIF_BYTES);
		buf_add(out, exif, sizeof exif);
		buf_add_u32be(out, zip_crc32(0, exif, sizeof exif));
	}
	return 0;
}

int image_png_clean(struct bytes file, struct buf *out, struct err *e)
{
	unsigned orientation = 1;

	if (file.n < SIGNATURE_BYTES)
		return err_set(e, ERR_CONTENT, "the PNG is cut short");
	if (walk(file, &orientation, NULL, e))
		return -1;
	buf_add(out, file.p, SIGNATURE_BYTES);
	return walk(file, &orientation, out, e);
}

/* --- libpng --- */

struct decoder {
	struct bytes left;
	struct err *e;
	uint8_t *row;
};

static void on_error(png_structp png, png_const_charp why)
{
	struct decoder *d = png_get_error_ptr(png);

	err_set(d->e, ERR_CONTENT, "the PNG is broken: %s", why);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
	(void)png;
	(void)why;
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
	struct decoder *d = png_get_io_ptr(png);

	if (n > d->left.n)
		png_error(png, "it is cut short");
	memcpy(to, d->left.p, n);
	d->left.p += n;
	d->left.n -= n;
}

/* Rows one by one; an interlaced image gives each as often as it passes. */
static int read_rows(png_structp png, png_infop info, struct decoder *d,
		     uint32_t *pixels)
{
	png_read_info(png, info);
	uint32_t height = png_get_image_height(png, info);
	if (image_fits(png_get_image_width(png, info), height, d->e))
		return -1;
	if (pixels)
		png_set_expand(png);
	int passes = png_set_interlace_handling(png);
	png_read_update_info(png, info);
	size_t n = png_get_rowbytes(png, info);
	d->row = calloc(1, n);
	if (!d->row)
		return err_set(d->e, ERR_MEMORY, "out of memory");
	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < height; y++) {
			png_read_row(png, d->row, NULL);
			if (pixels)
				*pixels = zip_crc32(*pixels, d->row, n);
		}
	png_read_end(png, NULL);
	return 0;
}

int image_png_decode(struct bytes file, uint32_t *pixels, struct err *e)
{
	struct decoder d = { file, e, NULL };
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d,
						 on_error, on_warning);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	volatile int r = -1;

	if (!info) {
		png_destroy_read_struct(&png, NULL, NULL);
		return err_set(e, ERR_MEMORY, "out of memory");
	}
	if (setjmp(png_jmpbuf(png)) == 0) {
		png_set_read_fn(png, &d, on_read);
		png_set_user_limits(png, IMAGE_MAX_SIDE, IMAGE_MAX_SIDE);
		png_set_chunk_malloc_max(png, PIECE_BYTES);
		/* Only what makes pixels (-1): for the rest libpng would
		 * allocate what a length says, before it looks. */
		png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER,
					    NULL, -1);
		r = read_rows(png, info, &d, pixels);
	}
	png_destroy_read_struct(&png, &info, NULL);
	free(d.row);
	return r;
}
