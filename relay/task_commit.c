/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/check.h"
#include "relay/task_commit.h"
#include "relay/loop.h"

struct intent *task_intent(struct session *s, const char *id,
			  enum task_state state, struct participant *runner,
			  enum task_reason reason)
{
	static const uint8_t none[PRIM_PUB];
	cleanup_buf struct buf extra = { 0 }, data = { 0 };
	buf_add(&extra, id, ITEM_ID);
	buf_add_byte(&extra, (uint8_t)state);
	buf_add_byte(&extra, (uint8_t)reason);
	buf_add(&extra, runner ? runner->cert.pub : none, PRIM_PUB);
	task_put(&data, id, state, runner, reason);
	struct intent *it = intent_new(s, REC_JOB, loop_wall_ms(),
				       buf_bytes(&extra), buf_bytes(&data));
	if (!it)
		return NULL;
	memcpy(it->key, id, ITEM_ID);
	it->job_state = (uint8_t)state;
	it->reason = (uint8_t)reason;
	it->runner = runner;
	return it;
}

/* ---- what may be ---- */

static int check_claim(struct intent *it, const struct task *j)
{
	if (j->runner != it->by)
		return check_say(it, 403, "forbidden",
				 "this job was not given to this runner");
	/* asked again, where the answer was lost */
	if (j->state == TASK_RUNNING)
		return check_say(it, 200, NULL, NULL);
	if (j->state != TASK_ASSIGNED || j->cancelling)
		return check_say(it, 410, "gone", "this job was withdrawn");
	it->answer = 200;
	return 0;
}

/* An end that was queued: whether it is due still. */
static int check_end(struct state *st, struct intent *it, struct task *j)
{
	enum task_reason why;
	j->queued = false;
	enum task_state due = task_due(st, j, loop_mono_ms(), &why);
	return due == it->job_state && why == it->reason ? 0 :
	       check_say(it, 204, NULL, NULL);
}

static int check_cancel(struct intent *it, const struct task *j)
{
	if (it->by->cert.role != ROLE_OWNER && j->item->author != it->by)
		return check_say(it, 403, "forbidden",
				 "only the owner and its sender cancel a job");
	return task_is_open(j) && !j->cancelling ? 0 :
	       check_say(it, 204, NULL, NULL);
}

/* A rejection is final; who left cannot come back to be approved. */
static int check_runner(struct intent *it)
{
	const struct participant *p = state_by_pub(it->session, it->key);
	bool approve = it->fact.type == REC_APPROVED;
	if (!p || !p->runner)
		return check_say(it, 404, "not_found", "no such runner");
	if (p->runner->rejected)
		return approve ? check_say(it, 409, "conflict",
					   "this runner was rejected") :
				 check_say(it, 204, NULL, NULL);
	if (p->gone)
		return check_say(it, 409, "conflict",
				 "this runner is not in the session any more");
	return approve && p->approved ? check_say(it, 204, NULL, NULL) : 0;
}

int task_check(struct state *st, struct intent *it)
{
	if (it->fact.type == REC_APPROVED || it->fact.type == REC_REJECTED)
		return check_runner(it);
	struct task *j = task_find(it->session, (const char *)it->key);
	if (!j)
		return check_say(it, 404, "not_found", "no such job");
	if (it->fact.type == REC_CANCEL)
		return check_cancel(it, j);
	return it->by ? check_claim(it, j) : check_end(st, it, j);
}

int task_check_result(struct intent *it)
{
	const struct task *j = it->job_id[0] ?
			      task_find(it->session, it->job_id) : NULL;
	if (!j)
		return check_say(it, 400, "policy", "a runner's result names "
				 "its job in its refs");
	if (j->runner != it->by)
		return check_say(it, 403, "forbidden",
				 "this job was not given to this runner");
	if (!task_is_open(j) || j->answered)
		return check_say(it, 409, "conflict",
				 "this job has ended already");
	return 0;
}

/* ---- what follows ---- */

const char *task_refusal(enum task_reason why, const char **message)
{
	*message = why == REASON_BUSY ?
		   "this runner has another job" :
		   "no approved runner that fits is online and idle";
	return why == REASON_BUSY ? "runner_busy" : "no_runner_available";
}

static struct intent *route(struct state *st, struct intent *it)
{
	enum task_reason why;
	const char *id = (const char *)it->key;
	struct participant *p = task_route(st, it->session, it->target,
					  loop_mono_ms(), &why);
	it->answer = p ? 201 : 409;
	it->runner = p;
	if (p)
		return task_intent(it->session, id, TASK_ASSIGNED, p,
				  REASON_NONE);
	it->error = task_refusal(why, &it->message);
	return task_intent(it->session, id, TASK_FAILED, NULL, why);
}

int task_follow(struct state *st, struct intent *it)
{
	const struct task *j;
	if (it->fact.type == REC_ITEM && it->kind == ITEM_JOB) {
		it->then = route(st, it);
	} else if (it->fact.type == REC_ITEM && it->kind == ITEM_RESULT &&
		   it->by->runner) {
		j = task_find(it->session, it->job_id);
		it->then = task_intent(it->session, it->job_id, TASK_DONE,
				      j->runner, REASON_NONE);
	} else if (it->fact.type == REC_CANCEL) {
		j = task_find(it->session, (const char *)it->key);
		if (j->state != TASK_ASSIGNED)
			return 0;
		it->then = task_intent(it->session, j->item->id, TASK_FAILED,
				      j->runner, REASON_CANCELLED);
	} else {
		return 0;
	}
	return it->then ? 0 : -1;
}

void task_sweep(struct state *st, struct commit *c, struct session *s,
	       int64_t now_ms)
{
	for (struct task *j = s->jobs; j && !s->closed; j = j->next) {
		enum task_reason why;
		enum task_state due = task_due(st, j, now_ms, &why);
		if (due == TASK_NEW || j->queued)
			continue;
		struct intent *it = task_intent(s, j->item->id, due, j->runner,
					       why);
		if (!it)
			return;		/* the next sweep does */
		j->queued = true;
		commit_queue(c, it);
	}
}
