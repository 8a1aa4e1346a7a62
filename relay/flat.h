/* SPDX-License-Identifier: MIT
 *
 * flat: small JSON objects of what is unsigned: the header that says where a
 * job goes, a heartbeat.  Not canonical, since nobody signs it and clients
 * write it with spaces or without; otherwise strict: one object of strings,
 * lists of strings and nulls, plain ASCII without escapes, no name twice,
 * nothing behind it. */
#ifndef RELAY_FLAT_H
#define RELAY_FLAT_H

#include "core/buf.h"
#include "core/err.h"

#define FLAT_FIELDS 4
#define FLAT_LIST 16

enum flat_type { FLAT_NULL, FLAT_STRING, FLAT_STRINGS };

/* Borrows from what was parsed. */
struct flat_field {
	struct bytes name;
	enum flat_type type;
	struct bytes str;
	struct bytes list[FLAT_LIST];
	size_t list_n;
};

struct flat {
	struct flat_field field[FLAT_FIELDS];
	size_t n;
};

/* 0, or ERR_INVALID, with `what` in front. */
int flat_parse(struct flat *f, struct bytes in, const char *what,
	       struct err *e);
/* NULL where it is not there, or of another type. */
const struct flat_field *flat_get(const struct flat *f, const char *name,
				  enum flat_type type);

#endif
