/* SPDX-License-Identifier: MIT */
#include "core/type.h"

static const char *const words[TYPE_NONE + 1] = {
	[TYPE_TEXT] = "text", [TYPE_PY] = "py", [TYPE_MD] = "md",
	[TYPE_ZIP] = "zip", [TYPE_IMAGE] = "image", [TYPE_NONE] = "",
};

const char *type_word(enum item_type type)
{
	return words[type <= TYPE_NONE ? type : TYPE_NONE];
}

enum item_type type_parse(struct bytes word)
{
	enum item_type type = TYPE_TEXT;

	while (type < TYPE_NONE && !bytes_eq(word, bytes_str(words[type])))
		type++;
	return type;
}
