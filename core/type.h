/* SPDX-License-Identifier: MIT
 *
 * type: the five words of a manifest's allowed_types (docs/PROTOCOL.md,
 * section 3). */
#ifndef AIRLOX_TYPE_H
#define AIRLOX_TYPE_H

#include "core/buf.h"

enum item_type {
	TYPE_TEXT, TYPE_PY, TYPE_MD, TYPE_ZIP, TYPE_IMAGE,
	TYPE_NONE	/* none of them; also their count */
};

/* "text" "py" "md" "zip" "image"; "" for TYPE_NONE.  Static. */
const char *type_word(enum item_type type);

/* TYPE_NONE for any other word; case counts. */
enum item_type type_parse(struct bytes word);

#endif
