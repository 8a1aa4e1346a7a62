/* SPDX-License-Identifier: MIT
 *
 * tls: TLS 1.2 and 1.3 on non-blocking sockets, both ways, and the authority
 * of one run.  The one room for OpenSSL's TLS.
 *
 * Towards the box a leaf for each name is signed by an authority that is made
 * at the start, whose key is never written anywhere, and which nothing but
 * this box trusts.  Towards upstreams the system's trust decides
 * (SSL_CERT_FILE and SSL_CERT_DIR of the caller count). */
#ifndef RUNNER_BROKER_TLS_H
#define RUNNER_BROKER_TLS_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"

/* Once a process.  The authority's certificate, PEM, is added to ca. */
int tls_open(struct buf *ca, struct err *e);
void tls_close(void);

struct tls;
/* As a server called `name` (an address if `literal`).  `ahead` was read from
 * fd already.  NULL: out of memory.  fd stays the caller's. */
struct tls *tls_accept(int fd, const char *name, bool literal,
		       struct bytes ahead);
/* As a client that wants to see the certificate of `name`. */
struct tls *tls_connect(int fd, const char *name, bool literal);
void tls_free(struct tls *t);

/* 1: done; 0: go on when fd is ready; -1: failed, see tls_why. */
int tls_handshake(struct tls *t);
/* What failed, in words, of the last call: "the certificate ...". */
const char *tls_why(const struct tls *t);
bool tls_only_h2(const struct tls *t);	/* it failed because of ALPN */
/* As recv(2) and send(2): -1 with EAGAIN when it would block.  What was
 * offered to tls_send must be offered again, first, when it did. */
ssize_t tls_recv(struct tls *t, void *p, size_t n);
ssize_t tls_send(struct tls *t, const void *p, size_t n);
/* Whether it was room to write that the last call waited for. */
bool tls_wants_write(const struct tls *t);
/* Whether bytes are here that the socket does not have any more. */
bool tls_pending(const struct tls *t);
void tls_rest(struct tls *t);		/* gives back memory while idle */
void tls_shutdown(struct tls *t);	/* nothing more will be sent */

#endif
