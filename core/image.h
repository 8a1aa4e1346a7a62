/* SPDX-License-Identifier: MIT
 *
 * image: PNG, JPEG and WebP, looked at and cleaned.
 *
 * Decoders are where hostile images bite: call this only from the child that
 * has no keys, no network and no mount (docs/DESIGN.md). */
#ifndef AIRLOX_IMAGE_H
#define AIRLOX_IMAGE_H

#include "core/buf.h"
#include "core/err.h"

#define IMAGE_MAX_SIDE 16384			/* pixels */
#define IMAGE_MAX_DECODED ((uint64_t)128 << 20)	/* at 4 bytes a pixel */

/* `mime` is image/png, image/jpeg or image/webp.  Decodes the whole image
 * within the limits, row by row where the format lets: at most some 300 MiB
 * beside the file (a progressive JPEG of four colours).  ERR_CONTENT, ERR_SIZE
 * when beyond the limits. */
int image_check(struct bytes file, const char *mime, struct err *e);

/* The file without its metadata (EXIF, GPS, XMP, comments, text, times,
 * thumbnails, trailing data); what the pixels and their colours need stays,
 * byte for byte.  An EXIF orientation other than 1 stays as the only entry of
 * a fresh EXIF block.  ERR_CONTENT when the container is broken; image_check
 * says whether the pixels are.  Needs as much memory as the file. */
int image_clean(struct bytes file, const char *mime, struct buf *out,
		struct err *e);

/* What is sent: checked, cleaned, and seen to show the same after as before.
 * ERR_CONTENT, ERR_SIZE. */
int image_prepare(struct bytes file, const char *mime, struct buf *out,
		  struct err *e);

#endif
