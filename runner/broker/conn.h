/* SPDX-License-Identifier: MIT
 *
 * conn: a connection of the box, and the one to an upstream that serves it.
 *
 *	HEAD ---------------------------> [HOLD] -> DIAL -> EXCHANGE -> HEAD
 *	  `- CONNECT -> HELLO -> SHAKE -> HEAD          `-> TUNNEL (passthrough)
 *	an answer of ours -> DRAIN -> dead
 *
 * A step looks at what is there, uses it and says whether anything moved; the
 * reactor repeats it until nothing does. */
#ifndef RUNNER_BROKER_CONN_H
#define RUNNER_BROKER_CONN_H

#include "runner/broker/broker.h"
#include "runner/broker/http.h"
#include "runner/broker/resolve.h"
#include "runner/broker/swap.h"

enum conn_state {
	CONN_HEAD,	/* a request's head is awaited */
	CONN_HELLO,	/* a ClientHello is awaited */
	CONN_SHAKE,	/* TLS with the box */
	CONN_HOLD,	/* a body is gathered to be searched */
	CONN_LOOKUP,	/* a name is looked up */
	CONN_DIAL,	/* an address is connected to */
	CONN_UPSHAKE,	/* TLS with the upstream */
	CONN_EXCHANGE,	/* request and answer flow */
	CONN_TUNNEL,	/* bytes flow */
	CONN_DRAIN,	/* our answer is sent, what still comes is dropped */
	CONN_DEAD
};

/* A request in hand. */
struct request {
	struct buf head;		/* its bytes; all below borrows from it */
	struct http_head h;
	struct host host;
	struct policy_ask ask;
	struct bytes query;
	const struct policy_rule *rule;
	uint64_t n;			/* of its line in the account */
	int64_t began_ms;
	struct swap swap;
	struct http_body from;		/* as the box frames it */
	struct buf body;		/* held */
	bool holds;
	bool sent_head;
	int status;			/* of the answer, 0: not yet */
	bool to_chunks, to_close;	/* how it goes to the box */
	bool keep_up;			/* the upstream's connection stays */
	struct http_body answer;
	struct redact redact;
	uint64_t redacted, up_bytes, down_bytes;
	unsigned tries;
	bool warm;			/* the upstream's was open already */
};

struct conn {
	struct conn *prev, *next;	/* in broker.conns, or broker.dead */
	struct conn *again;		/* in broker.again: has more to do */
	bool queued;
	struct broker *b;
	enum door_kind door;
	enum conn_state state;
	uint64_t id;			/* for the resolver */
	int64_t moved_ms;		/* when last anything moved */
	int64_t state_ms;		/* since when in this state */
	struct side client, up;
	size_t seen, up_seen;		/* how far heads were searched */
	size_t dropped;			/* while draining */
	/* what the box's TLS is for */
	bool tunnelled;			/* by CONNECT */
	struct host authority;
	uint16_t port;
	const char *misdirected;	/* why its first answer is a 421 */
	struct request *req;
	/* the upstream: whom, and what is left to try */
	struct host up_host;
	uint16_t up_port;
	bool up_tls;
	struct resolved addrs;
	size_t addr_at;
	char up_text[ADDR_TEXT];
};

/* Takes fd over. */
void conn_new(struct broker *b, int fd, enum door_kind door);
void conn_free(struct conn *c);		/* of broker.dead */
void conn_close(struct conn *c);	/* dead from here on */
void conn_enter(struct conn *c, enum conn_state s);
void conn_work(struct conn *c);		/* as far as it goes now */
void conn_tick(struct conn *c);		/* once a second */
void conn_looked_up(struct conn *c, const struct resolved *r);

/* --- the steps; each gives whether anything moved --- */
bool front_hello(struct conn *c);
bool front_shake(struct conn *c);
void front_connect(struct conn *c, const struct http_head *h);

bool request_head(struct conn *c);
bool request_hold(struct conn *c);
void request_free(struct conn *c);	/* its end goes into the account */

void dial_begin(struct conn *c);
bool dial_step(struct conn *c);
bool dial_shake(struct conn *c);

void exchange_begin(struct conn *c);
bool exchange_step(struct conn *c);
bool tunnel_step(struct conn *c);

/* --- answers of our own --- */
/* A decision against: a line in the account and an answer that says what is
 * allowed; then the connection ends. */
void answer_deny(struct conn *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Something failed that was allowed. */
void answer_fail(struct conn *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What the account says of this connection; event and why. */
void answer_note(struct conn *c, const char *event, const char *why);
bool answer_drain(struct conn *c);

#endif
