/* SPDX-License-Identifier: MIT
 *
 * stream: a connection that is told every event of its session, from a cursor
 * on.  It holds no text of its own but what it replays from the log: what is
 * in the hub's ring is sent from there. */
#ifndef RELAY_STREAM_H
#define RELAY_STREAM_H

#include "relay/conn.h"

/* Makes c, whose req is authorised, a stream from event `cursor` on. */
void stream_begin(struct conn *c, uint64_t cursor);
void stream_end(struct conn *c);	/* c is closing */
/* Sends what there is, until it would block. */
void stream_pump(struct conn *c);
/* The relay stops: come back, but not all at once. */
void stream_farewell(struct conn *c);
void stream_keepalive(struct conn *c);
/* For stream_turn.c.  Frames on their way: 1: all sent, 0: blocked, -1:
 * broken; and the rest is for when there is room. */
int stream_send_frames(struct conn *c, struct frame **f, size_t n);
void stream_wait(struct conn *c);
/* Mail from the hub, and a turn of the work that it brings: at most
 * STREAM_SLICE streams. */
void stream_news(struct loop *l, struct channel *ch);
void stream_turn(struct loop *l);

#endif
