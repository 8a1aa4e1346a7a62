/* SPDX-License-Identifier: MIT
 *
 * The verbs of a job; and queue/ready, which says that there is somebody to
 * write them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "airloxfs/ctl.h"
#include "airloxfs/queue_private.h"
#include "airloxfs/text.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"

#define CLAIM_WAIT_MS 1000

static struct queue_room *room(struct mount *m) { return m->queue; }
static void no_change(struct mount *m, struct node *n) { (void)m, (void)n; }

/* --- verbs --- */

static int answer(struct err *e, int sys, const char *why)
{
	err_set(e, ERR_SYS, "%s", why);
	e->sys = sys;
	return -1;
}

/* Journalled before the relay is asked: whatever happens now, it is never
 * given out again. */
static int begin_claim(struct queue_room *q, struct qjob *j, struct err *e)
{
	pthread_mutex_lock(&q->lock);
	bool mine = j->state == Q_OPEN;
	if (mine)
		j->state = Q_CLAIMING;
	int rc = mine ? queue_remember(q, j->id, QK_CLAIMED) : 0;
	pthread_mutex_unlock(&q->lock);
	if (!mine)
		return 0;
	if (rc < 0)
		err_set(e, ERR_MEMORY, "out of memory");
	if (rc == 0)
		rc = queue_note(q, QK_CLAIMED, j, j->id, true, e);
	pthread_mutex_lock(&q->lock);
	if (rc < 0)
		j->state = Q_OPEN;
	pthread_cond_broadcast(&q->beat);
	pthread_mutex_unlock(&q->lock);
	return rc;
}

static int await_claim(struct queue_room *q, struct qjob *j, struct err *e)
{
	int64_t until = clock_mono_ms() + CLAIM_WAIT_MS;
	int rc = 0;
	pthread_mutex_lock(&q->lock);
	while (!q->ending && j->state == Q_CLAIMING && !j->withdrawn &&
	       wait_until(&q->claimed, &q->lock, until))
		;
	if (j->state == Q_CLAIMED && !j->told)
		j->told = true;
	else if (j->state == Q_CLAIMING && !j->withdrawn)
		rc = answer(e, EAGAIN, "the relay has not answered the claim "
			    "yet: write it again");
	else
		rc = answer(e, ESTALE, j->withdrawn ? "the job was withdrawn"
			    : "the job was claimed before, or is over");
	pthread_mutex_unlock(&q->lock);
	return rc;
}

static int do_claim(struct qjob *j, const char *arg, struct err *e)
{
	(void)arg;
	struct queue_room *q = room(j->m);
	pthread_mutex_lock(&q->lock);
	bool ready = q->holders > 0;
	pthread_mutex_unlock(&q->lock);
	if (!ready)
		return err_set(e, ERR_VERB, "hold queue/ready open for writing "
			       "before claiming a job: exec 9>queue/ready");
	return begin_claim(q, j, e) < 0 ? -1 : await_claim(q, j, e);
}

static int do_done(struct qjob *j, const char *arg, struct err *e)
{
	(void)arg;
	return queue_finish(j, RESULT_COMPLETED, NULL, e);
}

static int do_failed(struct qjob *j, const char *arg, struct err *e)
{
	return queue_finish(j, RESULT_FAILED, arg, e);
}

static int do_timed_out(struct qjob *j, const char *arg, struct err *e)
{
	(void)arg;
	return queue_finish(j, RESULT_TIMED_OUT, NULL, e);
}

/* One that was not claimed is refused as one that never appeared. */
static int do_refuse(struct qjob *j, const char *arg, struct err *e)
{
	struct queue_room *q = room(j->m);
	pthread_mutex_lock(&q->lock);
	bool open = j->state == Q_OPEN;
	pthread_mutex_unlock(&q->lock);
	if (!open)
		return queue_finish(j, RESULT_REFUSED, arg, e);
	return queue_refuse(j, RESULT_REFUSED, arg ? arg : "the runner refused "
			    "it", e);
}

static const struct qverb {
	const char *name, *arg;		/* arg: "" where it takes none */
	int (*run)(struct qjob *j, const char *arg, struct err *e);
} qverbs[] = {
	{ "claim", "", do_claim },
	{ "done", "", do_done },
	{ "refuse", "REASON", do_refuse },
	{ "failed", "REASON", do_failed },
	{ "timed_out", "", do_timed_out },
};
#define QVERBS (sizeof qverbs / sizeof *qverbs)

static int verb(struct mount *m, struct node *n, char *line, struct err *e)
{
	(void)m;
	char *arg = strchr(line, ' ');
	if (arg)
		*arg++ = 0;
	for (size_t i = 0; i < QVERBS; i++) {
		const struct qverb *v = &qverbs[i];
		if (strcmp(v->name, line) != 0)
			continue;
		if (!v->arg[0] && arg && *arg)
			return err_set(e, ERR_VERB, "write it as: %s",
				       v->name);
		return v->run(n->data, arg && *arg ? arg : NULL, e);
	}
	return err_set(e, ERR_VERB, "a job's ctl does not know that verb: cat "
		       "it to see those it knows");
}

static int qctl_open(struct mount *m, struct handle *h)
{
	(void)m;
	h->direct = true;
	for (size_t i = 0; i < QVERBS; i++)
		buf_addf(&h->bytes, "%s%s%s\n", qverbs[i].name,
			 qverbs[i].arg[0] ? " " : "", qverbs[i].arg);
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static int qctl_write(struct mount *m, struct handle *h, pid_t tid,
		      const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	return ctl_lines(m, h->node, p, n, verb);
}

const struct node_ops queue_ctl_ops = {
	.open = qctl_open, .read = text_read, .write = qctl_write,
	.truncate = fs_truncate_nothing, .free = queue_node_free,
	.timeout_s = 86400,
};

/* --- ready --- */

static int ready_open(struct mount *m, struct handle *h)
{
	struct queue_room *q = room(m);
	if ((h->flags & O_ACCMODE) == O_RDONLY)
		return EACCES;
	if (m->closed)
		return ESHUTDOWN;
	h->direct = true;
	pthread_mutex_lock(&q->lock);
	if (q->holders++ == 0)
		q->beat_now = true;
	pthread_cond_broadcast(&q->beat);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static int ready_write(struct mount *m, struct handle *h, pid_t tid,
		       const void *p, size_t n, uint64_t off)
{
	(void)m, (void)h, (void)tid, (void)p, (void)n, (void)off;
	return 0;
}

/* Whoever ran it is gone: its sender need not wait for the time limit. */
static void went_away(struct queue_room *q)
{
	for (;;) {
		struct err e;
		pthread_mutex_lock(&q->lock);
		struct qjob *j = q->jobs;
		while (j && !(j->state == Q_CLAIMED || j->state == Q_CLAIMING))
			j = j->next;
		if (j)
			queue_hold(j);
		pthread_mutex_unlock(&q->lock);
		if (!j)
			return;
		int rc = queue_finish(j, RESULT_FAILED, QUEUE_WENT_AWAY, &e);
		if (rc < 0)
			mount_failed(q->m, &e);
		queue_drop(j);
		if (rc < 0)
			return;
	}
}

static void ready_release(struct mount *m, struct handle *h)
{
	(void)h;
	struct queue_room *q = room(m);
	pthread_mutex_lock(&q->lock);
	bool last = --q->holders == 0;
	pthread_cond_broadcast(&q->beat);
	pthread_mutex_unlock(&q->lock);
	if (last)
		went_away(q);
}

const struct node_ops queue_ready_ops = {
	.open = ready_open, .write = ready_write, .release = ready_release,
	.truncate = fs_truncate_nothing, .changed = no_change,
	.timeout_s = 86400,
};
