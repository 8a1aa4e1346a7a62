/* SPDX-License-Identifier: MIT
 *
 * rest: HTTP to one relay.  The only room that includes libcurl.
 *
 * No redirects, no other protocol than the base URL's (https, or http to this
 * machine), no other host, no cookies, no credentials but the bearer token.
 * A struct rest belongs to one thread and keeps its connection between calls;
 * only rest_abort may come from another thread. */
#ifndef AIRLOX_HOST_REST_H
#define AIRLOX_HOST_REST_H

#include <sys/types.h>

#include "core/host/clock.h"

struct rest;

/* A token is at most this long (characters), and printable ASCII. */
#define REST_TOKEN_MAX 200

int rest_init(void);	/* once a process, before threads */

/* base_url as invite_base gives it; clock learns from every Date (may be
 * NULL). */
struct rest *rest_new(const char *base_url, struct clock *clock,
		      struct err *e);
/* NULL: no token.  ERR_INVALID for what cannot be one. */
int rest_set_token(struct rest *r, const char *token, struct err *e);
void rest_free(struct rest *r);

/* Ends the running call, and each later one, with ERR_NET until rest_resume.
 * From any thread; the running call returns within milliseconds. */
void rest_abort(struct rest *r);
void rest_resume(struct rest *r);

struct rest_call {
	const char *method;	/* GET POST PUT */
	const char *path;	/* after the base URL, begins with "/" */
	const char *header[2];	/* extra "Name: value" lines, or NULL */
	const char *type;	/* content type, or NULL for octets */

	/* The request's body: `body` (up to 64 KiB of it leave with the head,
	 * in one piece), or body_n bytes from `read` (which gives the count, 0
	 * never before body_n, -1 to give up), starting over after `rewind`.
	 * `leaves` is called when the connection is there and nothing has left
	 * yet. */
	struct bytes body;
	ssize_t (*read)(void *arg, void *to, size_t n);
	int (*rewind)(void *arg);
	void *read_arg;
	uint64_t body_n;
	void (*leaves)(void *arg);
	void *leaves_arg;

	/* The answer's body, where the status is 2xx: to `take` as it comes
	 * (-1 ends the call), or added to `answer`; more than answer_max
	 * bytes end the call with ERR_PROTO (0: an answer's body is dropped
	 * after 64 KiB). */
	int (*take)(void *arg, const void *p, size_t n);
	void *take_arg;
	struct buf *answer;
	uint64_t answer_max;

	int connect_ms;		/* 0: 10 s */
	int total_ms;		/* 0: no limit */
	int stall_ms;		/* no byte either way for so long; 0: 30 s */
	int first_ms;		/* the same before the answer's first; 0: as
				 * stall_ms */

	/* out */
	int http;		/* the status, 0 where there was none */
	char word[32];		/* the relay's "error", where it refused */
	int64_t retry_after_ms;	/* -1: not said */
	uint64_t received;	/* bytes of a 2xx body */
};

/* 0 for a 2xx.  Otherwise, with e->http and the relay's own message:
 * ERR_NET no connection, reset, timeout, 5xx; ERR_RATE 429; ERR_AUTH 401;
 * ERR_FORBIDDEN 403; ERR_NOT_FOUND 404; ERR_CONFLICT 409, ERR_DUPLICATE where
 * its word is "duplicate"; ERR_GONE 410; ERR_SIZE 413; ERR_FULL 507; any
 * other status ERR_PROTO.  A callback's -1 is ERR_SYS "stopped". */
int rest_do(struct rest *r, struct rest_call *c, struct err *e);

#endif
