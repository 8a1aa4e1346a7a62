/* SPDX-License-Identifier: MIT
 *
 * The worker: what is asked of it, and when it is tried again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"
#include "core/host/wire_job.h"

#define RETRY_MS 500
#define TAKE_TRIES 40		/* a relay gives a job up after 30 s */
#define IDLE_MS 60000

/* --- what is asked --- */

static void put_task(struct queue_room *q, struct qtask *t)
{
	q->task_n++;
	struct qtask **at = &q->tasks;
	while (*at && (*at)->due_ms <= t->due_ms)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
	pthread_cond_broadcast(&q->work);
}

static struct qtask *find_task(struct queue_room *q, enum qtask_kind kind,
			       const char *id)
{
	struct qtask *t = q->tasks;
	while (t && !(strcmp(t->id, id) == 0 &&
		      (kind == QT_SEAL) == (t->kind == QT_SEAL)))
		t = t->next;
	return t;
}

void queue_ask(struct queue_room *q, enum qtask_kind kind, const char *id,
	       struct qjob *j, int64_t due_ms, unsigned tries)
{
	struct qtask *t = calloc(1, sizeof *t);
	if (!t)
		return;
	*t = (struct qtask){ .kind = kind, .job = j, .due_ms = due_ms,
			     .tries = tries };
	snprintf(t->id, sizeof t->id, "%s", id);
	if (j)
		queue_hold(j);
	pthread_mutex_lock(&q->lock);
	struct qtask *same = find_task(q, kind, id);
	if (same && kind == QT_TAKE)
		same->kind = QT_TAKE;
	bool flood = kind != QT_SEAL && q->task_n >= QUEUE_TASKS_MAX;
	bool put = !same && !flood;
	if (put)
		put_task(q, t);
	pthread_mutex_unlock(&q->lock);
	if (put)
		return;
	queue_drop(j);
	free(t);
}

/* With the lock: out of the list. */
static struct qtask *take_task(struct queue_room *q, struct qtask **at)
{
	struct qtask *t = *at;
	*at = t->next;
	q->task_n--;
	return t;
}

/* With the lock, which is let go meanwhile. */
static struct qtask *next_task(struct queue_room *q)
{
	while (!q->ending) {
		int64_t now = clock_mono_ms(), due = now + IDLE_MS;
		struct qtask *t = q->tasks;
		if (t && t->due_ms <= now)
			return take_task(q, &q->tasks);
		wait_until(&q->work, &q->lock, t ? t->due_ms : due);
	}
	return NULL;
}

/* A relay's word on a job: whether it is for us to look at.  1: later. */
static int look(struct queue_room *q, const char *id, bool *run,
		struct err *e)
{
	struct routed_job r = { 0 };
	if (wire_job_get(q->work_wire, id, &r, e) < 0)
		return -1;
	bool ours = r.has_runner &&
		memcmp(r.runner, q->m->peer->pub, PRIM_PUB) == 0;
	*run = ours && r.state == ROUTED_ASSIGNED;
	bool lost = ours && r.state == ROUTED_RUNNING;
	routed_job_free(&r);
	return *run || lost ? 1 : 0;
}

/* Whether the id is nobody's yet. */
bool queue_is_fresh(struct queue_room *q, const char *id)
{
	pthread_mutex_lock(&q->lock);
	bool fresh = !queue_find(q, id) && queue_known(q, id) < QK_CLAIMED;
	pthread_mutex_unlock(&q->lock);
	return fresh;
}

static void tell_again(struct queue_room *q, const struct qtask *t)
{
	pthread_mutex_lock(&q->lock);
	bool here = queue_find(q, t->id) != NULL;
	pthread_mutex_unlock(&q->lock);
	if (!here && t->kind == QT_TAKE)
		mount_log(q->m, "queue: job %s was here before: it is not run "
			  "again", t->id);
}

static int try_task(struct queue_room *q, const struct qtask *t, struct err *e)
{
	bool run = true;
	if (!queue_is_fresh(q, t->id)) {
		tell_again(q, t);
		return 0;
	}
	int rc = t->kind == QT_LOOK ? look(q, t->id, &run, e) : 1;
	return rc == 1 ? queue_take(q, t->id, run, t->tries >= TAKE_TRIES, e)
		: rc;
}

static bool is_passing(const struct err *e)
{
	return e->code == ERR_NET || e->code == ERR_RATE ||
	       e->code == ERR_FULL || e->code == ERR_SYS ||
	       e->code == ERR_MEMORY || e->code == ERR_TIMEOUT;
}

/* When to try again: at once where an item came meanwhile. */
static int64_t next_try(struct queue_room *q, unsigned kicks)
{
	pthread_mutex_lock(&q->lock);
	bool came = q->kicks != kicks;
	pthread_mutex_unlock(&q->lock);
	return clock_mono_ms() + (came ? 0 : RETRY_MS);
}

static void do_task(struct queue_room *q, struct qtask *t, unsigned kicks)
{
	struct err e = { 0 };
	if (t->kind == QT_SEAL) {
		queue_seal(q, t->job);
		return;
	}
	if (try_task(q, t, &e) == 0)
		return;
	if (q->ending)
		return;
	if (e.code == ERR_NET && !e.http)
		mount_offline(q->m, &e);
	if (is_passing(&e) && t->tries < TAKE_TRIES) {
		queue_ask(q, t->kind, t->id, NULL, next_try(q, kicks),
			  t->tries + 1);
		return;
	}
	err_prefix(&e, "job %s", t->id);
	mount_failed(q->m, &e);
}

/* --- the thread --- */

static void *worker_thread(void *arg)
{
	struct queue_room *q = arg;
	struct qtask *t;
	pthread_mutex_lock(&q->lock);
	while ((t = next_task(q))) {
		unsigned kicks = q->kicks;
		pthread_mutex_unlock(&q->lock);
		do_task(q, t, kicks);
		queue_drop(t->job);
		free(t);
		queue_renew(q);
		pthread_mutex_lock(&q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

bool queue_pause(struct queue_room *q, int64_t ms)
{
	int64_t until = clock_mono_ms() + ms;
	pthread_mutex_lock(&q->lock);
	while (!q->ending && wait_until(&q->work, &q->lock, until))
		;
	bool on = !q->ending;
	pthread_mutex_unlock(&q->lock);
	return on;
}

/* It was not fetched yet, and need not be. */
void queue_untask(struct queue_room *q, const char *id)
{
	pthread_mutex_lock(&q->lock);
	for (struct qtask **at = &q->tasks; *at; at = &(*at)->next)
		if ((*at)->kind != QT_SEAL && strcmp((*at)->id, id) == 0) {
			free(take_task(q, at));
			break;
		}
	pthread_mutex_unlock(&q->lock);
}

void queue_item(struct mount *m, const char *id)
{
	struct queue_room *q = m->queue;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->kicks++;
	for (struct qtask **at = &q->tasks; *at; at = &(*at)->next)
		if (strcmp((*at)->id, id) == 0) {
			struct qtask *t = take_task(q, at);
			t->due_ms = 0;
			put_task(q, t);
			break;
		}
	pthread_mutex_unlock(&q->lock);
}

/* --- life --- */

int queue_work_start(struct queue_room *q, struct err *e)
{
	if (pthread_create(&q->worker, NULL, worker_thread, q))
		return err_sys(e, "cannot start a thread");
	q->has_worker = true;
	return 0;
}

/* It has been told. */
void queue_work_stop(struct queue_room *q)
{
	if (q->work_wire)
		wire_abort(q->work_wire);
	if (q->has_worker)
		pthread_join(q->worker, NULL);
	q->has_worker = false;
}

/* What has ended is sealed before the worker goes. */
void queue_seal_rest(struct queue_room *q)
{
	while (q->tasks) {
		struct qtask *t = q->tasks;
		q->tasks = t->next;
		if (t->kind == QT_SEAL)
			queue_seal(q, t->job);
		queue_drop(t->job);
		free(t);
	}
}
