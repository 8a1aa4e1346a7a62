/* SPDX-License-Identifier: MIT
 *
 * stream_turn: news reach the streams of a reactor, a slice at a time. */
#include "relay/live.h"
#include "relay/state.h"
#include "relay/stream.h"

void stream_news(struct loop *l, struct channel *ch)
{
	pthread_mutex_lock(&l->st->lock);
	ch->posted = false;
	pthread_mutex_unlock(&l->st->lock);
	/* A pass that is under way goes on, and those that it has served are
	 * served again after it: each then gets all that came meanwhile at
	 * once. */
	if (ch->active) {
		ch->again = true;
		state_unref(ch->session);
		return;
	}
	ch->at = ch->streams;
	ch->active = true;
	ch->next_active = NULL;
	*l->active_last = ch;
	l->active_last = &ch->next_active;
}

/* What most streams of a channel are sent next: looked up once for a slice of
 * them. */
struct volley {
	struct frame *f[HUB_GATHER];
	size_t n;
	uint64_t from;
};

/* Not where a stream may have to end, or where live output has its place:
 * each of them looks for itself then. */
static void volley_begin(struct volley *v, struct loop *l,
			 const struct channel *ch)
{
	struct session *s = ch->session;
	const struct conn *c = ch->at;
	v->n = 0;
	while (c && c->blocked)
		c = c->stream_next;
	if (!c)
		return;
	v->from = c->cursor;
	pthread_mutex_lock(&l->st->lock);
	if (!s->closed && !live_waits(&s->hub))
		v->n = hub_gather(&s->hub, v->from, v->f);
	pthread_mutex_unlock(&l->st->lock);
}

static bool volley_suits(const struct volley *v, const struct conn *c)
{
	return v->n && c->cursor == v->from && !c->frame_at && !c->out.len &&
	       !c->live && !c->duty &&
	       atomic_load_explicit(&c->by->end_seq, memory_order_relaxed) ==
	       FACT_NO_SEQ;
}

/* What comes after the volley brings another pass. */
static void serve(struct conn *c, struct volley *v)
{
	int rc = volley_suits(v, c) ? stream_send_frames(c, v->f, v->n) : 2;
	if (rc < 0)
		conn_close(c);
	else if (rc == 0)
		stream_wait(c);
	else if (rc == 2 || v->n == HUB_GATHER)
		stream_pump(c);
}

/* Up to `left` streams; gives how many were not needed. */
static int serve_some(struct loop *l, struct channel *ch, int left)
{
	struct volley v;
	volley_begin(&v, l, ch);
	while (ch->at && left > 0) {
		struct conn *c = ch->at;
		ch->at = c->stream_next;
		if (!c->blocked) {
			serve(c, &v);
			left--;
		}
	}
	hub_release(v.f, v.n);
	return left;
}

static void channel_done(struct loop *l, struct channel *ch)
{
	l->active = ch->next_active;
	if (!l->active)
		l->active_last = &l->active;
	ch->active = false;
	state_unref(ch->session);
}

void stream_turn(struct loop *l)
{
	int left = STREAM_SLICE;
	while (l->active && left > 0) {
		struct channel *ch = l->active;
		left = serve_some(l, ch, left);
		if (ch->at)
			break;
		if (ch->again) {
			ch->again = false;
			ch->at = ch->streams;
		} else {
			channel_done(l, ch);
		}
	}
	if (l->events_sent)
		METRIC_ADD(l->st->metrics.events_sent, l->events_sent);
	l->events_sent = 0;
}
