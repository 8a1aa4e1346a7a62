/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "relay/crowd.h"
#include "relay/reply.h"
#include "relay/duty.h"
#include "relay/live.h"
#include "relay/state.h"
#include "relay/stream.h"

#define SEND_BUFFER (32 * 1024)	/* a stalled reader costs no more */
#define REPLAY (32u * 1024)

/* Under the lock.  The session's channel on this reactor. */
static struct channel *channel_of(struct loop *l, struct session *s)
{
	struct channel **slot = &s->hub.channel[l->index];
	if (!*slot && (*slot = calloc(1, sizeof **slot))) {
		(*slot)->mail.kind = MAIL_NEWS;
		(*slot)->session = s;
	}
	return *slot;
}

/* Under the lock. */
static bool has_room(const struct conn *c)
{
	struct state *st = c->loop->st;
	return st->metrics.streams < st->limits.streams &&
	       c->req->by->stream_n < st->limits.streams_each;
}

static void count_stream(struct state *st, struct participant *p,
			 struct channel *ch, int n)
{
	ch->stream_n += (uint32_t)n;
	p->stream_n += (uint32_t)n;
	atomic_fetch_add(&st->metrics.streams, (unsigned)n);
}

/* Behind a proxy a stream is what a connection is elsewhere: from here on it
 * is its client's. */
static bool enter_client(struct conn *c)
{
	if (memcmp(&c->req->client, &c->peer, sizeof c->peer) == 0)
		return true;
	if (!crowd_enter(&c->loop->st->limits, &c->req->client))
		return false;
	c->peer = c->req->client;
	return true;
}

void stream_begin(struct conn *c, uint64_t cursor)
{
	struct session *s = c->req->session;
	int size = SEND_BUFFER;
	pthread_mutex_lock(&c->loop->st->lock);
	bool room = has_room(c);
	struct channel *ch = room ? channel_of(c->loop, s) : NULL;
	if (ch)
		count_stream(c->loop->st, c->req->by, ch, 1);
	if (cursor > s->event_n)
		cursor = s->event_n;
	c->live_seen = live_begin(&s->hub, cursor == s->event_n);
	pthread_mutex_unlock(&c->loop->st->lock);
	if (ch && !enter_client(c)) {
		pthread_mutex_lock(&c->loop->st->lock);
		count_stream(c->loop->st, c->req->by, ch, -1);
		pthread_mutex_unlock(&c->loop->st->lock);
		room = false;
	}
	if (!room) {
		reply_later(c, STALL_MS, "too many streams are open; close "
			    "some, or try again later");
		return;
	}
	if (!ch) {
		reply_error(c, 503, "unavailable", "out of memory");
		return;
	}
	setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	reply_stream_head(c);
	c->session = state_ref(s);
	c->by = c->req->by;
	c->cursor = cursor;
	c->frame_at = 0;
	c->channel = ch;
	c->stream_prev = NULL;
	c->stream_next = ch->streams;
	if (ch->streams)
		ch->streams->stream_prev = c;
	ch->streams = c;
	c->state = CONN_STREAM;
	c->deadline_ms = c->loop->now_ms + KEEPALIVE_MS;
	stream_pump(c);
}

void stream_end(struct conn *c)
{
	struct channel *ch = c->channel;
	if (!ch)
		return;
	if (ch->at == c)
		ch->at = c->stream_next;
	if (c->stream_prev)
		c->stream_prev->stream_next = c->stream_next;
	else
		ch->streams = c->stream_next;
	if (c->stream_next)
		c->stream_next->stream_prev = c->stream_prev;
	pthread_mutex_lock(&c->loop->st->lock);
	count_stream(c->loop->st, c->by, ch, -1);
	pthread_mutex_unlock(&c->loop->st->lock);
	if (c->live)
		hub_release(&c->live, 1);
	state_unref(c->session);
	c->session = NULL;
	c->channel = NULL;
	c->live = NULL;
}

void stream_wait(struct conn *c)
{
	if (!c->blocked)
		c->deadline_ms = c->loop->now_ms + STALL_MS;
	c->blocked = true;
	conn_arm(c, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

static void moved(struct conn *c)
{
	c->deadline_ms = c->loop->now_ms + (c->blocked ? STALL_MS :
						KEEPALIVE_MS);
}

/* Its own text: the head, a replay, a keep-alive.  1: all gone, 0: blocked,
 * -1: broken. */
static int send_own(struct conn *c)
{
	while (c->out_at < c->out.len) {
		ssize_t n = conn_send(c, c->out.data + c->out_at,
				      c->out.len - c->out_at, 0);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->out_at += (size_t)n;
		moved(c);
	}
	if (c->out.data)
		buf_free(&c->out);
	c->out_at = 0;
	return 1;
}

/* A live frame, once it has begun.  1: none is left, 0, -1 as above. */
static int send_live(struct conn *c)
{
	while (c->live && c->live_at < c->live->n) {
		ssize_t n = conn_send(c, c->live->text + c->live_at,
				      c->live->n - c->live_at, 0);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->live_at += (uint32_t)n;
		moved(c);
	}
	if (c->live)
		hub_release(&c->live, 1);
	c->live = NULL;
	c->live_at = 0;
	return 1;
}

/* Whether a live frame is next; until: how far the events may go.  A job's
 * output is for those who may read its result; never amid an event. */
static bool look_live(struct conn *c, uint64_t *until)
{
	*until = UINT64_MAX;
	if (c->frame_at || c->by->cert.role == ROLE_RUNNER || c->by->gone)
		return false;
	c->live = live_next(&c->session->hub, &c->live_seen, c->cursor,
			    until);
	return c->live != NULL;
}

/* What left the ring, from the log: the same bytes, so that an event sent in
 * part goes on where it was. */
static int replay(struct conn *c)
{
	struct session *s = c->session;
	struct err e;
	uint32_t n = (uint32_t)c->cursor, end = s->event_n;
	if (c->by->end_seq < end)
		end = (uint32_t)c->by->end_seq + 1;
	if (state_text(c->loop->st, s, TEXT_STREAM, &n, end, REPLAY, &c->out,
			 &e) < 0)
		return -1;
	c->out_at = c->frame_at;
	c->frame_at = 0;
	c->cursor = n;
	return 0;
}

enum next { NEXT_NONE, NEXT_FRAMES, NEXT_OWN, NEXT_END };

/* The frames beyond `most` are for later. */
static void keep_only(struct frame **f, size_t *n, uint64_t most)
{
	if (*n <= most)
		return;
	hub_release(f + most, *n - (size_t)most);
	*n = (size_t)most;
}

/* What to send next.  Frames come with references. */
static enum next look(struct conn *c, struct frame **f, size_t *n)
{
	struct session *s = c->session;
	enum next what = NEXT_FRAMES;
	pthread_mutex_lock(&c->loop->st->lock);
	if (c->duty) {
		what = c->by->gone || s->closed ? NEXT_END :
		       duty_news(c) ? NEXT_OWN : NEXT_NONE;
		pthread_mutex_unlock(&c->loop->st->lock);
		return what;
	}
	uint64_t end = c->by->end_seq, until;
	if (look_live(c, &until)) {
		pthread_mutex_unlock(&c->loop->st->lock);
		return NEXT_OWN;
	}
	*n = c->cursor > end ? 0 : hub_gather(&s->hub, c->cursor, f);
	if (*n && end != FACT_NO_SEQ)
		keep_only(f, n, end + 1 - c->cursor);
	if (*n)
		keep_only(f, n, until - c->cursor);
	if (*n)
		what = NEXT_FRAMES;
	else if (c->cursor > end || (s->closed && c->cursor >= s->event_n))
		what = NEXT_END;
	else if (c->cursor < s->event_n)
		what = replay(c) < 0 ? NEXT_END : NEXT_OWN;
	else
		what = NEXT_NONE;
	pthread_mutex_unlock(&c->loop->st->lock);
	return what;
}

/* Through TLS, one after the other: what could not be sent is offered again
 * as it was. */
static ssize_t send_sealed(struct conn *c, struct frame **f, size_t n)
{
	ssize_t all = 0;
	uint32_t skip = c->frame_at;
	for (size_t i = 0; i < n; i++, skip = 0) {
		ssize_t sent = conn_send(c, f[i]->text + skip,
					 f[i]->n - skip, 0);
		if (sent < 0)
			return all ? all : -1;
		all += sent;
		if ((size_t)sent < f[i]->n - skip)
			break;
	}
	return all;
}

static ssize_t send_plain(struct conn *c, struct frame **f, size_t n)
{
	struct iovec iov[HUB_GATHER];
	if (n == 1)
		return send(c->fd, f[0]->text + c->frame_at,
			    f[0]->n - c->frame_at, MSG_NOSIGNAL);
	for (size_t i = 0; i < n; i++)
		iov[i] = (struct iovec){ f[i]->text, f[i]->n };
	iov[0].iov_base = f[0]->text + c->frame_at;
	iov[0].iov_len = f[0]->n - c->frame_at;
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	return sendmsg(c->fd, &m, MSG_NOSIGNAL);
}

int stream_send_frames(struct conn *c, struct frame **f, size_t n)
{
	ssize_t sent = c->tls ? send_sealed(c, f, n) : send_plain(c, f, n);
	if (sent < 0)
		return errno == EAGAIN ? 0 : -1;
	moved(c);
	size_t left = (size_t)sent + c->frame_at, i = 0;
	for (; i < n && left >= f[i]->n; i++)
		left -= f[i]->n;
	c->loop->events_sent += i;
	c->cursor += i;
	c->frame_at = (uint32_t)left;
	return i == n ? 1 : 0;
}

void stream_pump(struct conn *c)
{
	struct frame *f[HUB_GATHER];
	size_t n;
	for (int turn = 0; turn < 8; turn++) {
		int rc = send_own(c);
		if (rc > 0)
			rc = send_live(c);
		if (rc > 0) {
			enum next what = look(c, f, &n);
			if (what == NEXT_END) {
				conn_close(c);
				return;
			}
			if (what == NEXT_NONE) {
				c->blocked = false;
				conn_arm(c, EPOLLIN | EPOLLRDHUP);
				return;
			}
			if (what == NEXT_OWN)
				continue;
			rc = stream_send_frames(c, f, n);
			hub_release(f, n);
		}
		if (rc < 0) {
			conn_close(c);
			return;
		}
		if (rc == 0)
			break;
	}
	/* blocked, or others have their turn now: level-triggered EPOLLOUT
	 * brings it back either way */
	stream_wait(c);
}

void stream_keepalive(struct conn *c)
{
	buf_add_str(&c->out, ":\n\n");
	stream_pump(c);
}

void stream_farewell(struct conn *c)
{
	if (c->frame_at || c->live)
		return;		/* amid an event that nobody may break */
	buf_addf(&c->out, ": the relay stops; come back\nretry: %d\n\n",
		 1000 + c->fd % 16 * 250);
	send_own(c);
	if (c->tls)
		tls_shutdown(c->tls);
}
