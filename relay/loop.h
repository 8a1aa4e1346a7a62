/* SPDX-License-Identifier: MIT
 *
 * loop: the reactors: one thread each, level-triggered epoll, a mailbox.  A
 * connection lives on one reactor and is touched by no other thread.  The
 * first reactor accepts and deals connections out in turn (rather than one
 * SO_REUSEPORT socket each: two relays on one port are then an error, and the
 * load is even).
 *
 * What comes back to a connection names it by descriptor and generation,
 * never by pointer. */
#ifndef RELAY_LOOP_H
#define RELAY_LOOP_H

#include "core/err.h"
#include "relay/addr.h"
#include "relay/hub.h"

#define LOOP_SCRATCH (256u * 1024)
#define STREAM_SLICE 256	/* streams of a fan-out in one turn */

struct state;
struct commit;
struct doors;

struct loop {
	int index, epfd;
	struct mailbox mail;
	pthread_t thread;
	struct conn *conns;		/* all of them */
	struct conn **by_fd;
	size_t by_fd_n;
	struct conn *dead;		/* closed in this turn */
	uint32_t generation;
	int64_t now_ms;			/* monotonic, of this turn */
	int ready;			/* descriptors, in this turn */
	int64_t ticked_ms;
	char date[32];			/* for the Date field, of this tick */
	struct channel *active, **active_last;
	uint64_t events_sent;		/* in this turn */
	struct state *st;
	struct commit *commit;
	uint8_t *scratch;
	struct buf access;		/* lines of the access log */
};

/* The doors' sockets are non-blocking and listening.  Runs `n` reactors until
 * loop_stop; the calling thread is the first of them. */
int loop_run(const struct doors *ds, int n, struct state *st, struct commit *commit,
	     struct err *e);
void loop_stop(void);		/* async-signal-safe */
void loop_reload(void);		/* certificate, access log; so is this */
/* Closes every connection.  After commit_stop, which still answers them. */
void loop_finish(void);
void loop_post(int index, struct mail *m);
int64_t loop_wall_ms(void);	/* Unix milliseconds */
int64_t loop_mono_ms(void);	/* of the monotonic clock, never 0 */

#endif
