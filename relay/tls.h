/* SPDX-License-Identifier: MIT
 *
 * tls: TLS 1.2 and 1.3 on a non-blocking socket.  The one room for OpenSSL's
 * TLS; what is under it is ciphertext of the sessions all the same. */
#ifndef RELAY_TLS_H
#define RELAY_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/err.h"

/* Once a process; PEM files.  The paths stay the caller's, and are read again
 * by tls_reload: connections from then on are given the new certificate.
 * Where that fails the old one stays. */
int tls_open(const char *cert, const char *key, struct err *e);
int tls_reload(struct err *e);	/* 0 where tls_open was not called */
void tls_close(void);

struct tls;
struct tls *tls_new(int fd);	/* NULL: out of memory */
void tls_free(struct tls *t);
/* As recv(2) and send(2): -1 with EAGAIN when it would block.  What was
 * offered to tls_send must be offered again, first, when it did. */
ssize_t tls_recv(struct tls *t, void *p, size_t n);
ssize_t tls_send(struct tls *t, const void *p, size_t n);
/* Whether it was room to write that the last call waited for. */
bool tls_wants_write(const struct tls *t);
void tls_shutdown(struct tls *t);	/* nothing more will be sent */

#endif
