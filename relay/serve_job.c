/* SPDX-License-Identifier: MIT
 *
 * serve_job: jobs, but for the upload of one: what became of it, claiming,
 * cancelling. */
#include <string.h>

#include "relay/task_commit.h"
#include "relay/reply.h"
#include "relay/route.h"

/* What is true of the job now.  false: there is none. */
static bool put_job(struct conn *c, const char *id, struct buf *out,
		    enum task_reason *why)
{
	struct state *st = c->loop->st;
	pthread_mutex_lock(&st->lock);
	const struct task *j = task_find(c->req->session, id);
	if (j) {
		task_put(out, id, j->state, j->runner, j->reason);
		*why = j->reason;
	}
	pthread_mutex_unlock(&st->lock);
	return j != NULL;
}

static void reply_job(struct conn *c, int status, const char *id)
{
	cleanup_buf struct buf b = { 0 };
	enum task_reason why;
	if (put_job(c, id, &b, &why))
		reply_json(c, status, buf_bytes(&b));
	else
		reply_error(c, 404, "not_found", "no such job");
}

void serve_job(struct conn *c) { reply_job(c, 200, c->req->id); }

/* The answer to the first post was lost: the same is said again.  It is one
 * job, and it went to a runner once or never. */
void serve_job_again(struct conn *c, const char *id)
{
	cleanup_buf struct buf b = { 0 };
	enum task_reason why = REASON_NONE;
	const char *error, *message;
	put_job(c, id, &b, &why);
	if (why == REASON_NO_RUNNER || why == REASON_BUSY) {
		error = task_refusal(why, &message);
		reply_error(c, 409, error, message);
	} else {
		reply_job(c, 201, id);
	}
}

void serve_job_posted(struct conn *c, struct intent *it)
{
	cleanup_buf struct buf b = { 0 };
	if (it->status == 409 && strcmp(it->error, "duplicate") == 0) {
		serve_job_again(c, (const char *)it->key);
	} else if (it->status >= 400) {
		route_done(c, it);
	} else {
		task_put(&b, (const char *)it->key, TASK_ASSIGNED, it->runner,
			REASON_NONE);
		reply_json(c, 201, buf_bytes(&b));
	}
}

void serve_claim(struct conn *c)
{
	struct req *r = c->req;
	if (!item_is_id(bytes_str(r->id))) {
		reply_error(c, 404, "not_found", "no such job");
		return;
	}
	struct intent *it = task_intent(r->session, r->id, TASK_RUNNING, r->by,
				       REASON_NONE);
	if (it)
		it->by = r->by;
	route_commit(c, it);
}

void serve_claimed(struct conn *c, struct intent *it)
{
	if (it->status >= 400)
		route_done(c, it);
	else
		reply_job(c, 200, (const char *)it->key);
}

void serve_cancel(struct conn *c)
{
	struct req *r = c->req;
	cleanup_buf struct buf extra = { 0 }, data = { 0 };
	if (!item_is_id(bytes_str(r->id))) {
		reply_error(c, 404, "not_found", "no such job");
		return;
	}
	buf_add(&extra, r->id, ITEM_ID);
	buf_add(&extra, r->by->cert.pub, PRIM_PUB);
	task_put_by(&data, r->id, r->by);
	struct intent *it = intent_new(r->session, REC_CANCEL, loop_wall_ms(),
				       buf_bytes(&extra), buf_bytes(&data));
	if (it) {
		it->by = r->by;
		memcpy(it->key, r->id, ITEM_ID);
	}
	route_commit(c, it);
}
