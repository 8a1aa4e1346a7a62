/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "relay/task.h"

const char *task_state_word(enum task_state state)
{
	static const char *const words[] = {
		[TASK_NEW] = "assigned", [TASK_ASSIGNED] = "assigned",
		[TASK_RUNNING] = "running", [TASK_DONE] = "done",
		[TASK_FAILED] = "failed" };
	return words[state];
}

const char *task_reason_word(enum task_reason reason)
{
	static const char *const words[REASONS] = {
		[REASON_NO_RUNNER] = "no_runner_available",
		[REASON_BUSY] = "runner_busy",
		[REASON_CANCELLED] = "cancelled",
		[REASON_NOT_CLAIMED] = "not claimed in time",
		[REASON_LOST] = "runner lost",
		[REASON_LEFT] = "runner left",
		[REASON_RESTARTED] = "relay restarted" };
	return reason < REASONS ? words[reason] : NULL;
}

struct task *task_find(struct session *s, const char *id)
{
	struct item *it = state_item(s, id);
	return it ? it->job : NULL;
}

bool task_is_open(const struct task *j)
{
	return j->state != TASK_DONE && j->state != TASK_FAILED;
}

bool task_is_busy(const struct participant *runner)
{
	return runner->runner && runner->runner->job;
}

bool task_is_online(const struct state *st, const struct participant *runner,
		   int64_t now_ms)
{
	const struct runner *r = runner->runner;
	return r && !runner->gone && r->beat_ms &&
	       now_ms - r->beat_ms < st->limits.silent_ms;
}

/* The published client's jobs do not list their inputs where a relay could
 * see them: any file that was here before will do. */
static bool may_be_input(const struct task *j, const struct item *it)
{
	return j->any_input && it->kind == ITEM_FILE &&
	       it->seq < j->item->seq;
}

bool task_needs(const struct participant *runner, const struct item *it)
{
	const struct task *own = runner->runner ? runner->runner->job : NULL;
	if (it->job)
		return it->job->runner == runner &&
		       it->job->state != TASK_FAILED;
	for (uint32_t i = 0; own && i < own->input_n; i++)
		if (own->input[i] == it)
			return true;
	return own && may_be_input(own, it);
}

uint64_t task_hold_before(const struct session *s)
{
	uint64_t before = 0;
	for (const struct task *j = s->jobs; j; j = j->next)
		if (j->any_input && j->item->seq > before)
			before = j->item->seq;
	return before;
}

bool task_holds(const struct session *s, const struct item *it,
		uint64_t before, int64_t now_ms)
{
	if (it->kind != ITEM_FILE || s->m.mode != MODE_EXECUTE)
		return false;
	return it->seq < before || now_ms < it->hold_ms;
}

/* ---- routing ---- */

static bool has_label(const struct runner *r, const char *label)
{
	for (uint32_t i = 0; i < r->label_n; i++)
		if (strcmp(r->label[i], label) == 0)
			return true;
	return false;
}

static bool fits(const struct participant *p, const struct aim *t)
{
	switch (t->kind) {
	case AIM_ANY:
		return true;
	case AIM_LABELS:
		for (size_t i = 0; i < t->label_n; i++)
			if (!has_label(p->runner, t->label[i]))
				return false;
		return true;
	case AIM_RUNNER:
		return memcmp(p->cert.pub, t->pub, PRIM_PUB) == 0 &&
		       strcmp(p->runner->name, t->name) == 0;
	}
	return false;
}

struct participant *task_route(const struct state *st, struct session *s,
			      const struct aim *t, int64_t now_ms,
			      enum task_reason *why)
{
	struct participant *best = NULL;
	*why = REASON_NO_RUNNER;
	for (uint32_t i = 0; i < s->part_n; i++) {
		struct participant *p = s->part[i];
		if (!task_is_online(st, p, now_ms) || !p->approved ||
		    !fits(p, t))
			continue;
		if (task_is_busy(p)) {
			/* of many none is idle: none is available */
			if (t->kind == AIM_RUNNER)
				*why = REASON_BUSY;
		} else if (!best || p->runner->turn < best->runner->turn) {
			best = p;
		}
	}
	return best;
}

enum task_state task_due(const struct state *st, const struct task *j,
		       int64_t now_ms, enum task_reason *why)
{
	const struct limits *l = &st->limits;
	*why = REASON_NONE;
	if (!task_is_open(j))
		return TASK_NEW;
	if (j->answered)
		return TASK_DONE;
	if (j->state == TASK_NEW)
		*why = REASON_RESTARTED;
	else if (j->runner->gone)
		*why = REASON_LEFT;
	else if (j->cancelling && (j->state == TASK_ASSIGNED ||
				   now_ms - j->cancel_ms >= l->silent_ms))
		*why = REASON_CANCELLED;
	else if (j->state == TASK_ASSIGNED && now_ms - j->since_ms >= l->claim_ms)
		*why = REASON_NOT_CLAIMED;
	else if (j->state == TASK_RUNNING && now_ms - j->seen_ms >= l->silent_ms)
		*why = REASON_LOST;
	return *why ? TASK_FAILED : TASK_NEW;
}

/* ---- */

void task_put(struct buf *out, const char *id, enum task_state state,
	     const struct participant *runner, enum task_reason reason)
{
	const char *why = task_reason_word(reason);
	buf_addf(out, "{\"job\":\"%s\",\"reason\":", id);
	if (why)
		json_put_string(out, bytes_str(why));
	else
		buf_add_str(out, "null");
	buf_add_str(out, ",\"runner\":");
	if (runner)
		json_put_b64(out, runner->cert.pub, PRIM_PUB);
	else
		buf_add_str(out, "null");
	buf_addf(out, ",\"state\":\"%s\"}", task_state_word(state));
}

void task_put_by(struct buf *out, const char *id, const struct participant *by)
{
	buf_add_str(out, "{\"by\":");
	json_put_b64(out, by->cert.pub, PRIM_PUB);
	buf_addf(out, ",\"job\":\"%s\"}", id);
}

void task_free(struct task *j)
{
	if (!j)
		return;
	free(j->input);
	free(j);
}

void task_free_runner(struct runner *r)
{
	if (!r)
		return;
	free(r->label);
	free(r);
}
