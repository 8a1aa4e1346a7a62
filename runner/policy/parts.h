/* SPDX-License-Identifier: MIT
 *
 * parts: what the files that read a policy share. */
#ifndef RUNNER_POLICY_PARTS_H
#define RUNNER_POLICY_PARTS_H

#include "runner/policy/fields.h"
#include "runner/policy/match.h"

/* Readers of the two long lists; `at` is the policy. */
int part_allow(void *at, const struct tree *v, struct err *e);
int part_credentials(void *at, const struct tree *v, struct err *e);
/* Once all rules are there. */
int part_join_credential(const struct policy *p, struct policy_credential *c,
			 struct err *e);

int part_place(void *at, const struct tree *v, struct err *e);
int part_check_path(const char *s, const struct tree *v, struct err *e);
/* Room for one more at the end of an array, zeroed. */
int part_grow(void *array, size_t n, size_t max, size_t size,
	      const struct tree *v, struct err *e);

void part_free_words(struct policy_words *w);

#endif
