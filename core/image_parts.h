/* SPDX-License-Identifier: MIT
 *
 * image_parts: what the files of the image room share, and nobody else
 * includes (their tests excepted).
 *
 * One file a format, each with two functions: `clean` reads the container
 * itself and uses no library; `decode` is the library, and gives the pixels
 * row by row into the CRC at `pixels`, which may be NULL. */
#ifndef AIRLOX_IMAGE_PARTS_H
#define AIRLOX_IMAGE_PARTS_H

#include "core/image.h"
#include "core/zip.h"

#define IMAGE_MAX_FRAMES 10000	/* of an animation */
#define IMAGE_MAX_SCANS 200	/* of a progressive JPEG */

int image_png_clean(struct bytes file, struct buf *out, struct err *e);
int image_png_decode(struct bytes file, uint32_t *pixels, struct err *e);
int image_jpeg_clean(struct bytes file, struct buf *out, struct err *e);
int image_jpeg_decode(struct bytes file, uint32_t *pixels, struct err *e);
int image_webp_clean(struct bytes file, struct buf *out, struct err *e);
int image_webp_decode(struct bytes file, uint32_t *pixels, struct err *e);

/* Within IMAGE_MAX_SIDE and IMAGE_MAX_DECODED, and not empty.  ERR_SIZE. */
int image_fits(uint64_t width, uint64_t height, struct err *e);

/* The orientation (1..8) that a TIFF block's first directory gives; 1 where
 * it gives none or makes no sense. */
unsigned image_exif_orientation(struct bytes tiff);

#define IMAGE_EXIF_BYTES 26
/* A TIFF block with that orientation and nothing else. */
void image_exif_make(uint8_t out[IMAGE_EXIF_BYTES], unsigned orientation);

#endif
