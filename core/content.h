/* SPDX-License-Identifier: MIT
 *
 * content: the rules on a file item's body, for whoever sends or receives:
 * UTF-8 of py and md, an image's magic, the records of a zip. */
#ifndef AIRLOX_CONTENT_H
#define AIRLOX_CONTENT_H

#include "core/type.h"
#include "core/zip.h"

/* The body is read through the source, in order for text, at random for a
 * zip.  A fault is ERR_CONTENT (class policy). */
int content_check(enum item_type type, const char *mime,
		  const struct zip_source *body, struct err *e);
/* The same for who sends: a zip's entries are unpacked, to nowhere, and held to
 * the sizes and checksums that they declare. */
int content_check_whole(enum item_type type, const char *mime,
			const struct zip_source *body, struct err *e);

#endif
