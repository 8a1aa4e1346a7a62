/* SPDX-License-Identifier: MIT
 *
 * secret: fetches what the credentials of a policy name, once, at the start,
 * into locked memory.  Nothing else has a value: no argument, no child's
 * environment, no log, no sentence. */
#ifndef RUNNER_BROKER_SECRET_H
#define RUNNER_BROKER_SECRET_H

#include "runner/policy/policy.h"

#define SECRET_MIN 8u
#define SECRET_MAX 4096u
#define SECRET_CMD_MS 10000

struct secrets {
	struct secret {
		uint8_t *p;	/* locked; n bytes */
		size_t n;
	} *of;			/* by the index of the credential */
	size_t n;
};

/* A variable that was read is wiped out of this process's environment.  A
 * program runs without a shell, for 10 s at most, and is given PATH, HOME,
 * USER and LANG alone.  -1 with e filled, "line N: ..."; nothing is kept. */
int secrets_load(struct secrets *s, const struct policy *p, struct err *e);
void secrets_free(struct secrets *s);	/* wiped */
struct bytes secrets_get(const struct secrets *s, size_t credential);

#endif
