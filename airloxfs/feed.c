/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "airloxfs/feed.h"
#include "core/host/check.h"

#define WAITING_MAX 1000
#define TRIES 4

int feed_open(struct feed *f, struct peer *p,
	      int (*show)(void *arg, const struct shown *s, struct err *e),
	      void *arg, struct err *e)
{
	*f = (struct feed){ .peer = p, .show = show, .arg = arg };
	f->listen = peer_wire(p, e);
	f->get = f->listen ? peer_wire(p, e) : NULL;
	return f->get ? 0 : -1;
}

void feed_close(struct feed *f)
{
	wire_free(f->listen);
	wire_free(f->get);
	for (size_t i = 0; i < f->waiting_n; i++)
		incoming_free(f->waiting[i]);
	free(f->waiting);
	free(f->wanted);
	*f = (struct feed){ 0 };
}

/* --- items --- */

/* Takes the item over: somebody who has it may bring it back. */
static void wait_for(struct feed *f, struct incoming *in)
{
	void *v = f->waiting_n < WAITING_MAX ?
		realloc(f->waiting, (f->waiting_n + 1) * sizeof in) : NULL;
	if (!v) {
		incoming_free(in);
		return;
	}
	f->waiting = v;
	f->waiting[f->waiting_n++] = in;
	wire_want(f->get, in->env.header.id, NULL);
}

static struct incoming *stop_waiting(struct feed *f, const char *id)
{
	for (size_t i = 0; i < f->waiting_n; i++) {
		struct incoming *in = f->waiting[i];
		if (strcmp(in->env.header.id, id) != 0)
			continue;
		f->waiting[i] = f->waiting[--f->waiting_n];
		return in;
	}
	return NULL;
}

static enum shown_status status_of(const struct err *e)
{
	if (e->code == ERR_NOT_FOUND)
		return SHOWN_EVICTED;
	return peer_may_retry(e) || e->code == ERR_SYS ||
	       e->code == ERR_FULL ? SHOWN_PENDING : SHOWN_REJECTED;
}

static void wait_ms(int64_t ms)
{
	if (ms <= 0)
		return;
	const struct timespec t = { .tv_sec = ms / 1000,
				    .tv_nsec = ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

/* An event comes once: a blob that did not come is asked for again. */
static int fetch(struct feed *f, struct incoming *in, struct err *why)
{
	int fd = peer_fetch(f->peer, f->get, in, NULL, NULL, why);
	for (unsigned n = 0; fd < 0 && n < TRIES && peer_may_retry(why); n++) {
		wait_ms(peer_delay_ms(n, wire_retry_after_ms(f->get)));
		fd = peer_fetch(f->peer, f->get, in, NULL, NULL, why);
	}
	return fd;
}

/* Fetches, opens, acknowledges and shows.  *gone in: it was shown as that
 * already; out: it is. */
static int show_item(struct feed *f, struct incoming *in, bool *gone,
		     struct err *e)
{
	bool again = *gone;
	struct err why = { 0 };
	struct shown s = { .seq = in->seq, .id = in->env.header.id,
			   .item = in, .why = &why };
	s.author = people_find(&f->peer->people, in->author.pub);
	cleanup_fd int fd = fetch(f, in, &why);
	if (fd >= 0)
		s.opened = opened_new(f->peer, in, fd, check_content, NULL,
				      &why);
	if (fd >= 0 && !in->mine &&
	    cache_settle(f->peer->cache, &fd, 1, NULL) == 0)
		peer_ack(f->get, s.id, NULL);
	if (!s.opened)
		s.status = status_of(&why);
	*gone = s.status == SHOWN_EVICTED;
	int r = again && *gone ? 0 : f->show(f->arg, &s, e);
	opened_free(s.opened);
	return r;
}

static int hear_item(struct feed *f, struct incoming *in, bool gone,
		     struct err *e)
{
	enum feed_pick pick = f->quiet ? FEED_LEAVE :
		f->pick ? f->pick(f->arg, in) : FEED_SHOW;
	if (pick == FEED_KEEP)
		return 0;
	int r = pick == FEED_SHOW ? show_item(f, in, &gone, e) : 0;
	if (gone)
		wait_for(f, in);
	else
		incoming_free(in);
	return r;
}

static int hear_rejected(struct feed *f, const struct news *n, struct err *e)
{
	const struct shown s = { .status = SHOWN_REJECTED, .seq = n->seq,
				 .id = n->id[0] ? n->id : NULL,
				 .author = n->who, .why = &n->why };
	return f->quiet ? 0 : f->show(f->arg, &s, e);
}

/* --- what others ask for --- */

static void bring_back(struct feed *f, const char *id)
{
	cleanup_fd int fd = cache_open_blob(f->peer->cache, id, NULL);
	int64_t size = fd < 0 ? -1 : file_size(fd, NULL);
	if (size > 0)
		wire_blob_put(f->get, id, fd, (uint64_t)size, NULL);
}

static void forget_want(struct feed *f, const char *id)
{
	for (size_t i = 0; i < f->wanted_n; i++)
		if (!strcmp(f->wanted[i], id))
			memcpy(f->wanted[i--], f->wanted[--f->wanted_n],
			       sizeof *f->wanted);
}

/* What history asks for was perhaps brought back since: it waits until we are
 * live. */
static void hear_want(struct feed *f, const struct news *n)
{
	if (!n->who || !memcmp(n->pub, f->peer->pub, PRIM_PUB))
		return;
	if (f->live) {
		bring_back(f, n->id);
		return;
	}
	forget_want(f, n->id);
	void *v = f->wanted_n < WAITING_MAX ?
		realloc(f->wanted, (f->wanted_n + 1) * sizeof *f->wanted) :
		NULL;
	if (!v)
		return;
	f->wanted = v;
	strcpy(f->wanted[f->wanted_n++], n->id);
}

static void go_live(struct feed *f)
{
	f->live = true;
	while (f->wanted_n)
		bring_back(f, f->wanted[--f->wanted_n]);
}

static int hear(void *arg, const struct event *ev, struct err *e)
{
	struct feed *f = arg;
	struct incoming *in = NULL;
	struct news n;
	int r = peer_apply(f->peer, ev, &n, e);
	if (r == 0 && f->news)
		r = f->news(f->arg, ev, &n, e);
	if (r == 0 && n.kind == NEWS_ITEM) {
		in = n.item;
		n.item = NULL;
	} else if (r == 0 && n.kind == NEWS_REJECTED) {
		r = hear_rejected(f, &n, e);
	} else if (n.kind == NEWS_WANT) {
		hear_want(f, &n);
	} else if (n.kind == NEWS_RESEEDED) {
		forget_want(f, n.id);
		in = stop_waiting(f, n.id);
	}
	if (in)
		r = hear_item(f, in, n.kind == NEWS_RESEEDED, e);
	news_free(&n);
	if (r == 0 && f->peer->state == PEER_CLOSED)
		return err_set(e, ERR_GONE, "the session is over");
	return r == 0 && f->done ? err_set(e, ERR_SYS, "enough") : r;
}

/* --- following --- */

int feed_now(struct feed *f, struct err *e)
{
	uint64_t count;
	int64_t before;
	do {
		before = f->peer->seq;
		if (wire_events(f->listen, before, hear, f, &count, e) < 0)
			return f->done ? 0 : -1;
	} while (count && f->peer->seq > before);
	return 0;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

int feed_follow(struct feed *f, int64_t end_ms, struct err *e)
{
	go_live(f);
	for (unsigned tries = 0;; tries++) {
		int64_t left = end_ms - clock_mono_ms();
		uint64_t heard = 0;
		if (left <= 0)
			return 0;
		wire_set_total(f->listen, (int)min64(left, INT32_MAX));
		int r = wire_stream(f->listen, f->peer->seq, hear, f, &heard,
				    e);
		if (f->peer->state == PEER_CLOSED || f->done)
			return 0;
		if (clock_mono_ms() >= end_ms)
			return 0;
		if (r < 0 && !peer_may_retry(e))
			return peer_heard(f->peer, e) ? 0 : -1;
		if (heard || r > 0)
			tries = 0;
		wait_ms(min64(peer_delay_ms(tries, wire_retry_after_ms(
						    f->listen)),
			      end_ms - clock_mono_ms()));
	}
}
