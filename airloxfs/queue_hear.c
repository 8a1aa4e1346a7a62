/* SPDX-License-Identifier: MIT
 *
 * What the stream, the owner and the outbox say of jobs. */
#include <string.h>

#include "airloxfs/queue_private.h"
#include "core/host/wire_job.h"

/* An open job goes, a claimed one is told and ends by whoever runs it. */
void queue_cancel(struct queue_room *q, struct qjob *j, const char *why)
{
	pthread_mutex_lock(&q->lock);
	bool news = !j->cancelled && j->state < Q_ENDING;
	bool runs = j->state == Q_CLAIMED || j->state == Q_CLAIMING;
	bool open = j->state == Q_OPEN;
	j->cancelled = true;
	if (news && open)
		queue_unlist(q, j);
	pthread_mutex_unlock(&q->lock);
	if (!news)
		return;
	queue_tell(q->m, j->id, "cancelled", why);
	if (runs)
		queue_dir_cancelled(j, why);
	else if (open)
		queue_dir_vanish(j);
}

void queue_cancel_id(struct mount *m, const char *id, const char *why)
{
	queue_untask(m->queue, id);
	struct qjob *j = queue_find_held(m->queue, id);
	if (j)
		queue_cancel(m->queue, j, why);
	queue_drop(j);
}

void queue_job_event(struct mount *m, const struct news *n)
{
	struct queue_room *q = m->queue;
	enum routed state;
	if (!q || routed_parse(&state, bytes_str(n->word)) < 0)
		return;
	bool ours = n->has_pub && memcmp(n->pub, m->peer->pub, PRIM_PUB) == 0;
	switch (state) {
	case ROUTED_ASSIGNED: case ROUTED_RUNNING:
		if (ours && queue_is_fresh(q, n->id))
			queue_ask(q, QT_LOOK, n->id, NULL, 0, 0);
		break;
	case ROUTED_FAILED:
		queue_cancel_id(m, n->id, n->reason && *n->reason ? n->reason
			  : "the relay ended it");
		break;
	case ROUTED_DONE:
		queue_cancel_id(m, n->id, "the relay has a result of it");
		break;
	}
}

static int note_approval(struct queue_room *q, const struct payload *p,
			 struct err *e)
{
	bool yes = p->u.event.event == EVENT_RUNNER_APPROVE;
	enum qknown kind = yes ? QK_APPROVED : QK_REJECTED;
	if (memcmp(p->u.event.pub, q->m->peer->pub, PRIM_PUB) != 0)
		return 0;
	if (queue_note(q, kind, NULL, "", true, e) < 0)
		return -1;
	pthread_mutex_lock(&q->lock);
	*(yes ? &q->approved : &q->rejected) = true;
	for (struct qtask *t = q->tasks; t; t = t->next)
		t->due_ms = 0;		/* one may have waited for this */
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	mount_log(q->m, "the owner %s this runner", yes ? "approved"
							: "rejected");
	return 0;
}

int queue_event(struct mount *m, const struct payload *event,
		const struct cert *author, struct err *e)
{
	struct queue_room *q = m->queue;
	if (!q || event->kind != ITEM_EVENT)
		return 0;
	if (event->u.event.event == EVENT_RUNNER_APPROVE ||
	    event->u.event.event == EVENT_RUNNER_REJECT)
		return note_approval(q, event, e);
	if (event->u.event.event != EVENT_JOB_CANCEL)
		return 0;
	const struct item_ref *ref = &event->u.event.job;
	struct qjob *j = queue_find_held(q, ref->id);
	if (j && (author->role == ROLE_OWNER ||
		  memcmp(author->pub, j->author, PRIM_PUB) == 0) &&
	    memcmp(ref->sha256, j->ref.sha256, HASH_SIZE) == 0)
		queue_cancel(q, j, "cancelled by its sender");
	queue_drop(j);
	return 0;
}

void queue_over(struct mount *m, const char *why)
{
	if (m->queue)
		queue_each(m->queue, queue_cancel, why);
}

void queue_posted(struct mount *m, const char *key, const struct err *why)
{
	const char *id = key + strlen(QUEUE_KEY);
	struct queue_room *q = m->queue;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	if (strcmp(q->beat_job, id) == 0)
		q->beat_job[0] = 0;
	pthread_mutex_unlock(&q->lock);
	queue_tell(m, id, why ? "result not taken" : "result sent",
		   why ? why->why : NULL);
}
