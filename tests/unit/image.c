/* SPDX-License-Identifier: MIT
 *
 * Goal: a cleaned image has the same pixels, none of its metadata, and still
 * stands upright; a broken or boundless one is refused. */
#include <stdio.h>
#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

#include "core/image_parts.h"
#include "core/zip.h"
#include "tests/unit/tap.h"

#define W 37
#define H 23
#define SECRET "SECRET 52.5200N 13.4050E"

static uint8_t rgb[W * H * 3];

/* A TIFF block, little-endian: a maker's name, then orientation 6. */
static const uint8_t exif[] = {
	'I', 'I', 42, 0, 8, 0, 0, 0, 2, 0,
	0x0f, 1, 2, 0, 25, 0, 0, 0, 38, 0, 0, 0,
	0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0,
	0, 0, 0, 0,
	'S', 'E', 'C', 'R', 'E', 'T', ' ', '5', '2', '.', '5', '2', '0', '0',
	'N', ' ', '1', '3', '.', '4', '0', '5', '0', 'E', 0,
};

static bool has(const struct buf *b, const void *what, size_t n)
{
	return memmem(b->data, b->len, what, n) != NULL;
}

/* --- images with something to hide --- */

static void png_to_buf(png_structp png, png_bytep p, size_t n)
{
	buf_add(png_get_io_ptr(png), p, n);
}

static void make_png(struct buf *out, bool interlaced)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL,
						  NULL, NULL);
	png_infop info = png_create_info_struct(png);
	png_text text = { .compression = PNG_TEXT_COMPRESSION_NONE,
			  .key = (char *)"Comment", .text = (char *)SECRET };

	png_set_write_fn(png, out, png_to_buf, NULL);
	png_set_IHDR(png, info, W, H, 8, PNG_COLOR_TYPE_RGB,
		     interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_gAMA(png, info, 0.45455);
	png_set_text(png, info, &text, 1);
	png_set_eXIf_1(png, info, sizeof exif, (png_bytep)exif);
	png_write_info(png, info);
	int passes = png_set_interlace_handling(png);
	for (int i = 0; i < passes; i++)
		for (size_t y = 0; y < H; y++)
			png_write_row(png, rgb + y * W * 3);
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	buf_add_str(out, SECRET);
}

static void make_jpeg(struct buf *out, bool progressive)
{
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr errors;
	unsigned char *mem = NULL;
	unsigned long n = 0;
	cleanup_buf struct buf app1 = { 0 };

	buf_add(&app1, "Exif\0\0", 6);
	buf_add(&app1, exif, sizeof exif);
	j.err = jpeg_std_error(&errors);
	jpeg_create_compress(&j);
	jpeg_mem_dest(&j, &mem, &n);
	j.image_width = W;
	j.image_height = H;
	j.input_components = 3;
	j.in_color_space = JCS_RGB;
	jpeg_set_defaults(&j);
	j.restart_interval = 2;
	if (progressive)
		jpeg_simple_progression(&j);
	jpeg_start_compress(&j, TRUE);
	jpeg_write_marker(&j, JPEG_APP0 + 1, app1.data, (unsigned)app1.len);
	jpeg_write_marker(&j, JPEG_APP0 + 2, (void *)"ICC_PROFILE\0\1\1x",
			  15);
	jpeg_write_marker(&j, JPEG_APP0 + 2, (void *)SECRET, 24);
	jpeg_write_marker(&j, JPEG_APP0 + 13, (void *)SECRET, 24);
	jpeg_write_marker(&j, JPEG_COM, (void *)SECRET, 24);
	while (j.next_scanline < H) {
		uint8_t *row = rgb + j.next_scanline * W * 3;
		jpeg_write_scanlines(&j, &row, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	buf_add(out, mem, n);
	free(mem);
	buf_add_str(out, SECRET);
}

static void riff_chunk(struct buf *b, const char *tag, struct bytes data)
{
	const uint8_t n[4] = { (uint8_t)data.n, (uint8_t)(data.n >> 8),
			       (uint8_t)(data.n >> 16), 0 };
	buf_add(b, tag, 4);
	buf_add(b, n, 4);
	buf_add(b, data.p, data.n);
	if (data.n % 2)
		buf_add_byte(b, 0);
}

/* The VP8L chunk that libwebp makes of our pixels. */
static void add_pixels(struct buf *b)
{
	uint8_t *file = NULL;
	size_t n = WebPEncodeLosslessRGB(rgb, W, H, W * 3, &file);

	buf_add(b, file + 12, n - 12);
	WebPFree(file);
}

static void make_webp(struct buf *out, bool animated)
{
	cleanup_buf struct buf body = { 0 }, frame = { 0 };
	uint8_t vp8x[10] = { 0x0c, 0, 0, 0, W - 1, 0, 0, H - 1, 0, 0 };
	const uint8_t head[16] = { [6] = W - 1, [9] = H - 1, [12] = 100 };

	vp8x[0] |= animated ? 0x02 : 0;
	buf_add_str(&body, "WEBP");
	riff_chunk(&body, "VP8X", (struct bytes){ vp8x, 10 });
	if (animated) {
		riff_chunk(&body, "ANIM", (struct bytes){ head, 6 });
		buf_add(&frame, head, 16);
		add_pixels(&frame);
		riff_chunk(&frame, "hide", bytes_str(SECRET));
		riff_chunk(&body, "ANMF", buf_bytes(&frame));
		riff_chunk(&body, "ANMF", buf_bytes(&frame));
	} else {
		add_pixels(&body);
	}
	riff_chunk(&body, "EXIF", (struct bytes){ exif, sizeof exif });
	riff_chunk(&body, "XMP ", bytes_str(SECRET));
	riff_chunk(&body, "hide", bytes_str(SECRET));
	riff_chunk(out, "RIFF", buf_bytes(&body));
	buf_add_str(out, SECRET);
}

/* --- what must hold for each of them --- */

typedef int decode_fn(struct bytes, uint32_t *, struct err *);

static int cuts_refused(const struct buf *b, const char *mime)
{
	int refused = 0;

	for (size_t n = 0; n < b->len; n++)
		refused += image_check((struct bytes){ b->data, n }, mime,
				       NULL) != 0;
	return refused;
}

static void check_cleaned(const char *what, const char *mime,
			  const struct buf *b, decode_fn *decode)
{
	static const uint8_t upright[] = { 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6 };
	cleanup_buf struct buf clean = { 0 }, again = { 0 };
	cleanup_buf struct buf sent = { 0 };
	uint32_t before = 0, after = 0;
	struct err e = { 0 };

	is_int(image_check(buf_bytes(b), mime, &e), 0, "%s: good %s", what,
	       e.why);
	ok(has(b, "SECRET", 6), "it has a secret");
	is_int(image_clean(buf_bytes(b), mime, &clean, &e), 0, "cleaned %s",
	       e.why);
	ok(!has(&clean, "SECRET", 6), "the secret is gone");
	ok(has(&clean, upright, sizeof upright), "orientation 6 is there");
	is_int(image_check(buf_bytes(&clean), mime, &e), 0, "still good %s",
	       e.why);
	decode(buf_bytes(b), &before, &e);
	decode(buf_bytes(&clean), &after, &e);
	ok(before && before == after, "pixels: the same before and after");
	is_int(image_prepare(buf_bytes(b), mime, &sent, &e), 0, "to send %s",
	       e.why);
	ok(bytes_eq(buf_bytes(&sent), buf_bytes(&clean)), "that is sent");
	is_int(image_clean(buf_bytes(&clean), mime, &again, &e), 0, "again");
	ok(bytes_eq(buf_bytes(&clean), buf_bytes(&again)),
	   "changes nothing more");
	is_int(cuts_refused(&clean, mime), clean.len,
	       "cut short anywhere it is refused");
}

static void check_formats(void)
{
	for (int i = 0; i < 2; i++) {
		cleanup_buf struct buf png = { 0 }, jpeg = { 0 }, webp = { 0 };
		make_png(&png, i);
		check_cleaned(i ? "interlaced PNG" : "PNG", "image/png", &png,
			      image_png_decode);
		make_jpeg(&jpeg, i);
		check_cleaned(i ? "progressive JPEG" : "JPEG", "image/jpeg",
			      &jpeg, image_jpeg_decode);
		cleanup_buf struct buf clean = { 0 };
		image_clean(buf_bytes(&jpeg), "image/jpeg", &clean, NULL);
		ok(has(&clean, "ICC_PROFILE", 11), "its colours stay");
		make_webp(&webp, i);
		check_cleaned(i ? "animated WebP" : "WebP", "image/webp",
			      &webp, image_webp_decode);
	}
}

/* libjpeg makes something of it; of what is left when it is cleaned, not. */
static void check_damaged(void)
{
	cleanup_buf struct buf out = { 0 };
	uint8_t file[2048];
	struct err e = { 0 };
	FILE *f = fopen("tests/fuzz/seeds/image/damaged-progressive.jpg", "rb");
	size_t n = f ? fread(file, 1, sizeof file, f) : 0;
	if (f)
		fclose(f);
	ok(n > 100 && n < sizeof file, "a damaged JPEG of %zu bytes", n);
	is_int(image_prepare((struct bytes){ file, n }, "image/jpeg", &out,
			     &e), -1, "is not sent: %s", e.why);
	is_int(e.code, ERR_CONTENT, "for its content");
}

static void check_limits(void)
{
	is_int(image_fits(16384, 2048, NULL), 0, "16384 x 2048 fits");
	is_int(image_fits(16384, 2049, NULL), -1, "one row more does not");
	is_int(image_fits(16385, 1, NULL), -1, "nor one column");
	is_int(image_fits(1, 0, NULL), -1, "nor nothing");

	/* The header alone claims 20,000 columns. */
	cleanup_buf struct buf b = { 0 };
	struct err e = { 0 };
	make_png(&b, false);
	const uint8_t wide[4] = { 0, 0, 0x4e, 0x20 };
	memcpy(b.data + 16, wide, 4);
	uint32_t crc = zip_crc32(0, b.data + 12, 17);
	b.data[29] = (uint8_t)(crc >> 24);
	b.data[30] = (uint8_t)(crc >> 16);
	b.data[31] = (uint8_t)(crc >> 8);
	b.data[32] = (uint8_t)crc;
	is_int(image_check(buf_bytes(&b), "image/png", &e), -1,
	       "20,000 columns: %s", e.why);
	is_int(image_check(buf_bytes(&b), "image/jpeg", &e), -1,
	       "a PNG is no JPEG: %s", e.why);
	is_int(e.code, ERR_CONTENT, "for its content");
}

static void check_orientation(void)
{
	uint8_t made[IMAGE_EXIF_BYTES];
	unsigned bad = 0;

	for (unsigned o = 1; o <= 8; o++) {
		image_exif_make(made, o);
		bad += image_exif_orientation((struct bytes){
			made, sizeof made }) != o;
	}
	is_int(bad, 0, "each orientation is made and read");
	is_int(image_exif_orientation((struct bytes){ exif, sizeof exif }), 6,
	       "little-endian");
	for (size_t n = 0; n < 26; n++)
		bad += image_exif_orientation((struct bytes){ exif, n }) != 1;
	is_int(bad, 0, "cut short it is 1");
	image_exif_make(made, 9);
	is_int(image_exif_orientation((struct bytes){ made, sizeof made }), 1,
	       "there is no ninth");
}

int main(void)
{
	for (size_t i = 0; i < sizeof rgb; i++)
		rgb[i] = (uint8_t)(i * 7 + i / 37 * 11);
	check_formats();
	check_damaged();
	check_limits();
	check_orientation();
	return done_testing();
}
