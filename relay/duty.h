/* SPDX-License-Identifier: MIT
 *
 * duty: what is told of runners, and to them.  Under the lock. */
#ifndef RELAY_DUTY_H
#define RELAY_DUTY_H

#include "relay/conn.h"
#include "relay/task.h"

/* The listing's next piece, from r->next up to r->end: each runner that is
 * here, or was rejected. */
int duty_text(struct state *st, struct req *r, size_t enough,
		struct buf *out, struct err *e);

/* The next event for a runner's own stream goes into c->out, if there is one.
 * It follows from what is true now and what the stream was told, so none is
 * lost by a break, and none kept. */
bool duty_news(struct conn *c);

/* It lives; id is the job that it says it has, or "". */
void duty_beat(struct session *s, struct participant *p, const char *id,
		 int64_t now_ms);
/* It takes no jobs until it is heard again. */
void duty_away(struct participant *p);

#endif
