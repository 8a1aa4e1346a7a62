/* SPDX-License-Identifier: MIT
 *
 * access: the access log: one line a request.  Never a session, an item, a
 * token; an address only where the operator asked for it. */
#ifndef RELAY_ACCESS_H
#define RELAY_ACCESS_H

#include "relay/conn.h"

/* path "-" is standard error. */
int access_open(const char *path, bool addresses, struct err *e);
void access_reopen(void);	/* after the file was moved away */
void access_note(struct conn *c, int status);
void access_flush(struct loop *l);

#endif
