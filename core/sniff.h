/* SPDX-License-Identifier: MIT
 *
 * sniff: what a file is, by its name, and whether its first bytes agree
 * (docs/PROTOCOL.md, section 6). */
#ifndef AIRLOX_SNIFF_H
#define AIRLOX_SNIFF_H

#include "core/buf.h"
#include "core/err.h"
#include "core/type.h"

#define SNIFF_HEAD_BYTES 12	/* what sniff_magic wants to see */

struct sniff {
	enum item_type type;	/* TYPE_PY, MD, ZIP, IMAGE or TYPE_NONE */
	const char *mime;	/* static; "" for TYPE_NONE */
};

/* By extension, without case: .py .md .markdown .zip .png .jpg .jpeg .webp.
 * Returns 0, or -1 and TYPE_NONE for every other name. */
int sniff_name(struct bytes name, struct sniff *out);

/* An image's first bytes (n of them; fewer than SNIFF_HEAD_BYTES only when
 * the file is that short) against its mime type.  ERR_CONTENT. */
int sniff_magic(const char *mime, const uint8_t *head, size_t n,
		struct err *e);

#endif
