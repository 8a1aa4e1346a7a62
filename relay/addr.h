/* SPDX-License-Identifier: MIT
 *
 * addr: whose request it is.  Addresses serve limits and nothing else; none
 * is logged unless the operator asks. */
#ifndef RELAY_ADDR_H
#define RELAY_ADDR_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/buf.h"
#include "core/err.h"

/* IPv6, or IPv4 mapped into it; all zero: none, a unix socket's peer. */
struct addr {
	uint8_t b[16];
};

#define ADDR_TEXT 48
#define ADDR_SET_MAX 32

void addr_of(struct addr *a, const struct sockaddr_storage *ss);
/* An address, also with a port behind it.  0 or -1. */
int addr_parse(struct addr *a, struct bytes text);
void addr_text(char out[ADDR_TEXT], const struct addr *a);
/* What counts as one: an IPv4 address, a /64 of IPv6. */
struct addr addr_net(struct addr a);

struct addr_set {
	struct addr net[ADDR_SET_MAX];
	uint8_t bits[ADDR_SET_MAX];
	unsigned n;
};

/* "127.0.0.1,10.0.0.0/8,::1,unix" */
int addr_set_parse(struct addr_set *s, const char *list, struct err *e);
bool addr_set_has(const struct addr_set *s, const struct addr *a);

/* Who is behind the proxies that are trusted: the last address of
 * X-Forwarded-For that is none of them.  false: somebody who is not trusted
 * sent the field. */
bool addr_client(struct addr *client, const struct addr_set *trusted,
		 struct bytes forwarded);

#endif
