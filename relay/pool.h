/* SPDX-License-Identifier: MIT
 *
 * pool: some threads for what a reactor must not wait for: fsync, unlink,
 * punching holes, hashing what is large. */
#ifndef RELAY_POOL_H
#define RELAY_POOL_H

#include "core/err.h"

struct pool;
struct pool *pool_start(struct err *e);
/* Runs fn(arg) on one of the threads.  -1: no memory, fn will not run. */
int pool_run(struct pool *p, void (*fn)(void *arg), void *arg);
void pool_stop(struct pool *p);	/* after what was given has run */

#endif
