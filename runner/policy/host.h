/* SPDX-License-Identifier: MIT
 *
 * host: a name or address as it stands in a policy, a CONNECT, a Host field
 * or a TLS hello, read in one way only.  No look-up is made here. */
#ifndef RUNNER_POLICY_HOST_H
#define RUNNER_POLICY_HOST_H

#include <stdbool.h>

#include "core/buf.h"

#define HOST_MAX 253

enum host_kind { HOST_NAME, HOST_V4, HOST_V6 };

struct host {
	enum host_kind kind;
	uint16_t port;		/* 0: none was written */
	char name[HOST_MAX + 1];	/* lower case, without a last dot; an
					 * address as inet_ntop writes it */
};

/* NAME, 1.2.3.4 or [IPv6], each with :PORT or without.  0, or -1 for anything
 * else: a label that is none, a name that a resolver would take for a number
 * (127.1, 0x7f.1), a zone, a port of 0. */
int host_parse(struct host *h, struct bytes text);
bool host_same(const struct host *a, const struct host *b); /* not the port */
/* "localhost", or an address: what a policy has to name to the letter. */
bool host_is_local_word(const struct host *h);
/* NAME:PORT, with brackets where they belong. */
void host_put(struct buf *out, const char *name, enum host_kind kind,
	      uint16_t port);

#endif
