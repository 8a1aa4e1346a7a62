/* SPDX-License-Identifier: MIT
 *
 * serve_event: what happened: as a list, as a stream, as the audit trail. */
#include "relay/reply.h"
#include "relay/route.h"
#include "relay/state.h"
#include "relay/stream.h"

static uint32_t length(struct conn *c, enum text_kind text)
{
	struct session *s = c->req->session;
	pthread_mutex_lock(&c->loop->st->lock);
	uint32_t n = text == TEXT_AUDIT ? s->rec_n : s->event_n;
	pthread_mutex_unlock(&c->loop->st->lock);
	return n;
}

void serve_events(struct conn *c)
{
	uint32_t end = length(c, TEXT_EVENTS);
	int64_t first = c->req->after + 1;
	reply_listing(c, TEXT_EVENTS, first < end ? (uint32_t)first : end,
		      end);
}

void serve_audit(struct conn *c)
{
	reply_listing(c, TEXT_AUDIT, 0, length(c, TEXT_AUDIT));
}

void serve_stream(struct conn *c)
{
	c->duty = false;
	stream_begin(c, (uint64_t)(c->req->after + 1));
}
