/* SPDX-License-Identifier: MIT
 *
 * serve_progress: a running job's live output: from its runner, at most four
 * frames a second, to every stream but other runners'.  The relay cannot read
 * it; that the runner signed it for this job it can check. */
#include <string.h>

#include "core/progress.h"
#include "relay/live.h"
#include "relay/reply.h"
#include "relay/route.h"
#include "relay/task.h"

#define BURST 8			/* frames */
#define BURST_MS 2000		/* in which they are earned */

/* Under the lock.  NULL, or the refusal. */
static const char *refusal(const struct task *j, const struct req *r,
			   int *status)
{
	*status = 404;
	if (!j)
		return "no such job";
	*status = 403;
	if (j->runner != r->by)
		return "this job was not given to this runner";
	*status = 409;
	if (j->state != TASK_RUNNING)
		return "this job does not run";
	return NULL;
}

static int64_t take_rate(struct task *j)
{
	return rate_take(&j->progress, 1, BURST, BURST_MS, loop_wall_ms());
}

/* Before the signature is checked: may there be a frame at all? */
static bool has_leave(struct conn *c)
{
	struct state *st = c->loop->st;
	struct req *r = c->req;
	int64_t wait_ms = 0;
	int status;
	pthread_mutex_lock(&st->lock);
	struct task *j = task_find(r->session, r->id);
	const char *why = refusal(j, r, &status);
	if (!why)
		wait_ms = take_rate(j);
	pthread_mutex_unlock(&st->lock);
	if (why)
		reply_error(c, status, status == 404 ? "not_found" :
			    status == 403 ? "forbidden" : "conflict", why);
	else if (wait_ms)
		reply_later(c, wait_ms, "at most four frames a second");
	return !why && !wait_ms;
}

static int check(const struct progress *p, const struct req *r, struct err *e)
{
	if (strcmp(p->job, r->id) != 0 ||
	    strcmp(p->session_id, r->session->id) != 0)
		return err_set(e, ERR_INVALID, "a frame of another job");
	return progress_verify(p, r->by->cert.pub, e);
}

/* 0; or the status of the refusal. */
static int publish(struct conn *c, const struct progress *p)
{
	struct state *st = c->loop->st;
	struct req *r = c->req;
	int status = 0;
	pthread_mutex_lock(&st->lock);
	struct task *j = task_find(r->session, r->id);
	if (refusal(j, r, &status) || p->seq < j->progress_n) {
		status = 409;
	} else {
		j->seen_ms = loop_mono_ms();
		j->progress_n = p->seq + 1;
		status = live_publish(&r->session->hub, r->session->event_n,
				      buf_bytes(&r->body), j->seen_ms) < 0 ?
			 429 : 0;
	}
	pthread_mutex_unlock(&st->lock);
	return status;
}

void serve_progress(struct conn *c)
{
	struct progress p;
	struct err e;
	if (!has_leave(c))
		return;
	if (progress_parse(&p, buf_bytes(&c->req->body), &e) < 0) {
		reply_err(c, &e);
		return;
	}
	if (check(&p, c->req, &e) < 0) {
		reply_err(c, &e);
		progress_free(&p);
		return;
	}
	int status = publish(c, &p);
	progress_free(&p);
	if (status == 409)
		reply_error(c, 409, "conflict", "not above the last, or the "
			    "job has ended");
	else if (status)
		reply_later(c, 1000, "the relay has too much live output");
	else
		reply_empty(c);
	if (!status)
		METRIC_ADD(c->loop->st->metrics.live_frames, 1);
}
