/* SPDX-License-Identifier: MIT
 *
 * hello: the server name in a TLS ClientHello (RFC 8446, RFC 6066), looked at
 * before any TLS begins: what is allowed is decided by it. */
#ifndef RUNNER_BROKER_HELLO_H
#define RUNNER_BROKER_HELLO_H

#include "core/buf.h"

#define HELLO_MAX (20u * 1024)

/* The hello that p[0..n) begins with, whatever the records it comes in.
 * 1: read, *name is its server name, a copy within `space`, or empty when it
 * has none; 0: more bytes are needed; -1: no ClientHello. */
int hello_read(const uint8_t *p, size_t n, uint8_t space[256],
	       struct bytes *name);

#endif
