/* SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "runner/broker/conn.h"

/* How long a state may last without anything moving, in ms.  An answer may be
 * long in coming: models think. */
static const int64_t patience_ms[] = {
	[CONN_HEAD] = 120000, [CONN_HELLO] = 10000, [CONN_SHAKE] = 10000,
	[CONN_HOLD] = 60000, [CONN_LOOKUP] = 30000, [CONN_DIAL] = 15000,
	[CONN_UPSHAKE] = 15000, [CONN_EXCHANGE] = 900000,
	[CONN_TUNNEL] = 900000, [CONN_DRAIN] = 2000, [CONN_DEAD] = 0,
};
/* And how long in all, where a trickle would keep it alive. */
#define HANDSHAKE_MS 20000
#define HEAD_MS 30000
#define ROUNDS 32	/* of one connection before others have their turn */

static void ready(struct watch *w, uint32_t events)
{
	struct side *s = (struct side *)w;
	struct conn *c = (struct conn *)((char *)s -
					 offsetof(struct conn, client));
	side_seen(s, events);
	if (events & EPOLLERR)
		s->broken = true;
	conn_work(c);
	/* nobody is there any more, and nothing of theirs is left to read */
	if (events & EPOLLHUP && c->state != CONN_DEAD && c->client.eof)
		conn_close(c);
}

void conn_new(struct broker *b, int fd, enum door_kind door)
{
	struct conn *c = calloc(1, sizeof *c);
	int one = 1;
	if (!c) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	c->b = b;
	c->door = door;
	c->id = ++b->next_id;
	c->client.watch = (struct watch){ .fd = -1, .ready = ready };
	c->client.ready = true;
	c->up.watch.fd = -1;
	if (watch_add(&c->client.watch, b->epfd, fd, EPOLLIN) < 0) {
		close(fd);
		free(c);
		return;
	}
	c->next = b->conns;
	if (b->conns)
		b->conns->prev = c;
	b->conns = c;
	b->conn_n++;
	c->moved_ms = b->now_ms;
	conn_enter(c, door == DOOR_HTTPS ? CONN_HELLO : CONN_HEAD);
}

void conn_enter(struct conn *c, enum conn_state s)
{
	c->state = s;
	c->state_ms = c->moved_ms = c->b->now_ms;
}

void conn_close(struct conn *c)
{
	struct broker *b = c->b;
	if (c->state == CONN_DEAD)
		return;
	request_free(c);
	side_close(&c->client);
	side_close(&c->up);
	if (c->prev)
		c->prev->next = c->next;
	else
		b->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->state = CONN_DEAD;
	c->prev = NULL;
	c->next = b->dead;
	b->dead = c;
	b->conn_n--;
}

void conn_free(struct conn *c) { free(c); }

static bool step(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return request_head(c);
	case CONN_HELLO:
		return front_hello(c);
	case CONN_SHAKE:
		return front_shake(c);
	case CONN_HOLD:
		return request_hold(c);
	case CONN_DIAL:
		return dial_step(c);
	case CONN_UPSHAKE:
		return dial_shake(c);
	case CONN_EXCHANGE:
		return exchange_step(c);
	case CONN_TUNNEL:
		return tunnel_step(c);
	case CONN_DRAIN:
		return answer_drain(c);
	case CONN_LOOKUP:
	case CONN_DEAD:
		break;
	}
	return false;
}

/* How much of the box's bytes this state can use; 0: they stay where they
 * are, and so does the box. */
static size_t client_room(const struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return HTTP_REQUEST_MAX + 1;
	case CONN_HELLO:
		return SIDE_READ;
	case CONN_HOLD:
	case CONN_DRAIN:
	case CONN_TUNNEL:
		return SIDE_READ;
	case CONN_EXCHANGE:
		return side_pending(&c->up) < SIDE_OUT_MAX &&
		       !http_body_done(&c->req->from) ? SIDE_READ : 0;
	case CONN_SHAKE:
	case CONN_LOOKUP:
	case CONN_DIAL:
	case CONN_UPSHAKE:
	case CONN_DEAD:
		break;
	}
	return 0;
}

static size_t up_room(const struct conn *c)
{
	if (c->state == CONN_TUNNEL)
		return side_pending(&c->client) < SIDE_OUT_MAX ? SIDE_READ : 0;
	if (c->state != CONN_EXCHANGE)
		return 0;
	if (!c->req->status)
		return HTTP_ANSWER_MAX + 1;
	return side_pending(&c->client) < SIDE_OUT_MAX ? SIDE_READ : 0;
}

static bool round_of(struct conn *c)
{
	bool any = false;
	size_t room = client_room(c);
	if (room)
		any |= side_fill(&c->client, room);
	room = up_room(c);
	if (room)
		any |= side_fill(&c->up, room);
	any |= step(c);
	if (c->state == CONN_DEAD)
		return false;
	/* a handshake's bytes are its own to send */
	if (c->state != CONN_SHAKE)
		any |= side_flush(&c->client);
	if (c->state == CONN_EXCHANGE || c->state == CONN_TUNNEL)
		any |= side_flush(&c->up);
	if (c->client.broken) {
		conn_close(c);
		return false;
	}
	return any;
}

static void arm(struct conn *c)
{
	if (c->state == CONN_SHAKE)
		watch_arm(&c->client.watch, tls_wants_write(c->client.tls) ?
			  EPOLLOUT : EPOLLIN);
	else
		side_arm(&c->client, client_room(c) > 0);
	if (!side_is_open(&c->up))
		return;
	if (c->state == CONN_DIAL)
		watch_arm(&c->up.watch, EPOLLOUT);
	else if (c->state == CONN_UPSHAKE)
		watch_arm(&c->up.watch, tls_wants_write(c->up.tls) ?
			  EPOLLOUT : EPOLLIN);
	else	/* between requests its end is heard of */
		side_arm(&c->up, up_room(c) > 0 || c->state == CONN_HEAD);
}

static void queue(struct conn *c)
{
	if (c->queued)
		return;
	c->queued = true;
	c->again = c->b->again;
	c->b->again = c;
}

void conn_work(struct conn *c)
{
	int rounds = 0;
	if (c->state == CONN_DEAD)
		return;
	while (round_of(c)) {
		c->moved_ms = c->b->now_ms;
		if (++rounds == ROUNDS) {
			queue(c);
			break;
		}
	}
	if (c->state != CONN_DEAD)
		arm(c);
}

/* What is idle between requests holds no memory, and no upstream for long. */
static void tick_idle(struct conn *c)
{
	if (c->state != CONN_HEAD || c->b->now_ms - c->moved_ms < 1000)
		return;
	side_rest(&c->client);
	side_rest(&c->up);
	if (side_is_open(&c->up) && c->b->now_ms - c->moved_ms > 30000)
		side_close(&c->up);
}

void conn_tick(struct conn *c)
{
	int64_t now = c->b->now_ms, still = now - c->moved_ms;
	bool late = still > patience_ms[c->state];
	if ((c->state == CONN_HELLO || c->state == CONN_SHAKE ||
	     c->state == CONN_DRAIN) && now - c->state_ms > HANDSHAKE_MS)
		late = true;
	if (c->state == CONN_HEAD && c->client.in.len &&
	    now - c->state_ms > patience_ms[CONN_HEAD] + HEAD_MS)
		late = true;
	if (!late) {
		tick_idle(c);
		return;
	}
	switch (c->state) {
	case CONN_LOOKUP:
	case CONN_DIAL:
	case CONN_UPSHAKE:
		answer_fail(c, 504, "the upstream cannot be reached: no "
			    "answer in time");
		conn_work(c);
		break;
	case CONN_EXCHANGE:
		answer_fail(c, 504, "the upstream gave no answer in time");
		conn_work(c);
		break;
	case CONN_HEAD:
	case CONN_HELLO:
	case CONN_SHAKE:
	case CONN_HOLD:
	case CONN_TUNNEL:
	case CONN_DRAIN:
	case CONN_DEAD:
		conn_close(c);
		break;
	}
}
