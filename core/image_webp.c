/* SPDX-License-Identifier: MIT
 *
 * WebP (RFC 9649): a RIFF file whose chunks are a tag, a little-endian length
 * and data, padded to an even length. */
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include "core/image_parts.h"

#define RIFF_BYTES 12
#define CHUNK_BYTES 8
#define VP8X_BYTES 10
#define ANMF_BYTES 16		/* in front of a frame's own chunks */
#define FLAG_XMP 0x04
#define FLAG_EXIF 0x08

struct chunk {
	const uint8_t *tag;
	struct bytes data;
};

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[1] << 8 | p[0];
}

static void put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static bool is_tag(const struct chunk *c, const char *tag)
{
	return memcmp(c->tag, tag, 4) == 0;
}

static bool is_pixels(const struct chunk *c)
{
	return is_tag(c, "VP8 ") || is_tag(c, "VP8L");
}

static int cut_short(struct err *e)
{
	return err_set(e, ERR_CONTENT, "the WebP is cut short");
}

static int chunk_next(struct bytes s, size_t *at, struct chunk *c,
		      struct err *e)
{
	size_t left = s.n - *at;

	if (left < CHUNK_BYTES || get_u32(s.p + *at + 4) > left - CHUNK_BYTES)
		return cut_short(e);
	size_t n = get_u32(s.p + *at + 4);
	*c = (struct chunk){ s.p + *at, { s.p + *at + CHUNK_BYTES, n } };
	*at += CHUNK_BYTES + n;
	if (n % 2 && *at < s.n)
		(*at)++;
	return 0;
}

/* Begins a chunk and gives the place that chunk_end needs. */
static size_t chunk_begin(struct buf *out, const void *tag)
{
	buf_add(out, tag, 4);
	buf_add(out, "\0\0\0", 4);
	return out->len;
}

static void chunk_end(struct buf *out, size_t from)
{
	if (out->failed)
		return;
	size_t n = out->len - from;
	put_u32(out->data + from - 4, (uint32_t)n);
	if (n % 2)
		buf_add_byte(out, 0);
}

static void chunk_put(struct buf *out, const struct chunk *c)
{
	size_t from = chunk_begin(out, c->tag);

	buf_add(out, c->data.p, c->data.n);
	chunk_end(out, from);
}

/* The chunks of one image: its alpha and its pixels, once. */
static int put_image(struct bytes s, struct buf *out, struct err *e)
{
	struct chunk c;
	bool alpha = false, pixels = false;

	for (size_t at = 0; at < s.n;) {
		if (chunk_next(s, &at, &c, e))
			return -1;
		if (!pixels && (is_pixels(&c) ||
				(!alpha && is_tag(&c, "ALPH"))))
			chunk_put(out, &c);
		alpha |= is_tag(&c, "ALPH");
		pixels |= is_pixels(&c);
	}
	return pixels ? 0 : err_set(e, ERR_CONTENT,
				    "the WebP has a frame without an image");
}

static int put_frame(const struct chunk *c, struct buf *out, struct err *e)
{
	if (c->data.n < ANMF_BYTES)
		return cut_short(e);
	size_t from = chunk_begin(out, c->tag);
	buf_add(out, c->data.p, ANMF_BYTES);
	if (put_image((struct bytes){ c->data.p + ANMF_BYTES,
				      c->data.n - ANMF_BYTES }, out, e))
		return -1;
	chunk_end(out, from);
	return 0;
}

static void put_vp8x(const struct chunk *c, unsigned orientation,
		     struct buf *out)
{
	size_t from = chunk_begin(out, c->tag);
	uint8_t head[VP8X_BYTES];

	memcpy(head, c->data.p, sizeof head);
	head[0] &= (uint8_t)~(FLAG_XMP | FLAG_EXIF);
	if (orientation != 1)
		head[0] |= FLAG_EXIF;
	buf_add(out, head, sizeof head);
	chunk_end(out, from);
}

/* What was seen on the way through the file. */
struct seen {
	unsigned orientation;
	bool vp8x, icc, anim, alpha, pixels, frame;
};

/* Only EXIF, for its orientation; some writers put JPEG's prefix before. */
static int find_orientation(struct bytes s, unsigned *orientation,
			    struct err *e)
{
	struct chunk c;

	for (size_t at = 0; at < s.n;) {
		if (chunk_next(s, &at, &c, e))
			return -1;
		if (!is_tag(&c, "EXIF"))
			continue;
		if (c.data.n >= 6 && memcmp(c.data.p, "Exif\0\0", 6) == 0) {
			c.data.p += 6;
			c.data.n -= 6;
		}
		*orientation = image_exif_orientation(c.data);
		break;
	}
	return 0;
}

static bool once(bool *flag)
{
	bool first = !*flag;

	*flag = true;
	return first;
}

static int put_chunk(const struct chunk *c, struct seen *seen,
		     struct buf *out, struct err *e)
{
	if (is_tag(c, "VP8X")) {
		if (seen->vp8x || seen->pixels || c->data.n < VP8X_BYTES)
			return err_set(e, ERR_CONTENT,
				       "the WebP's header is out of place");
		seen->vp8x = true;
		put_vp8x(c, seen->orientation, out);
	} else if (is_tag(c, "ANMF")) {
		seen->frame = true;
		return put_frame(c, out, e);
	} else if ((is_tag(c, "ICCP") && once(&seen->icc)) ||
		   (is_tag(c, "ANIM") && once(&seen->anim)) ||
		   (is_tag(c, "ALPH") && !seen->pixels &&
		    once(&seen->alpha)) ||
		   (is_pixels(c) && once(&seen->pixels))) {
		chunk_put(out, c);
	}
	return 0;
}

/* The RIFF's own length says where it ends: the rest is left behind. */
static int riff_body(struct bytes file, struct bytes *body, struct err *e)
{
	if (file.n < RIFF_BYTES)
		return cut_short(e);
	uint32_t n = get_u32(file.p + 4);
	if (n < 4 || n > file.n - 8)
		return cut_short(e);
	*body = (struct bytes){ file.p + RIFF_BYTES, n - 4 };
	return 0;
}

int image_webp_clean(struct bytes file, struct buf *out, struct err *e)
{
	struct seen seen = { .orientation = 1 };
	struct bytes body;
	struct chunk c;

	if (riff_body(file, &body, e) ||
	    find_orientation(body, &seen.orientation, e))
		return -1;
	size_t from = chunk_begin(out, "RIFF");
	buf_add(out, "WEBP", 4);
	for (size_t at = 0; at < body.n;)
		if (chunk_next(body, &at, &c, e) ||
		    put_chunk(&c, &seen, out, e))
			return -1;
	if (!seen.pixels && !seen.frame)
		return err_set(e, ERR_CONTENT, "the WebP has no image");
	if (seen.vp8x && seen.orientation != 1) {
		uint8_t exif[IMAGE_EXIF_BYTES];
		image_exif_make(exif, seen.orientation);
		c = (struct chunk){ (const uint8_t *)"EXIF",
				    { exif, sizeof exif } };
		chunk_put(out, &c);
	}
	chunk_end(out, from);
	return 0;
}

/* --- libwebp --- */

static int decode_one(struct bytes image, uint32_t *pixels, struct err *e)
{
	int width = 0, height = 0;

	if (!WebPGetInfo(image.p, image.n, &width, &height))
		return err_set(e, ERR_CONTENT, "the WebP is broken");
	if (image_fits((uint64_t)width, (uint64_t)height, e))
		return -1;
	uint8_t *rgba = WebPDecodeRGBA(image.p, image.n, &width, &height);
	if (!rgba)
		return err_set(e, ERR_CONTENT,
			       "the WebP is broken or cut short");
	if (pixels)
		*pixels = zip_crc32(*pixels, rgba, (size_t)width *
					(size_t)height * 4);
	WebPFree(rgba);
	return 0;
}

static int decode_frames(WebPDemuxer *demux, uint32_t *pixels, struct err *e)
{
	WebPIterator it;
	int r = 0;

	if (WebPDemuxGetI(demux, WEBP_FF_FRAME_COUNT) > IMAGE_MAX_FRAMES)
		return err_set(e, ERR_SIZE, "the WebP has over %d frames",
			       IMAGE_MAX_FRAMES);
	if (!WebPDemuxGetFrame(demux, 1, &it))
		return err_set(e, ERR_CONTENT, "the WebP has no frame");
	do {
		r = decode_one((struct bytes){ it.fragment.bytes,
					       it.fragment.size }, pixels, e);
	} while (r == 0 && WebPDemuxNextFrame(&it));
	WebPDemuxReleaseIterator(&it);
	return r;
}

int image_webp_decode(struct bytes file, uint32_t *pixels, struct err *e)
{
	WebPData data = { file.p, file.n };
	WebPDemuxer *demux = WebPDemux(&data);

	if (!demux)
		return err_set(e, ERR_CONTENT,
			       "the WebP is broken or cut short");
	int r = image_fits(WebPDemuxGetI(demux, WEBP_FF_CANVAS_WIDTH),
			   WebPDemuxGetI(demux, WEBP_FF_CANVAS_HEIGHT), e);
	if (r == 0)
		r = decode_frames(demux, pixels, e);
	WebPDemuxDelete(demux);
	return r;
}
