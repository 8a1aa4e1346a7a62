/* SPDX-License-Identifier: MIT
 *
 * The stream. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "airloxfs/audit.h"
#include "airloxfs/deliver_private.h"
#include "airloxfs/jobs.h"
#include "airloxfs/line.h"
#include "airloxfs/notify.h"
#include "airloxfs/outbox.h"
#include "airloxfs/queue.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/text.h"
#include "airloxfs/wait.h"
#include "core/clear.h"
#include "core/name.h"

static void log_who(struct mount *m, const char *what,
		    const struct participant *who)
{
	cleanup_buf struct buf name = { 0 };
	clear_escape(&name, bytes_str(who->shown));
	mount_log(m, "%s (%s, %s) %s", buf_cstr(&name),
		  role_word(who->join.cert.role), who->fingerprint, what);
}

static void tell_who(struct mount *m, const char *event, uint64_t seq,
		     const struct participant *who)
{
	cleanup_buf struct buf line = { 0 };
	struct tell_json j = tell_json_begin(&line, event);
	tell_json_int(&j, "seq", (int64_t)seq);
	tell_json_str(&j, "name", bytes_str(who->shown));
	tell_json_str(&j, "role",
		      bytes_str(role_word(who->join.cert.role)));
	tell_json_str(&j, "fingerprint", bytes_str(who->fingerprint));
	tell_json_end(m, &j);
}

static void hear_participant(struct mount *m, const struct news *n)
{
	cleanup_buf struct buf path = { 0 };
	if (n->who->seq != n->seq)
		return;		/* known already */
	in_note_participant(m, n->seq, buf_bytes(&n->who->raw));
	mount_lock(m);
	const struct node *node = text_participant(m, n->who, true);
	if (node)
		buf_addf(&path, "participants/%s", node->name);
	mount_unlock(m);
	const char *s = buf_cstr(&path);
	if (path.len && s)
		notify_post(m->notify, NOTIFY_CREATE, s);
	jobs_people(m, n->who);
	log_who(m, "joined", n->who);
	tell_who(m, "participant", n->seq, n->who);
}

static void hear_left(struct mount *m, const struct news *n)
{
	in_note_left(m, n->seq, n->who);
	log_who(m, "left", n->who);
	tell_who(m, "left", n->seq, n->who);
}

static void hear_revoked(struct mount *m, const struct news *n)
{
	const struct people *p = &m->peer->people;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i]->revoked && p->v[i]->join.cert.role == n->role)
			in_note_left(m, n->seq, p->v[i]);
	mount_log(m, "the owner revoked the role %s", role_word(n->role));
}

static void hear_item(struct deliver *d, struct news *n)
{
	struct mount *m = d->m;
	struct incoming *inc = n->item;
	n->item = NULL;
	bool runner = m->peer->invite.role == ROLE_RUNNER;
	if (!inc->mine && runner && inc->env.header.kind != ITEM_EVENT) {
		in_note_seen(m, inc->seq, inc->env.header.id,
			     buf_bytes(&inc->raw));
		queue_item(m, inc->env.header.id);
		incoming_free(inc);
		return;
	}
	if (!inc->mine) {
		lanes_push(d, TASK_NEW, inc);
		return;
	}
	outbox_seen(m, inc->env.header.id, inc->seq);
	if (inc->env.header.kind == ITEM_EVENT) {
		/* an approval counts, whichever program of ours gave it */
		lanes_push(d, TASK_NEW, inc);
		return;
	}
	in_note_own(m, inc->seq, inc->env.header.id);
	incoming_free(inc);
}

static void hear_want(struct deliver *d, const struct news *n)
{
	uint64_t seq;
	if (in_seq(d->m->in, n->id, &seq))
		lanes_reseed(d, n->id, seq);
}

static void hear_job(struct mount *m, const struct news *n)
{
	if (jobs_routed(m, n))
		return;		/* ours: its own room says it */
	cleanup_buf struct buf line = { 0 };
	struct tell_json j = tell_json_begin(&line, "job");
	tell_json_int(&j, "seq", (int64_t)n->seq);
	tell_json_str(&j, "id", bytes_str(n->id));
	tell_json_str(&j, "state", bytes_str(n->word));
	tell_json_end(m, &j);
	mount_log(m, "job %s: %s", n->id, n->word);
	queue_job_event(m, n);
}

static void hear_gap(struct mount *m, const struct news *n)
{
	mount_log(m, "gap: the relay left out %llu events before %llu",
		  (unsigned long long)n->gap, (unsigned long long)n->seq);
	mount_lock(m);
	m->gaps += n->gap;
	mount_unlock(m);
}

static const char *shown_of(const struct news *n)
{
	return n->who ? n->who->shown : "";
}

static void hear(struct deliver *d, struct news *n)
{
	struct mount *m = d->m;
	if (n->gap)
		hear_gap(m, n);
	switch (n->kind) {
	case NEWS_PARTICIPANT: hear_participant(m, n); break;
	case NEWS_ITEM: hear_item(d, n); break;
	case NEWS_REJECTED: in_refuse(m, n->seq, n->id, shown_of(n), &n->why);
		break;
	case NEWS_WANT: hear_want(d, n); break;
	case NEWS_RESEEDED: lanes_reappeared(d, n->id); break;
	case NEWS_LEFT: hear_left(m, n); break;
	case NEWS_REVOKED: hear_revoked(m, n); break;
	case NEWS_JOB: hear_job(m, n); break;
	case NEWS_BEHIND: mount_failed(m, &n->why); break;
	case NEWS_CLOSED: case NEWS_NOTHING: case NEWS_LIVE:
	case NEWS_EVICTED: break;
	}
	if (m->peer->state != PEER_CLOSED)
		return;
	m->cut_off |= n->kind == NEWS_LEFT || n->kind == NEWS_REVOKED;
	mount_closed(m, m->peer->why.why);
}

static int on_event(void *arg, const struct event *ev, struct err *e)
{
	struct deliver *d = arg;
	struct mount *m = d->m;
	mount_online(m);
	if (ev->has_seq && in_settled(m->in, ev->seq)) {
		m->peer->seq = (int64_t)ev->seq > m->peer->seq
			? (int64_t)ev->seq : m->peer->seq;
		return 0;
	}
	struct news n = { 0 };
	mount_lock(m);
	int rc = peer_apply(m->peer, ev, &n, e);
	mount_unlock(m);
	if (rc == 0) {
		if (n.kind == NEWS_LIVE)
			jobs_live(m, ev);
		hear(d, &n);
		if (ev->has_seq)
			audit_stale(m);
		lanes_applied(d, m->peer->seq);
	}
	news_free(&n);
	return rc == 0 && m->closed ? -1 : rc;
}

bool deliver_pause(struct deliver *d, int64_t ms)
{
	int64_t until = clock_mono_ms() + ms;
	pthread_mutex_lock(&d->lock);
	unsigned kicks = d->kicks;
	while (!d->ending && d->kicks == kicks &&
	       wait_until(&d->more, &d->lock, until))
		;
	bool on = !d->ending;
	pthread_mutex_unlock(&d->lock);
	return on;
}

/* An abort of deliver_free stays one: under the lock either it comes after,
 * or `ending` is seen. */
static bool resume(struct deliver *d)
{
	pthread_mutex_lock(&d->lock);
	bool on = !d->ending;
	d->at_once = false;
	if (on)
		wire_resume(d->wire);
	pthread_mutex_unlock(&d->lock);
	return on;
}

/* Somebody wants the stream anew, now. */
static bool is_asked(struct deliver *d)
{
	pthread_mutex_lock(&d->lock);
	bool is = d->at_once;
	pthread_mutex_unlock(&d->lock);
	return is;
}

static bool is_over(struct mount *m)
{
	mount_lock(m);
	bool over = m->closed;
	mount_unlock(m);
	return over;
}

static void *stream_thread(void *arg)
{
	struct deliver *d = arg;
	struct mount *m = d->m;
	unsigned tries = 0;
	for (;;) {
		uint64_t delivered = 0;
		struct err e = { 0 };
		int rc = wire_stream(d->wire, m->peer->seq, on_event, d,
				     &delivered, &e);
		if (is_over(m))
			break;
		if (rc == 0)
			err_set(&e, ERR_NET, "the relay ended the stream");
		if (rc > 0)
			mount_online(m);
		else if (e.code == ERR_NET)
			mount_offline(m, &e);
		else
			mount_heard(m, &e);
		if (is_over(m))
			break;
		bool asked = is_asked(d);
		tries = delivered || rc > 0 || asked ? 0 : tries + 1;
		if (!asked && !deliver_pause(d, peer_delay_ms(tries,
				wire_retry_after_ms(d->wire))))
			break;
		if (!resume(d))
			break;
	}
	return NULL;
}

static void queue_begin(struct queue *q)
{
	q->last = &q->first;
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->room, NULL);
}

/* Nobody waits any longer. */
static void queue_end(struct queue *q)
{
	pthread_cond_broadcast(&q->more);
	pthread_cond_broadcast(&q->room);
}

static void queue_destroy(struct queue *q)
{
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->room);
}

struct deliver *deliver_new(struct mount *m, int64_t cursor, struct err *e)
{
	struct deliver *d = calloc(1, sizeof *d);
	if (!d) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	d->m = m;
	d->applied = cursor;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->more, NULL);
	queue_begin(&d->small);
	queue_begin(&d->large);
	queue_begin(&d->acks);
	m->peer->seq = cursor;
	m->deliver = d;
	d->wire = peer_wire(m->peer, e);
	if (!d->wire || lanes_start(d, e) < 0)
		goto fail;
	if (pthread_create(&d->stream, NULL, stream_thread, d)) {
		err_sys(e, "cannot start a thread");
		goto fail;
	}
	d->has_stream = true;
	return d;
fail:
	m->deliver = NULL;
	deliver_free(d);
	return NULL;
}

void deliver_kick(struct mount *m)
{
	struct deliver *d = m->deliver;
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->kicks++;
	pthread_cond_broadcast(&d->more);
	pthread_mutex_unlock(&d->lock);
}

void deliver_reconnect(struct mount *m)
{
	struct deliver *d = m->deliver;
	if (!d)
		return;
	/* all of it at once: a stream that was begun anew is not aborted */
	pthread_mutex_lock(&d->lock);
	d->kicks++;
	d->at_once = true;
	wire_abort(d->wire);
	pthread_cond_broadcast(&d->more);
	pthread_mutex_unlock(&d->lock);
}

void deliver_free(struct deliver *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	pthread_cond_broadcast(&d->more);
	queue_end(&d->small);
	queue_end(&d->large);
	pthread_mutex_unlock(&d->lock);
	if (d->wire)
		wire_abort(d->wire);
	if (d->has_stream)
		pthread_join(d->stream, NULL);
	lanes_free(d);
	wire_free(d->wire);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->more);
	queue_destroy(&d->small);
	queue_destroy(&d->large);
	queue_destroy(&d->acks);
	free(d);
}
