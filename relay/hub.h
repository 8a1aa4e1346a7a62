/* SPDX-License-Identifier: MIT
 *
 * hub: one event to many streams.  An event is framed once, reference-
 * counted, and kept in a ring per session (1,024 events or 1 MiB).  A stream
 * holds only a cursor and an offset; what has left the ring is framed again
 * from the log, byte for byte the same.
 *
 * Each reactor that has streams of a session has a channel there; publishing
 * puts the channel into the reactor's mailbox, once.  hub_* need the state's
 * lock, but for hub_release. */
#ifndef RELAY_HUB_H
#define RELAY_HUB_H

#include <stdatomic.h>

#include "core/buf.h"
#include "relay/mail.h"

#define HUB_RING 1024
#define HUB_RING_BYTES (1u << 20)
#define HUB_GATHER 32
#define LOOPS_MAX 4

struct frame {
	atomic_uint refs;
	bool live;		/* counted: hub_new_live */
	uint32_t n;
	char text[];
};

struct session;
struct conn;

/* A session's streams on one reactor.  `streams` and `at` belong to the
 * reactor; the rest to the lock. */
struct channel {
	struct mail mail;	/* must be first */
	struct session *session;
	struct conn *streams, *at;
	bool active;		/* the reactor's: in its list of work */
	bool again;		/* its; news came during a pass */
	struct channel *next_active;
	uint32_t stream_n;
	bool posted;		/* in the mailbox, with a session reference */
};

struct hub {
	struct frame **ring;	/* HUB_RING slots, by seq modulo */
	uint64_t first, end;	/* of the seqs in it */
	size_t bytes;
	struct channel *channel[LOOPS_MAX];
	struct live *live;	/* live.h; NULL: none so far */
};

/* The text of an event on a stream. */
void hub_frame(struct buf *out, uint64_t seq, const char *kind,
	       struct bytes data);
void hub_publish(struct hub *h, uint64_t seq, const char *kind,
		 struct bytes data);
void hub_wake(struct hub *h);
bool hub_has_streams(const struct hub *h);
/* A frame that has no number; NULL where all of them that are in use would
 * have more than `most` bytes. */
struct frame *hub_new_live(const char *kind, struct bytes data, size_t most);
/* Up to HUB_GATHER frames from seq on, each with a reference; 0 when seq is
 * not in the ring. */
size_t hub_gather(struct hub *h, uint64_t seq, struct frame **out);
void hub_release(struct frame **f, size_t n);
void hub_free(struct hub *h);

#endif
