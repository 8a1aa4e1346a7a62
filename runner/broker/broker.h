/* SPDX-License-Identifier: MIT
 *
 * broker: the one way out of a box.  A process of its own, outside the box,
 * one thread and a level-triggered epoll (the resolver's threads touch nothing
 * here).  It is the only process that holds credentials.
 *
 *	CONNECT, or TLS at :443 --.
 *	absolute form ------------+-> decide -> egress.jsonl -> resolve, check,
 *	http:// at :80 -----------'     dial what was checked -> swap -> redact
 *
 * It starts with a control socket (SOCK_SEQPACKET), a policy and an open
 * egress file, and sends one packet: "ready\n" and the authority's PEM, or
 * "fail\n" and a sentence.  Then packets of the other side:
 *
 *	door proxy|http|https	with one listening socket (SCM_RIGHTS)
 *	token TEXT		what a proxy's user must say
 *
 * each answered by "ok".  When the other side is gone, so is the broker. */
#ifndef RUNNER_BROKER_BROKER_H
#define RUNNER_BROKER_BROKER_H

#include "runner/broker/egress.h"
#include "runner/broker/secret.h"
#include "runner/broker/side.h"

#define BROKER_DOORS 8u
#define BROKER_CONNECTIONS 256
#define BROKER_HELD_MAX (64u * 1024 * 1024)	/* bodies that are searched */

enum door_kind { DOOR_PROXY, DOOR_HTTP, DOOR_HTTPS };

struct broker;
struct conn;

struct door {
	struct watch watch;	/* must be first */
	struct broker *b;
	enum door_kind kind;
};

struct broker {
	const struct policy *policy;
	struct secrets secrets;
	struct redact_set *redact;
	struct egress egress;
	char token[128];	/* "" : none is asked for */
	int epfd;
	struct watch control, resolver;
	struct door door[BROKER_DOORS];
	size_t door_n;
	bool doors_shut;	/* no room for more connections */
	struct conn *conns, *dead, *again;
	int64_t conn_n, conn_max;
	int64_t now_ms, ticked_ms;
	uint64_t next_id;
	size_t held_bytes;
	int64_t tokens_milli;	/* requests that may come, in thousandths */
	uint64_t up_bytes, down_bytes;
	bool stop;
};

/* Runs until the control socket ends; copy is egress.h's.  An exit code. */
int broker_run(int control, int egress, int copy, const struct policy *p);

const char *broker_door_word(enum door_kind k);

#endif
