/* SPDX-License-Identifier: MIT
 *
 * JPEG (ITU-T T.81): segments of FF, marker, length, data; behind a scan's
 * header, coded bytes up to the next marker. */
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
#include <setjmp.h>
#include <string.h>

#include "core/image_parts.h"

enum marker {
	M_TEM = 0x01, M_SOF0 = 0xc0, M_DHT = 0xc4, M_DAC = 0xcc,
	M_SOF15 = 0xcf, M_RST0 = 0xd0, M_RST7 = 0xd7, M_SOI = 0xd8,
	M_EOI = 0xd9, M_SOS = 0xda, M_DQT = 0xdb, M_DNL = 0xdc, M_DRI = 0xdd,
	M_APP0 = 0xe0, M_APP1 = 0xe1, M_APP2 = 0xe2, M_APP14 = 0xee,
};

#define JFIF_BYTES 14		/* without its thumbnail */
#define ADOBE_BYTES 12

struct segment {
	uint8_t marker;
	struct bytes data;	/* behind the length */
};

static bool starts(struct bytes s, const char *tag, size_t n)
{
	return s.n >= n && memcmp(s.p, tag, n) == 0;
}

static bool is_exif(const struct segment *s)
{
	return s->marker == M_APP1 && starts(s->data, "Exif\0\0", 6);
}

static bool is_jfif(const struct segment *s)
{
	return s->marker == M_APP0 && starts(s->data, "JFIF\0", 5) &&
	       s->data.n >= JFIF_BYTES;
}

/* Tables, frames and scans; of the rest only colour. */
static bool is_kept(const struct segment *s)
{
	if (s->marker == M_APP2)
		return starts(s->data, "ICC_PROFILE\0", 12);
	if (s->marker == M_APP14)
		return starts(s->data, "Adobe", 5) && s->data.n >= ADOBE_BYTES;
	return (s->marker >= M_SOF0 && s->marker <= M_SOF15) ||
	       (s->marker >= M_SOS && s->marker <= M_DRI);
}

static int cut_short(struct err *e)
{
	return err_set(e, ERR_CONTENT, "the JPEG is cut short");
}

/* The next segment, at or after *at: bytes between segments and repeated FF
 * are nobody's.  EOI has no data. */
static int segment_next(struct bytes file, size_t *at, struct segment *s,
			struct err *e)
{
	size_t i = *at;

	while (file.n - i >= 2 &&
	       (file.p[i] != 0xff || file.p[i + 1] <= M_TEM ||
		file.p[i + 1] == 0xff ||
		(file.p[i + 1] >= M_RST0 && file.p[i + 1] <= M_SOI)))
		i++;
	if (file.n - i < 2)
		return cut_short(e);
	*s = (struct segment){ file.p[i + 1], { file.p + i + 2, 0 } };
	i += 2;
	if (s->marker != M_EOI) {
		size_t n = file.n - i < 2 ? 0 : (size_t)file.p[i] << 8 |
						file.p[i + 1];
		if (n < 2 || n > file.n - i)
			return cut_short(e);
		s->data = (struct bytes){ file.p + i + 2, n - 2 };
		i += n;
	}
	*at = i;
	return 0;
}

/* Where the coded bytes that begin at `at` end. */
static size_t scan_end(struct bytes file, size_t at)
{
	while (file.n - at >= 2) {
		const uint8_t *ff = memchr(file.p + at, 0xff, file.n - at - 1);
		if (!ff)
			break;
		at = (size_t)(ff - file.p);
		if (ff[1] != 0 && !(ff[1] >= M_RST0 && ff[1] <= M_RST7))
			return at;
		at += 2;
	}
	return file.n;
}

static void segment_put(struct buf *out, uint8_t marker, struct bytes data)
{
	size_t n = data.n + 2;
	const uint8_t head[4] = { 0xff, marker, (uint8_t)(n >> 8),
				  (uint8_t)n };
	buf_add(out, head, sizeof head);
	buf_add(out, data.p, data.n);
}

/* What comes first in a file: JFIF without its thumbnail, the orientation. */
static int put_head(struct bytes file, struct buf *out, struct err *e)
{
	struct segment s = { 0 };
	struct bytes jfif = { NULL, 0 };
	unsigned orientation = 1;

	for (size_t at = 2; s.marker != M_SOS && s.marker != M_EOI;) {
		if (segment_next(file, &at, &s, e))
			return -1;
		if (!jfif.p && is_jfif(&s))
			jfif = s.data;
		if (orientation == 1 && is_exif(&s))
			orientation = image_exif_orientation((struct bytes){
				s.data.p + 6, s.data.n - 6 });
	}
	if (jfif.p) {
		uint8_t bare[JFIF_BYTES];
		memcpy(bare, jfif.p, sizeof bare);
		bare[12] = bare[13] = 0;
		segment_put(out, M_APP0, (struct bytes){ bare, sizeof bare });
	}
	if (orientation != 1) {
		uint8_t exif[6 + IMAGE_EXIF_BYTES] = "Exif\0";
		image_exif_make(exif + 6, orientation);
		segment_put(out, M_APP1, (struct bytes){ exif, sizeof exif });
	}
	return 0;
}

int image_jpeg_clean(struct bytes file, struct buf *out, struct err *e)
{
	struct segment s = { 0 };
	unsigned scans = 0;

	if (file.n < 4)
		return cut_short(e);
	buf_add(out, file.p, 2);
	if (put_head(file, out, e))
		return -1;
	for (size_t at = 2; s.marker != M_EOI;) {
		if (segment_next(file, &at, &s, e))
			return -1;
		if (!is_kept(&s))
			continue;
		if (s.marker == M_APP14)
			s.data.n = ADOBE_BYTES;
		segment_put(out, s.marker, s.data);
		if (s.marker != M_SOS)
			continue;
		if (++scans > IMAGE_MAX_SCANS)
			return err_set(e, ERR_CONTENT,
				       "the JPEG has more than %d scans",
				       IMAGE_MAX_SCANS);
		size_t end = scan_end(file, at);
		buf_add(out, file.p + at, end - at);
		at = end;
	}
	if (!scans)
		return err_set(e, ERR_CONTENT, "the JPEG has no image");
	buf_add(out, "\xff\xd9", 2);
	return 0;
}

/* --- libjpeg --- */

struct decoder {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf out;
	struct err *e;
	uint8_t *row;
};

static void on_error(j_common_ptr jpeg)
{
	struct decoder *d = jpeg->client_data;
	char why[JMSG_LENGTH_MAX];

	jpeg->err->format_message(jpeg, why);
	err_set(d->e, ERR_CONTENT, "the JPEG is broken: %s", why);
	longjmp(d->out, 1);
}

/* libjpeg makes up what is missing and warns: for us that is broken, but for
 * bytes between segments and headers of an odd version. */
static void on_message(j_common_ptr jpeg, int level)
{
	int code = jpeg->err->msg_code;

	if (level < 0 && code != JWRN_EXTRANEOUS_DATA &&
	    code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM &&
	    code != JWRN_BOGUS_PROGRESSION)
		on_error(jpeg);
}

static void on_output(j_common_ptr jpeg) { (void)jpeg; }

/* Each scan of a progressive image costs as much as an image. */
static void on_progress(j_common_ptr jpeg)
{
	struct decoder *d = jpeg->client_data;

	if (d->jpeg.input_scan_number <= IMAGE_MAX_SCANS)
		return;
	err_set(d->e, ERR_CONTENT, "the JPEG has more than %d scans",
		IMAGE_MAX_SCANS);
	longjmp(d->out, 1);
}

static int read_rows(struct decoder *d, struct bytes file, uint32_t *pixels)
{
	struct jpeg_decompress_struct *j = &d->jpeg;

	jpeg_mem_src(j, file.p, file.n);
	jpeg_read_header(j, TRUE);
	if (image_fits(j->image_width, j->image_height, d->e))
		return -1;
	jpeg_start_decompress(j);
	size_t n = (size_t)j->output_width * (size_t)j->output_components;
	d->row = malloc(n);
	if (!d->row)
		return err_set(d->e, ERR_MEMORY, "out of memory");
	while (j->output_scanline < j->output_height) {
		jpeg_read_scanlines(j, &d->row, 1);
		if (pixels)
			*pixels = zip_crc32(*pixels, d->row, n);
	}
	jpeg_finish_decompress(j);
	return 0;
}

static struct decoder *decoder_new(struct err *e)
{
	struct decoder *d = calloc(1, sizeof *d);

	if (!d) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	d->e = e;
	d->jpeg.client_data = d;
	d->jpeg.err = jpeg_std_error(&d->errors);
	d->errors.error_exit = on_error;
	d->errors.emit_message = on_message;
	d->errors.output_message = on_output;
	d->progress.progress_monitor = on_progress;
	return d;
}

int image_jpeg_decode(struct bytes file, uint32_t *pixels, struct err *e)
{
	struct decoder *d = decoder_new(e);
	volatile int r = -1;

	if (!d)
		return -1;
	if (setjmp(d->out) == 0) {
		jpeg_create_decompress(&d->jpeg);
		d->jpeg.client_data = d;
		d->jpeg.progress = &d->progress;
		r = read_rows(d, file, pixels);
	}
	jpeg_destroy_decompress(&d->jpeg);
	free(d->row);
	free(d);
	return r;
}
