/* SPDX-License-Identifier: MIT
 *
 * conn: the life of one connection: head, body, answer, and again; or an
 * answer that is a stream of events.
 *
 *	HEAD -> BODY -> WAIT (for commit or pool) -> SEND -> HEAD
 *	HEAD -> STREAM;  SEND -> DRAIN -> closed
 *
 * Deadlines: head 10 s, body 1 KB/s over 30 s, idle between requests 60 s,
 * a write that makes no progress 30 s.  A body that is refused is answered at
 * once; then shutdown(WR), and what still comes is dropped, at most 256 KiB
 * or 1 s, so that the answer is not lost to a reset. */
#ifndef RELAY_CONN_H
#define RELAY_CONN_H

#include "relay/commit.h"
#include "relay/http.h"
#include "relay/loop.h"
#include "relay/tls.h"

enum conn_state {
	CONN_HEAD, CONN_BODY, CONN_WAIT, CONN_SEND, CONN_STREAM, CONN_DRAIN,
	CONN_DEAD
};

struct route;
struct upload;
struct digest;

/* What is known of the request in hand. */
struct req {
	const struct route *route;
	enum http_method method;
	const char *allow;		/* of a 405 */
	struct addr client;		/* the peer, or whom a proxy names */
	bool forwarded;			/* not trusted, but says so */
	int64_t began_ms;
	uint32_t retry_s;		/* of a 429; 0: 1 */
	uint64_t left;			/* of a body with a length */
	bool chunked, has_length, http10, expect;
	struct http_chunks chunks;
	struct session *session;	/* a reference, or NULL */
	struct participant *by;		/* whose token it was, or NULL */
	char id[64];			/* {id} or {role} of the path */
	struct bytes target;		/* Airlox-Target, in begin() only */
	bool refs_complete;		/* Airlox-Refs: it lists all inputs */
	int64_t after;			/* events after this seq; -1: all */
	struct buf body;
	struct upload *upload;
	/* an answer made piece by piece */
	bool listing, listed;		/* going on; not empty so far */
	enum text_kind text;
	uint32_t next, end;
};

struct conn {
	struct conn *prev, *next;	/* in loop.conns; loop.dead */
	struct loop *loop;
	int fd;
	uint32_t generation, armed;
	struct addr peer;
	struct tls *tls;		/* NULL: plain */
	enum conn_state state;
	bool close;			/* after this answer */
	bool blocked;			/* waits for EPOLLOUT */
	int64_t deadline_ms;
	uint64_t moved;			/* body bytes in this window */
	uint64_t skip;			/* of a refused body */
	struct buf in, out;
	size_t seen, out_at;
	struct bytes src;		/* input in hand, during a turn */
	struct req *req;
	int file;			/* being sent, or -1 */
	int64_t file_at;
	uint64_t file_left;
	/* a stream */
	struct channel *channel;
	struct conn *stream_prev, *stream_next;
	struct session *session;	/* a reference */
	struct participant *by;
	uint64_t cursor;
	uint32_t frame_at;		/* bytes sent of the event at cursor */
	struct frame *live;		/* being sent, a reference: live.h */
	uint32_t live_at;		/* bytes sent of it */
	uint64_t live_seen;
	bool duty;			/* a runner's own: duty_news */
	bool told_end;			/* that `told` is to stop */
	char told[ITEM_ID + 1];		/* the job it was told of */
};

/* A socket, who is on it, whether it does TLS.  Takes fd over, unless it
 * gives NULL. */
struct conn *conn_new(struct loop *l, int fd, const struct addr *peer,
		      bool tls);
void conn_free(struct conn *c);		/* what loop.dead holds */
void conn_ready(struct conn *c, uint32_t events);
void conn_done(struct conn *c, struct intent *it);	/* it came back */
void conn_hashed(struct conn *c, const struct digest *d);	/* its upload */
void conn_tick(struct conn *c);		/* once a second */
void conn_crowded(struct conn *c);	/* the same, with no room for others */
void conn_close(struct conn *c);	/* dead from here on */
/* As send(2), and through TLS where it is. */
ssize_t conn_send(struct conn *c, const void *p, size_t n, int flags);
void conn_arm(struct conn *c, uint32_t events);

#define KEEPALIVE_MS 15000
#define STALL_MS 30000

#endif
