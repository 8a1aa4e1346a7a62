/* SPDX-License-Identifier: MIT
 *
 * addr: what kind of address a name led to.  A name that is allowed may
 * resolve to anything its owner likes; what is not the public network is
 * refused by its class, whatever form it hides in. */
#ifndef RUNNER_BROKER_ADDR_H
#define RUNNER_BROKER_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>

enum addr_class {
	ADDR_PUBLIC, ADDR_UNSPECIFIED, ADDR_LOOPBACK, ADDR_PRIVATE,
	ADDR_LINK_LOCAL, ADDR_METADATA, ADDR_SHARED, ADDR_MULTICAST,
	ADDR_RESERVED, ADDR_OWN
};

#define ADDR_TEXT (INET6_ADDRSTRLEN)

struct addr {
	int family;		/* AF_INET, AF_INET6 */
	uint8_t bytes[16];
};

/* Without the machine's own: those are addr_is_own. */
enum addr_class addr_class(const struct addr *a);
bool addr_is_own(const struct addr *a);	/* one of an interface's */
const char *addr_class_word(enum addr_class c);	/* "a loopback address" */
void addr_text(char out[ADDR_TEXT], const struct addr *a);
/* False for what is neither IPv4 nor IPv6. */
bool addr_from(struct addr *a, const struct sockaddr *sa);
socklen_t addr_to(struct sockaddr_storage *ss, const struct addr *a,
		  uint16_t port);

#endif
