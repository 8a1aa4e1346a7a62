/* SPDX-License-Identifier: MIT
 *
 * crowd: how many connections each address has.  What counts as one address
 * is addr_net's.  A proxy that is trusted does not count; what it brings
 * counts where it stays, as an event stream.  Nor does a unix socket's peer,
 * who has no address.  Any thread. */
#ifndef RELAY_CROWD_H
#define RELAY_CROWD_H

#include "relay/limit.h"

/* false: this address has as many as one may (l->address_connections), or
 * memory is short. */
bool crowd_enter(const struct limits *l, const struct addr *a);
void crowd_leave(const struct limits *l, const struct addr *a);

#endif
