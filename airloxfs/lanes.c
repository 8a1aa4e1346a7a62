/* SPDX-License-Identifier: MIT
 *
 * Fetching, verifying, revealing, acknowledging. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "airloxfs/coming.h"
#include "airloxfs/deliver_private.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"

#define RETRY_MS 5000		/* after a fault of this machine */
#define WANT_EVERY_MS (INT64_C(3600) * 1000)
#define ACK_IDLE_MS 60000
#define FREE_BYTES ((uint64_t)1 << 30)	/* this much or a twentieth of the */
#define FREE_PART 20			/* disk stays free */
#define COUNT_EVERY_MS 10000

/* --- tasks; with d->lock --- */

static void queue_put(struct queue *q, struct task *t)
{
	*q->last = t;
	q->last = &t->next;
	q->n++;
}

static struct task *queue_take(struct queue *q)
{
	struct task *t = q->first;
	q->first = t->next;
	if (!q->first)
		q->last = &q->first;
	q->n--;
	t->next = NULL;
	return t;
}

static void unsettled_put(struct deliver *d, struct task *t)
{
	struct task *before = d->newest;
	/* what an earlier mount left is there before what the stream tells */
	while (before && before->seq > t->seq)
		before = before->before;
	t->unsettled = true;
	t->before = before;
	t->after = before ? before->after : d->oldest;
	*(before ? &before->after : &d->oldest) = t;
	*(t->after ? &t->after->before : &d->newest) = t;
}

static void set_cursor(struct deliver *d)
{
	int64_t to = d->applied;
	if (d->oldest && (int64_t)d->oldest->seq - 1 < to)
		to = (int64_t)d->oldest->seq - 1;
	in_set_cursor(d->m->in, to);
}

static void task_free(struct task *t)
{
	if (t->fd >= 0)
		close(t->fd);
	incoming_free(t->inc);
	free(t);
}

/* One that was abandoned stays among the unsettled: the cursor does not pass
 * it, and the next mount begins with it. */
static void settle(struct deliver *d, struct task *t)
{
	if (t->abandoned && t->unsettled)
		return;
	pthread_mutex_lock(&d->lock);
	if (t->unsettled) {
		*(t->before ? &t->before->after : &d->oldest) = t->after;
		*(t->after ? &t->after->before : &d->newest) = t->before;
	}
	set_cursor(d);
	pthread_mutex_unlock(&d->lock);
	task_free(t);
}

void lanes_applied(struct deliver *d, int64_t seq)
{
	pthread_mutex_lock(&d->lock);
	d->applied = seq;
	set_cursor(d);
	pthread_mutex_unlock(&d->lock);
}

void lanes_push(struct deliver *d, enum task_kind kind, struct incoming *inc)
{
	struct task *t = calloc(1, sizeof *t);
	if (!t) {
		incoming_free(inc);
		return;
	}
	t->kind = kind;
	t->seq = inc->seq;
	t->inc = inc;
	t->fd = -1;
	bool small = inc->env.header.size < LANE_SMALL_MAX;
	struct queue *q = small ? &d->small : &d->large;
	pthread_mutex_lock(&d->lock);
	while (kind == TASK_NEW && q->n >= LANE_QUEUE_MAX && !d->ending)
		pthread_cond_wait(&q->room, &d->lock);
	if (kind == TASK_NEW)
		unsettled_put(d, t);
	queue_put(q, t);
	pthread_mutex_unlock(&d->lock);
	pthread_cond_signal(&q->more);
}

void lanes_reseed(struct deliver *d, const char *id, uint64_t seq)
{
	struct task *t = calloc(1, sizeof *t);
	if (!t)
		return;
	t->kind = TASK_RESEED;
	t->seq = seq;
	t->fd = -1;
	strcpy(t->id, id);
	pthread_mutex_lock(&d->lock);
	/* who asks a thousand times may ask once more */
	bool fits = d->large.n < LANE_QUEUE_MAX;
	if (fits)
		queue_put(&d->large, t);
	pthread_mutex_unlock(&d->lock);
	if (fits)
		pthread_cond_signal(&d->large.more);
	else
		task_free(t);
}

static struct task *next_task(struct deliver *d, struct queue *q, bool wait)
{
	pthread_mutex_lock(&d->lock);
	while (wait && !d->ending && !q->first)
		pthread_cond_wait(&q->more, &d->lock);
	struct task *t = d->ending || !q->first ? NULL : queue_take(q);
	if (t && q->n == LANE_QUEUE_MAX - 1)
		pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&d->lock);
	return t;
}

/* --- acknowledging --- */

/* Of what was revealed nothing is needed but its id.  It stays unsettled until
 * the relay has heard of it: a mount that ends before says it at its next
 * start, or the blob would be kept there for us until the session ends. */
static void push_ack(struct deliver *d, struct task *t)
{
	if (t->inc)
		strcpy(t->id, t->inc->env.header.id);
	incoming_free(t->inc);
	t->inc = NULL;
	t->fresh = NULL;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	pthread_mutex_lock(&d->lock);
	queue_put(&d->acks, t);
	pthread_cond_broadcast(&d->more);
	pthread_mutex_unlock(&d->lock);
}

/* Revealed by an earlier mount, which did not see the relay's answer. */
static void load_unacked(void *arg, uint64_t seq, const char *id)
{
	struct deliver *d = arg;
	struct task *t = calloc(1, sizeof *t);
	if (!t)
		return;
	t->seq = seq;
	t->fd = -1;
	strcpy(t->id, id);
	pthread_mutex_lock(&d->lock);
	unsettled_put(d, t);
	pthread_mutex_unlock(&d->lock);
	push_ack(d, t);
}

/* --- pending --- */

static void add_pending(struct deliver *d, uint64_t seq, const char *id,
			struct bytes envelope, int64_t asked_ms)
{
	struct pending *p = calloc(1, sizeof *p);
	if (!p)
		return;
	p->seq = seq;
	p->asked_ms = asked_ms;
	strcpy(p->id, id);
	buf_add(&p->envelope, envelope.p, envelope.n);
	pthread_mutex_lock(&d->lock);
	p->next = d->pending;
	d->pending = p;
	d->to_ask = true;
	pthread_cond_broadcast(&d->more);
	pthread_mutex_unlock(&d->lock);
	mount_lock(d->m);
	d->m->pending++;
	mount_unlock(d->m);
}

/* Takes the pending item out and back to a lane.  By id, or by seq. */
static bool revive(struct deliver *d, const char *id, uint64_t seq)
{
	struct pending *p = NULL;
	pthread_mutex_lock(&d->lock);
	for (struct pending **at = &d->pending; *at; at = &(*at)->next)
		if (id ? !strcmp((*at)->id, id) : (*at)->seq == seq) {
			p = *at;
			*at = p->next;
			break;
		}
	pthread_mutex_unlock(&d->lock);
	if (!p)
		return false;
	mount_lock(d->m);
	d->m->pending--;
	mount_unlock(d->m);
	struct incoming *inc = in_incoming(d->m, p->seq,
					   buf_bytes(&p->envelope));
	if (inc)
		lanes_push(d, TASK_AGAIN, inc);
	buf_free(&p->envelope);
	free(p);
	return inc != NULL;
}

void lanes_reappeared(struct deliver *d, const char *id)
{
	revive(d, id, 0);
}

bool deliver_want(struct mount *m, uint64_t seq)
{
	return m->deliver && revive(m->deliver, NULL, seq);
}

static bool in_queue(const struct queue *q, const char *id)
{
	for (const struct task *t = q->first; t; t = t->next)
		if (t->kind == TASK_AGAIN &&
		    strcmp(t->inc->env.header.id, id) == 0)
			return true;
	return false;
}

static bool is_queued(struct deliver *d, const char *id)
{
	pthread_mutex_lock(&d->lock);
	bool is = in_queue(&d->small, id) || in_queue(&d->large, id);
	pthread_mutex_unlock(&d->lock);
	return is;
}

void deliver_refetch(struct mount *m, const char *id)
{
	cleanup_buf struct buf raw = { 0 };
	uint64_t seq;
	if (!m->deliver || in_envelope(m, id, &seq, &raw) < 0)
		return;
	if (is_queued(m->deliver, id))
		return;
	struct incoming *inc = in_incoming(m, seq, buf_bytes(&raw));
	if (inc)
		lanes_push(m->deliver, TASK_AGAIN, inc);
}

/* One that comes here again is known to be missing, and its holders were asked
 * not long ago: a relay that says "present" and has nothing gets no loop. */
static void set_pending(struct deliver *d, const struct task *t,
			const struct err *why)
{
	const struct incoming *inc = t->inc;
	bool again = t->kind != TASK_NEW;
	struct err e;
	if (!again)
		in_note_pending(d->m, t->seq, buf_bytes(&inc->raw));
	if (!again && in_sync(d->m->in, &e) < 0)
		mount_failed(d->m, &e);
	mount_log(d->m, "item %llu is not here yet: %s; it is asked for again",
		  (unsigned long long)t->seq, why->why);
	add_pending(d, t->seq, inc->env.header.id, buf_bytes(&inc->raw),
		    again ? clock_mono_ms() : 0);
}

/* --- one item --- */

/* A fault of the network or of this machine is no fault of the item. */
static bool is_passing(const struct err *e)
{
	return e->code == ERR_NET || e->code == ERR_RATE ||
	       e->code == ERR_FULL || e->code == ERR_SYS ||
	       e->code == ERR_MEMORY || e->code == ERR_TIMEOUT;
}

/* Gone, or something between us and it that refuses, or that is no relay: not
 * a word about the item, which may come yet. */
static bool is_missing(const struct err *e)
{
	return e->code == ERR_NOT_FOUND || e->code == ERR_GONE ||
	       e->code == ERR_PROTO || (e->http && e->code != ERR_AUTH &&
					!is_passing(e));
}

/* What could not be checked is tried again, but not for as long as it takes:
 * an archive can be made to keep every checker busy.  0: refused, 1: later. */
static int cannot_check(struct deliver *d, struct task *t, struct err *e)
{
	if (e->code != ERR_TIMEOUT)
		return 1;
	in_refuse(d->m, t->seq, t->inc->env.header.id, t->inc->author_shown,
		  e);
	return 0;
}

static bool may_go(void *arg, const char *id)
{
	return in_is_own(arg, id);
}

/* --cache-max.  Others write there too (what we send, the published client):
 * counted anew now and then, and before anything is said to be too much.  What
 * we sent is there as a courtesy to those who come late: it goes first. */
static bool fits(struct deliver *d, uint64_t n)
{
	int64_t now = clock_mono_ms();
	uint64_t max = d->m->opt.cache_max;
	pthread_mutex_lock(&d->lock);
	bool fit = d->cached + n <= max;
	if (!fit || !d->cached_ms || now - d->cached_ms > COUNT_EVERY_MS) {
		d->cached = cache_used(d->m->peer->cache);
		d->cached_ms = now;
		if (d->cached + n > max)
			d->cached -= cache_make_room(d->m->peer->cache,
				d->cached + n - max, may_go, d->m->in);
		fit = d->cached + n <= max;
	}
	if (fit)
		d->cached += n;
	pthread_mutex_unlock(&d->lock);
	return fit;
}

static void count_unseen(struct deliver *d, int by)
{
	pthread_mutex_lock(&d->lock);
	d->unseen += (size_t)by;
	pthread_mutex_unlock(&d->lock);
}

static int room_for(struct deliver *d, uint64_t n, struct err *e)
{
	struct mount *m = d->m;
	struct statvfs st;
	if (fstatvfs(m->peer->cache->blobs, &st) < 0)
		return err_sys(e, "cannot look at the cache's disk");
	uint64_t all = (uint64_t)st.f_blocks * st.f_frsize / FREE_PART;
	uint64_t keep = all < FREE_BYTES ? all : FREE_BYTES;
	if ((uint64_t)st.f_bavail * st.f_frsize < n + keep)
		return err_set(e, ERR_FULL, "the disk of %s is nearly full: "
			       "make room, items are fetched when there is "
			       "some", m->peer->cache->path);
	pthread_mutex_lock(&d->lock);
	size_t items = d->unseen;
	pthread_mutex_unlock(&d->lock);
	mount_lock(m);
	items += tree_count(m->dir_in);
	mount_unlock(m);
	if (items >= m->opt.items_max)
		return err_set(e, ERR_FULL, "in/ has %zu entries, and more are "
			       "too many: rm what is not needed, or mount "
			       "with a larger --items-max", items);
	if (fits(d, n))
		return 0;
	return err_set(e, ERR_FULL, "an item of %llu bytes is too much for "
		       "--cache-max: rm what is not needed in in/, or mount "
		       "with more", (unsigned long long)n);
}

/* 0: verified, or settled with a refusal; 1: not here; -1: passing fault. */
static int take_item(struct deliver *d, struct wire *w, struct task *t,
		     struct err *e)
{
	struct mount *m = d->m;
	struct incoming *inc = t->inc;
	if (t->fd < 0 &&
	    room_for(d, (uint64_t)inc->env.header.size + BLOB_OVERHEAD,
		     e) < 0)
		return -1;
	if (t->fd < 0 && t->kind == TASK_AGAIN)
		in_restore(m, inc->env.header.id, e);
	bool verified = false;
	bool large = inc->env.header.size >= LANE_SMALL_MAX;
	if (t->fd < 0 && large && inc->env.header.kind == ITEM_FILE)
		t->fd = coming_fetch(m, w, inc, &t->fresh, &verified, e);
	else if (t->fd < 0)
		t->fd = peer_fetch(m->peer, w, inc, NULL, NULL, e);
	if (t->fd < 0 && is_missing(e))
		return 1;
	if (t->fd >= 0 && !verified)
		t->fresh = in_verify(m, inc, t->fd, e);
	if (t->fresh) {
		count_unseen(d, 1);
		return 0;
	}
	if (t->fd >= 0 && is_passing(e) && e->code != ERR_FULL &&
	    ++t->faults >= LANE_FAULTS)
		return cannot_check(d, t, e);
	if (is_passing(e))
		return -1;
	if (e->code == ERR_AUTH) {
		mount_heard(m, e);
		return -1;
	}
	in_refuse(m, t->seq, inc->env.header.id, inc->author_shown, e);
	return 0;
}

/* Said once, and in status for as long as it lasts. */
static void wait_for_room(struct mount *m, bool *waits, const struct err *e)
{
	bool full = e && e->code == ERR_FULL && !e->http;
	if (full && !*waits)
		mount_failed(m, e);
	mount_lock(m);
	if (full)
		m->waits_for = *e;
	m->waiting += (unsigned)full - (unsigned)*waits;
	mount_unlock(m);
	*waits = full;
}

static void reseed(struct deliver *d, struct wire *w, const struct task *t)
{
	struct mount *m = d->m;
	struct err e;
	cleanup_fd int fd = cache_open_blob(m->peer->cache, t->id, &e);
	int64_t n = fd < 0 ? -1 : file_size(fd, &e);
	if (n <= 0)
		return;
	if (wire_blob_put(w, t->id, fd, (uint64_t)n, &e) == 0)
		mount_log(m, "item %llu was given back to the relay, somebody "
			  "asked for it", (unsigned long long)t->seq);
}

/* --- lanes --- */

struct lane {
	struct deliver *d;
	struct queue *q;
	struct wire *wire;
};

static int make_durable(struct deliver *d, struct task **v, size_t n,
			struct err *e)
{
	int fds[LANE_BATCH];
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (v[i]->fresh && !in_is_whole(v[i]->fresh))
			fds[k++] = v[i]->fd;
	return cache_settle(d->m->peer->cache, fds, k, e) < 0 ||
	       in_sync(d->m->in, e) < 0 ? -1 : 0;
}

/* Items that were taken and share a sync. */
struct batch {
	struct task *v[LANE_BATCH];
	size_t n;
};

/* Durable first, then visible, then acknowledged. */
static void reveal_batch(struct deliver *d, struct batch *b)
{
	struct err e;
	while (b->n && make_durable(d, b->v, b->n, &e) < 0) {
		mount_failed(d->m, &e);
		if (!deliver_pause(d, RETRY_MS))
			break;
	}
	for (size_t i = 0; i < b->n; i++) {
		struct task *t = b->v[i];
		if (t->fresh) {
			count_unseen(d, -1);
			in_reveal(d->m, t->fresh);
			push_ack(d, t);
		} else {
			settle(d, t);
		}
	}
	b->n = 0;
}

/* Whoever must wait lets those be seen first that are ready. */
static void take_until_done(struct deliver *d, struct wire *w,
			    struct task *t, struct batch *ready)
{
	struct err e = { 0 };
	unsigned tries = 0;
	bool waits = false;
	for (;;) {
		int rc = take_item(d, w, t, &e);
		if (rc == 1)
			set_pending(d, t, &e);
		wait_for_room(d->m, &waits, rc < 0 ? &e : NULL);
		if (rc >= 0)
			return;
		reveal_batch(d, ready);
		if (!waits)
			mount_heard(d->m, &e);
		int64_t ms = e.code == ERR_NET || e.code == ERR_RATE
			? peer_delay_ms(tries++, wire_retry_after_ms(w))
			: RETRY_MS;
		if (!deliver_pause(d, ms) || d->m->closed) {
			wait_for_room(d->m, &waits, NULL);
			t->abandoned = true;
			return;
		}
	}
}

static void *lane_thread(void *arg)
{
	struct lane l = *(struct lane *)arg;
	size_t batch = l.q == &l.d->small ? LANE_BATCH : 1;
	struct batch ready = { .n = 0 };
	struct task *t;
	free(arg);
	while ((t = next_task(l.d, l.q, true))) {
		do {
			if (t->kind == TASK_RESEED)
				reseed(l.d, l.wire, t);
			else
				take_until_done(l.d, l.wire, t, &ready);
			ready.v[ready.n++] = t;
		} while (ready.n < batch &&
			 (t = next_task(l.d, l.q, false)));
		reveal_batch(l.d, &ready);
	}
	return NULL;
}

/* --- the thread that acknowledges and asks --- */

static void ask_for_pending(struct deliver *d)
{
	int64_t now = clock_mono_ms();
	char id[ITEM_ID + 1];
	for (;;) {
		id[0] = 0;
		pthread_mutex_lock(&d->lock);
		for (struct pending *p = d->pending; p && !*id; p = p->next)
			if (!p->asked_ms ||
			    now - p->asked_ms >= WANT_EVERY_MS) {
				p->asked_ms = now;
				strcpy(id, p->id);
			}
		pthread_mutex_unlock(&d->lock);
		if (!*id)
			return;
		struct err e;
		if (wire_want(d->ack_wire, id, &e) < 0 &&
		    e.code == ERR_EXISTS)
			revive(d, id, 0);
	}
}

static void put_back(struct deliver *d, struct task *t)
{
	struct queue *q = &d->acks;
	pthread_mutex_lock(&d->lock);
	t->next = q->first;
	if (!q->first)
		q->last = &t->next;
	q->first = t;
	q->n++;
	pthread_mutex_unlock(&d->lock);
}

static bool idle(struct deliver *d)
{
	pthread_mutex_lock(&d->lock);
	if (!d->ending && !d->acks.first && !d->to_ask)
		wait_until(&d->more, &d->lock, clock_mono_ms() + ACK_IDLE_MS);
	d->to_ask = false;
	bool on = !d->ending;
	pthread_mutex_unlock(&d->lock);
	return on;
}

static void *ack_thread(void *arg)
{
	struct deliver *d = arg;
	unsigned tries = 0;
	while (idle(d)) {
		struct task *t;
		struct err e;
		while ((t = next_task(d, &d->acks, false))) {
			if (peer_ack(d->ack_wire, t->id, &e) < 0 &&
			    peer_may_retry(&e)) {
				put_back(d, t);
				if (!deliver_pause(d, peer_delay_ms(tries++,
						-1)))
					return NULL;
				continue;
			}
			tries = 0;
			settle(d, t);
		}
		ask_for_pending(d);
	}
	return NULL;
}

/* --- --- */

static void load_pending(void *arg, uint64_t seq, struct bytes envelope)
{
	struct deliver *d = arg;
	struct incoming *inc = in_incoming(d->m, seq, envelope);
	if (inc)
		add_pending(d, seq, inc->env.header.id, envelope, 0);
	incoming_free(inc);
}

static int start_lane(struct deliver *d, int i, struct err *e)
{
	struct lane *l = calloc(1, sizeof *l);
	d->lane_wire[i] = peer_wire(d->m->peer, e);
	if (!l || !d->lane_wire[i]) {
		free(l);
		return -1;
	}
	*l = (struct lane){ d, i ? &d->large : &d->small, d->lane_wire[i] };
	if (pthread_create(&d->lane[i], NULL, lane_thread, l)) {
		free(l);
		return err_sys(e, "cannot start a thread");
	}
	d->lanes++;
	return 0;
}

int lanes_start(struct deliver *d, struct err *e)
{
	in_pending(d->m, load_pending, d);
	in_unacked(d->m, load_unacked, d);
	for (int i = 0; i < LANES; i++)
		if (start_lane(d, i, e) < 0)
			return -1;
	d->ack_wire = peer_wire(d->m->peer, e);
	if (!d->ack_wire)
		return -1;
	if (pthread_create(&d->acker, NULL, ack_thread, d))
		return err_sys(e, "cannot start a thread");
	d->has_acker = true;
	return 0;
}

static void free_queue(struct queue *q)
{
	while (q->first) {
		struct task *t = queue_take(q);
		if (!t->unsettled)
			task_free(t);
	}
}

void lanes_free(struct deliver *d)
{
	for (int i = 0; i < LANES; i++)
		if (d->lane_wire[i])
			wire_abort(d->lane_wire[i]);
	if (d->ack_wire)
		wire_abort(d->ack_wire);
	for (int i = 0; i < d->lanes; i++)
		pthread_join(d->lane[i], NULL);
	if (d->has_acker)
		pthread_join(d->acker, NULL);
	for (int i = 0; i < LANES; i++)
		wire_free(d->lane_wire[i]);
	wire_free(d->ack_wire);
	if (d->small.last)
		free_queue(&d->small);
	if (d->large.last)
		free_queue(&d->large);
	if (d->acks.last)
		free_queue(&d->acks);
	for (struct task *t = d->oldest, *after; t; t = after) {
		after = t->after;
		task_free(t);
	}
	while (d->pending) {
		struct pending *p = d->pending;
		d->pending = p->next;
		buf_free(&p->envelope);
		free(p);
	}
}
