/* SPDX-License-Identifier: MIT
 *
 * wire: JSON as programs write it (RFC 8259): any order of keys, whitespace,
 * fractions, every escape; still nothing but JSON, in UTF-8, once, at most 64
 * deep.  What we write ourselves is core/json.h's. */
#ifndef RUNNER_AGENT_WIRE_H
#define RUNNER_AGENT_WIRE_H

#include "core/buf.h"
#include "core/err.h"

enum wire_type {
	WIRE_NULL, WIRE_BOOL, WIRE_NUMBER, WIRE_TEXT, WIRE_LIST, WIRE_MAP
};

struct wire {
	enum wire_type type;
	bool truth;		/* WIRE_BOOL */
	struct bytes text;	/* WIRE_TEXT: decoded, may hold NUL bytes; a
				 * surrogate without its other half is U+FFFD */
	struct bytes key;	/* its name, where it is a member */
	struct bytes raw;	/* its bytes, within the input */
	struct wire *child, *next;
};

/* The whole of in, which must outlive it; free it with wire_free.  NULL with
 * ERR_INVALID. */
struct wire *wire_read(struct bytes in, struct err *e);
void wire_free(struct wire *root);

/* A member; the first of that name.  NULL: no map, no such member. */
const struct wire *wire_get(const struct wire *map, const char *key);
/* NULL-safe; "" and false where it is not of that type. */
struct bytes wire_text(const struct wire *v);
bool wire_is(const struct wire *v, const char *text);
/* A whole number of at most 2^53. */
bool wire_int(const struct wire *v, int64_t *n);

#endif
