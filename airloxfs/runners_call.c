/* SPDX-License-Identifier: MIT
 *
 * The thread that asks the relay who is there, and tells it what must not wait
 * behind a job that is being sent: approvals, rejections, cancels. */
#include <stdlib.h>
#include <string.h>

#include "airloxfs/runners_private.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"

#define REFRESH_MIN_MS 50	/* between two looks, whoever asks */
#define REFRESH_WAITING_MS 1000	/* while a job waits */
#define REFRESH_MS 15000	/* while there are runners */

static bool is_online(struct mount *m)
{
	mount_lock(m);
	bool online = m->online && !m->closed;
	mount_unlock(m);
	return online;
}

/* --- who is there --- */

struct looking {
	struct runners *r;
	bool idle;		/* one that was not */
};

static int on_runner(void *arg, const struct listed_runner *l, struct err *e)
{
	(void)e;
	struct looking *k = arg;
	struct runners *r = k->r;
	pthread_mutex_lock(&r->j->lock);
	struct runner *is = runners_find(r, l->pub);
	if (is) {
		struct runner old = *is;
		is->known = true;
		is->online = l->online;
		is->rejected = l->rejected;
		strcpy(is->job, l->job);
		if (!old.known || old.online != is->online ||
		    old.rejected != is->rejected || strcmp(old.job, is->job)) {
			runners_touch(is);
			k->idle |= is->online && !is->job[0];
		}
	}
	pthread_mutex_unlock(&r->j->lock);
	return 0;
}

static void look(struct runners *r)
{
	struct looking k = { .r = r };
	struct err e;
	if (wire_runners(r->wire, on_runner, &k, &e) < 0) {
		if (!r->j->ending && !peer_may_retry(&e))
			mount_heard(r->j->m, &e);
		return;
	}
	pthread_mutex_lock(&r->j->lock);
	if (k.idle || r->waiting)	/* who still waits says so again */
		pthread_cond_signal(&r->j->work);
	r->waiting = false;
	pthread_mutex_unlock(&r->j->lock);
}

/* --- what the owner decided --- */

/* The list as far as this key goes: a snapshot that needs no lock. */
static void snapshot(const struct runners *r, const uint8_t pub[PRIM_PUB],
		     uint8_t key[1][PRIM_PUB], struct approval_list *l)
{
	enum approval a = approval_of(&r->list, pub);
	memcpy(key[0], pub, PRIM_PUB);
	*l = (struct approval_list){ 0 };
	if (a == APPROVAL_GIVEN)
		*l = (struct approval_list){ .approved = key,
					     .approved_n = 1 };
	else if (a == APPROVAL_REFUSED)
		*l = (struct approval_list){ .rejected = key,
					     .rejected_n = 1 };
}

static void done(struct runners *r, struct runner *k, enum decision d)
{
	struct err e;
	pthread_mutex_lock(&r->j->lock);
	if (k->decision == d) {
		if (runners_note(r, k, true, &e) < 0)
			mount_failed(r->j->m, &e);
		k->decision = DECIDED_NOTHING;
		k->tries = 0;
		r->asked = true;
	}
	pthread_mutex_unlock(&r->j->lock);
	mount_log(r->j->m, "runners/%s: %s", k->name, d == DECIDED_APPROVE ?
		  "approved" : "rejected");
}

/* Without the lock; d and reason are copies. */
static void tell_decision(struct runners *r, struct runner *k,
			  enum decision d, const char *reason)
{
	struct peer *p = r->j->m->peer;
	const uint8_t *pub = k->who->join.cert.pub;
	uint8_t key[1][PRIM_PUB];
	struct approval_list l;
	struct err e;
	pthread_mutex_lock(&r->j->lock);
	snapshot(r, pub, key, &l);
	pthread_mutex_unlock(&r->j->lock);
	int rc = d == DECIDED_APPROVE ? approval_give(p, r->wire, &l, pub, &e)
		: approval_refuse(p, r->wire, &l, pub, reason, &e);
	if (rc == 0) {
		done(r, k, d);
		return;
	}
	if (!peer_may_retry(&e) && !r->j->ending) {
		err_prefix(&e, "runners/%s", k->name);
		mount_failed(r->j->m, &e);
		done(r, k, d);
		return;
	}
	pthread_mutex_lock(&r->j->lock);
	k->retry_at_ms = jobs_now() +
		peer_delay_ms(k->tries++, wire_retry_after_ms(r->wire));
	pthread_mutex_unlock(&r->j->lock);
}

/* --- jobs of ours: to be cancelled, or asked for --- */

static void tell_cancel(struct runners *r, struct submitted *s,
			const struct item_ref *ref)
{
	struct jobs *j = r->j;
	struct err e = { 0 };
	int rc = job_cancel(j->m->peer, r->wire, ref, &e);
	pthread_mutex_lock(&j->lock);
	if (rc == 0) {
		s->cancel_asked = true;
	} else if (peer_may_retry(&e)) {
		s->retry_at_ms = jobs_now() +
			peer_delay_ms(s->tries++, wire_retry_after_ms(r->wire));
	} else {
		s->cancel_asked = true;
		if (e.code == ERR_NOT_FOUND && s->state == JOBS_WAITING)
			jobs_move(s, JOBS_DROPPED, "cancelled before it was "
				  "sent");
	}
	pthread_mutex_unlock(&j->lock);
	if (rc < 0 && !peer_may_retry(&e))
		mount_failed(j->m, &e);
}

/* What the stream told while nobody listened, or what was forgotten. */
static void ask(struct runners *r, struct submitted *s,
		const struct item_ref *ref)
{
	struct jobs *j = r->j;
	struct routed_job state = { 0 };
	struct err e;
	int rc = wire_job_get(r->wire, ref->id, &state, &e);
	pthread_mutex_lock(&j->lock);
	if (rc == 0)
		jobs_hear(s, state.state, state.has_runner ? state.runner
			  : NULL, state.reason);
	s->to_ask = rc < 0 && peer_may_retry(&e);
	s->retry_at_ms = jobs_now() + REFRESH_WAITING_MS;
	pthread_mutex_unlock(&j->lock);
	routed_job_free(&state);
}

/* --- the thread --- */

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

static struct runner *next_decision(struct runners *r, int64_t now,
				    int64_t *due)
{
	for (struct runner *k = r->first; k; k = k->next) {
		if (k->decision == DECIDED_NOTHING)
			continue;
		if (k->retry_at_ms <= now)
			return k;
		*due = min64(*due, k->retry_at_ms);
	}
	return NULL;
}

static struct submitted *next_job(struct jobs *j, int64_t now, int64_t *due)
{
	for (struct submitted *s = j->first; s; s = s->next) {
		bool cancel = s->cancelling && !s->cancel_asked && s->tried;
		if (s->removed || !s->has_job || s->posting ||
		    jobs_state_is_final(s->state) || !(cancel || s->to_ask))
			continue;
		if (s->retry_at_ms <= now)
			return s;
		*due = min64(*due, s->retry_at_ms);
	}
	return NULL;
}

static bool look_is_due(struct runners *r, int64_t now, int64_t *due)
{
	int64_t at = r->refreshed_ms + (r->asked ? REFRESH_MIN_MS :
		r->waiting ? REFRESH_WAITING_MS : REFRESH_MS);
	if (!r->first)
		return false;
	if (at > now) {
		*due = min64(*due, at);
		return false;
	}
	r->asked = false;
	r->refreshed_ms = now;
	return true;
}

/* With the lock, let go meanwhile.  False: nothing to do until *due. */
static bool do_one(struct runners *r, int64_t *due)
{
	pthread_mutex_t *lock = &r->j->lock;
	int64_t now = jobs_now();
	struct runner *k = next_decision(r, now, due);
	struct submitted *s = k ? NULL : next_job(r->j, now, due);
	if (k) {
		enum decision d = k->decision;
		char *reason = k->reason ? strdup(k->reason) : NULL;
		pthread_mutex_unlock(lock);
		tell_decision(r, k, d, reason);
		free(reason);
	} else if (s) {
		struct item_ref ref = s->sealed.ref;
		bool cancel = s->cancelling && !s->cancel_asked;
		pthread_mutex_unlock(lock);
		if (cancel)
			tell_cancel(r, s, &ref);
		else
			ask(r, s, &ref);
	} else if (look_is_due(r, now, due)) {
		pthread_mutex_unlock(lock);
		look(r);
	} else {
		return false;
	}
	pthread_mutex_lock(lock);
	return true;
}

void *runners_thread(void *arg)
{
	struct runners *r = arg;
	struct jobs *j = r->j;
	pthread_mutex_lock(&j->lock);
	while (!j->ending) {
		int64_t due = jobs_now() + REFRESH_MS;
		if (!is_online(j->m) || !do_one(r, &due))
			wait_until(&r->work, &j->lock, due);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}
