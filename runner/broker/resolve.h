/* SPDX-License-Identifier: MIT
 *
 * resolve: look-ups that do not stop the reactor.  A few threads call
 * getaddrinfo; what it gave is judged there and then, so that what is dialled
 * is what was checked. */
#ifndef RUNNER_BROKER_RESOLVE_H
#define RUNNER_BROKER_RESOLVE_H

#include "core/err.h"
#include "runner/broker/addr.h"
#include "runner/policy/host.h"

#define RESOLVE_MAX 8u
#define RESOLVE_THREADS 4

struct resolved {
	struct addr addr[RESOLVE_MAX];	/* those that may be dialled */
	size_t n;
	enum addr_class refused;	/* of one that may not; ADDR_PUBLIC:
					 * there was none */
	const char *why;		/* the look-up failed: static; or NULL */
};

/* `local`: the policy writes this address, or localhost, to the letter. */
void resolve_literal(struct resolved *r, const struct host *h, bool local);

/* Threads that report through a descriptor that becomes readable.  -1 with e
 * filled, or the descriptor. */
int resolve_open(struct err *e);
/* 0, or -1: out of memory. */
int resolve_start(uint64_t token, const struct host *h, bool local);
/* One answer; false: no more for now. */
bool resolve_take(uint64_t *token, struct resolved *r);

#endif
