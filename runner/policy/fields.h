/* SPDX-License-Identifier: MIT
 *
 * fields: a map of a policy by a table of its keys.  Each reader takes a value
 * and fills its place; whatever is wrong is said with the line. */
#ifndef RUNNER_POLICY_FIELDS_H
#define RUNNER_POLICY_FIELDS_H

#include "runner/policy/policy.h"
#include "runner/policy/tree.h"

struct field {
	const char *key;
	int (*read)(void *at, const struct tree *v, struct err *e);
	size_t offset;		/* of the place within the struct */
};

/* Fills *to.  `what` names the map in sentences. */
int fields_read(void *to, const struct field *table, const struct tree *map,
		const char *what, struct err *e);
int fields_refuse(const struct tree *v, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Readers, by the type of their place. */
int field_text(void *at, const struct tree *v, struct err *e);	/* char * */
int field_words(void *at, const struct tree *v, struct err *e);	/* one or a
								 * list */
int field_list(void *at, const struct tree *v, struct err *e);	/* a list */
int field_bool(void *at, const struct tree *v, struct err *e);
int field_count(void *at, const struct tree *v, struct err *e);	/* int64_t */
int field_bytes(void *at, const struct tree *v, struct err *e);	/* int64_t */
int field_time_ms(void *at, const struct tree *v, struct err *e);

/* The index of a text in a NULL-ended list of words, or -1 with e filled. */
int fields_choose(const struct tree *v, const char *const *words,
		  struct err *e);

#endif
