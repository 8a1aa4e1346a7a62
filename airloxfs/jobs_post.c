/* SPDX-License-Identifier: MIT
 *
 * The thread that posts: each job that waits, in the order of their running,
 * once a runner that may take it is idle.  The lock is let go for all that
 * takes long; `posting` says that the job is this thread's meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/jobs_private.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"

#define GIVE_UP_MS 10000	/* for an input; then the job is tried again */
#define BUSY_MS 250		/* after a 409: somebody was quicker */

/* --- what to do; with the lock --- */

static bool is_online(struct mount *m)
{
	mount_lock(m);
	bool online = m->online && !m->closed;
	mount_unlock(m);
	return online;
}

/* Words with a space between, for as long as the spec stays. */
static size_t labels_of(const struct jobs_spec *spec, struct bytes *to)
{
	size_t n = 0, at = 0;
	const struct buf *b = &spec->labels;
	while (at < b->len && n < JOBS_LABELS_MAX) {
		const uint8_t *sp = memchr(b->data + at, ' ', b->len - at);
		size_t end = sp ? (size_t)(sp - b->data) : b->len;
		to[n++] = (struct bytes){ b->data + at, end - at };
		at = end + 1;
	}
	return n;
}

static bool has_runner(struct jobs *j, const struct submitted *s)
{
	struct bytes labels[JOBS_LABELS_MAX];
	struct target t = { .kind = s->spec.target, .labels = labels,
			    .name = bytes_str(s->spec.runner) };
	t.label_n = labels_of(&s->spec, labels);
	memcpy(t.pub, s->spec.pub, PRIM_PUB);
	return runners_idle(j->runners, &t);
}

/* One whose answer was lost is asked for, whoever is idle. */
static bool is_ready(struct jobs *j, const struct submitted *s, int64_t now)
{
	if (s->removed || s->state != JOBS_WAITING || s->retry_at_ms > now)
		return false;
	if (s->cancelling)	/* dropped here; or its cancel finds out */
		return !s->tried;
	return s->tried || s->spec.nowait || has_runner(j, s);
}

static void say_why(struct submitted *s, const char *why)
{
	if (strcmp(s->reason, why) == 0)
		return;
	jobs_set_reason(s, bytes_str(why));
	jobs_touch(s, "status");
}

/* Why it waits; and a plan that only waits holds no drafts. */
static bool look_at_waiting(struct jobs *j, bool online)
{
	bool any = false;
	for (struct submitted *s = j->first; s; s = s->next) {
		if (s->removed || s->state != JOBS_WAITING || s->posting)
			continue;
		any = true;
		say_why(s, online ? "" : "offline");
		if (s->plan && !jobs_plan_is_sent(s->plan))
			jobs_plan_free(s);
	}
	return any;
}

static struct submitted *pick(struct jobs *j, int64_t *due)
{
	int64_t now = jobs_now();
	bool online = is_online(j->m);
	for (struct submitted *s = j->first; s && online; s = s->next) {
		if (is_ready(j, s, now))
			return s;
		if (!s->removed && s->state == JOBS_WAITING &&
		    s->retry_at_ms > now && s->retry_at_ms < *due)
			*due = s->retry_at_ms;
	}
	for (struct submitted *s = j->first; s && !online; s = s->next)
		if (!s->removed && s->state == JOBS_WAITING && s->spec.nowait)
			jobs_move(s, JOBS_GIVEN_UP, "offline, and it was not "
				  "to wait");
	runners_refresh(j->runners, look_at_waiting(j, online));
	return NULL;
}

/* --- one job; without the lock --- */

static void fail(struct submitted *s, const struct err *e)
{
	struct jobs *j = s->m->jobs;
	mount_failed(s->m, e);
	pthread_mutex_lock(&j->lock);
	jobs_move(s, JOBS_GIVEN_UP, e->why);
	jobs_plan_free(s);
	pthread_mutex_unlock(&j->lock);
}

static void later(struct submitted *s, const struct err *e)
{
	struct jobs *j = s->m->jobs;
	mount_heard(s->m, e);
	pthread_mutex_lock(&j->lock);
	s->retry_at_ms = jobs_now() +
		peer_delay_ms(s->tries++, wire_retry_after_ms(j->wire));
	pthread_mutex_unlock(&j->lock);
}

static int prepare(struct submitted *s, struct err *e)
{
	struct jobs *j = s->m->jobs;
	const struct draft_post how = { .wire = j->wire,
					.give_up_ms = GIVE_UP_MS };
	if (s->has_job)
		return jobs_reopen(s, e);
	if (!s->plan)
		s->plan = jobs_plan_new(s, e);
	if (!s->plan ||
	    job_plan_send(jobs_plan_of(s->plan), s->m->peer, &how, e) < 0)
		return -1;
	jobs_plan_sent(s->plan);
	return jobs_seal(s, e);
}

/* Nobody took it: what is posted next is a job of another id. */
static void unplaced(struct submitted *s, enum job_posted why)
{
	struct jobs *j = s->m->jobs;
	pthread_mutex_lock(&j->lock);
	jobs_forget_sealed(s);
	s->retry_at_ms = jobs_now() + BUSY_MS;
	if (s->spec.nowait)
		jobs_move(s, JOBS_GIVEN_UP, why == JOB_RUNNER_BUSY ?
			  "the runner is busy" : "no runner is available");
	else
		jobs_move(s, JOBS_NO_RUNNER, "");
	pthread_mutex_unlock(&j->lock);
}

static void taken(struct submitted *s, const struct routed_job *r)
{
	struct jobs *j = s->m->jobs;
	pthread_mutex_lock(&j->lock);
	jobs_posted(s);
	if (r->has_runner) {
		memcpy(s->runner, r->runner, PRIM_PUB);
		s->has_runner = true;
		live_runner(&s->live, &s->job, &s->m->peer->manifest,
			    runners_list(j->runners), r->runner);
	}
	jobs_move(s, JOBS_POSTED, "");
	if (r->state == ROUTED_RUNNING)
		jobs_move(s, JOBS_CLAIMED, NULL);
	else if (r->state == ROUTED_FAILED && !s->verified)
		jobs_move(s, JOBS_ABANDONED, r->reason ? r->reason :
			  "the relay gave no reason");
	pthread_mutex_unlock(&j->lock);
}

static bool is_unwanted(struct submitted *s)
{
	struct jobs *j = s->m->jobs;
	pthread_mutex_lock(&j->lock);
	bool is = s->cancelling && !s->tried;
	if (is) {
		jobs_move(s, JOBS_DROPPED, "cancelled before it was sent");
		jobs_forget_sealed(s);
		jobs_plan_free(s);
	}
	s->tried |= !is && s->has_job;
	pthread_mutex_unlock(&j->lock);
	return is;
}

/* That the relay may have it is on the disk before it may. */
static int mark_tried(struct submitted *s, struct err *e)
{
	struct jobs *j = s->m->jobs;
	pthread_mutex_lock(&j->lock);
	jobs_put(s);
	pthread_mutex_unlock(&j->lock);
	return jobs_sync(j, e);
}

static void post_one(struct submitted *s)
{
	struct jobs *j = s->m->jobs;
	struct routed_job state = { 0 };
	enum job_posted posted;
	struct err e = { 0 };
	if (is_unwanted(s))
		return;
	if (prepare(s, &e) == 0) {
		if (is_unwanted(s))
			return;
		if (mark_tried(s, &e) == 0 &&
		    job_post(j->wire, &s->sealed, &s->job, &posted, &state,
			     NULL, NULL, &e) == 0) {
			mount_online(s->m);
			if (posted == JOB_TAKEN)
				taken(s, &state);
			else
				unplaced(s, posted);
			routed_job_free(&state);
			return;
		}
	}
	if (j->ending || peer_may_retry(&e))
		later(s, &e);
	else
		fail(s, &e);
}

void *jobs_post_thread(void *arg)
{
	struct jobs *j = arg;
	pthread_mutex_lock(&j->lock);
	while (!j->ending) {
		struct submitted *late = NULL;
		int64_t due = jobs_tick(j, &late);
		if (late) {
			pthread_mutex_unlock(&j->lock);
			jobs_finish(late, true);
			pthread_mutex_lock(&j->lock);
			continue;
		}
		struct submitted *s = pick(j, &due);
		if (!s) {
			wait_until(&j->work, &j->lock, due);
			continue;
		}
		s->posting = true;
		pthread_mutex_unlock(&j->lock);
		post_one(s);
		pthread_mutex_lock(&j->lock);
		s->posting = false;
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}
