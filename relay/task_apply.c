/* SPDX-License-Identifier: MIT
 *
 * What the facts on jobs and runners change.  The words of one are read here
 * and nowhere else; fact.h has them. */
#include <string.h>

#include "relay/task.h"
#include "relay/loop.h"
#include "relay/waiting.h"

static int no_memory(struct err *e)
{
	return err_set(e, ERR_MEMORY, "out of memory");
}

static int unknown(struct err *e)
{
	return err_set(e, ERR_SYS, "the log names what it never held");
}

int task_apply_join(struct session *s, struct participant *p,
		   struct fact_reader *r, struct err *e)
{
	struct runner *own = calloc(1, sizeof *own);
	p->runner = own;
	if (!own)
		return no_memory(e);
	own->rec = s->rec_n - 1;
	if (!r->left.n)
		return 0;
	fact_take_name(r, own->name, sizeof own->name);
	uint32_t n = fact_take_u8(r);
	own->label = calloc(n ? n : 1, sizeof *own->label);
	if (!own->label)
		return no_memory(e);
	for (; own->label_n < n; own->label_n++)
		fact_take_name(r, own->label[own->label_n],
			       sizeof *own->label);
	return 0;
}

static struct item *take_item(struct session *s, struct fact_reader *r)
{
	char id[ITEM_ID + 1] = "";
	fact_take(r, id, ITEM_ID);
	return state_item(s, id);
}

static void open_job(struct session *s, struct task *j)
{
	j->next = s->jobs;
	j->link = &s->jobs;
	if (j->next)
		j->next->link = &j->next;
	s->jobs = j;
}

static void close_job(struct task *j)
{
	*j->link = j->next;
	if (j->next)
		j->next->link = j->link;
}

static int new_job(struct session *s, struct item *it, struct fact_reader *r,
		   struct err *e)
{
	struct task *j = calloc(1, sizeof *j);
	if (!j)
		return no_memory(e);
	it->job = j;
	j->item = it;
	uint32_t n = fact_take_u8(r);
	j->any_input = n == FACT_ANY_INPUT;
	if (j->any_input)
		n = 0;
	j->input = calloc(n ? n : 1, sizeof(struct item *));
	if (!j->input)
		return no_memory(e);
	while (n--) {
		struct item *input = take_item(s, r);
		if (input)
			j->input[j->input_n++] = input;
	}
	open_job(s, j);
	return 0;
}

int task_apply_item(struct session *s, struct item *it, struct fact_reader *r,
		   struct err *e)
{
	/* before there were jobs, a log had these kinds without what follows */
	if (!r->left.n)
		return 0;
	if (it->kind == ITEM_JOB)
		return new_job(s, it, r, e);
	struct item *of = take_item(s, r);
	if (of && of->job && of->job->runner == it->author)
		of->job->answered = true;
	return 0;
}

/* Nobody waits for what the runner of an ended job did not take. */
static void release_job(struct session *s, struct task *j)
{
	for (uint32_t i = 0; i < j->input_n; i++)
		if (state_waits_for(j->input[i], j->runner))
			waiting_release(s, j->input[i], j->runner);
	if (state_waits_for(j->item, j->runner))
		waiting_release(s, j->item, j->runner);
}

static void end_job(struct session *s, struct task *j)
{
	close_job(j);
	if (j->runner) {
		release_job(s, j);
		j->runner->runner->job = NULL;
	}
	j->any_input = false;
	free(j->input);
	j->input = NULL;
	j->input_n = 0;
}

static int assign(struct session *s, struct task *j, struct participant *p,
		  struct err *e)
{
	j->runner = p;
	j->since_ms = loop_mono_ms();
	p->runner->job = j;
	p->runner->turn = ++s->turns;
	if (waiting_add(s, j->item, p) < 0)
		return no_memory(e);
	for (uint32_t i = 0; i < j->input_n; i++)
		if (j->input[i]->present && j->input[i]->author != p &&
		    waiting_add(s, j->input[i], p) < 0)
			return no_memory(e);
	return 0;
}

/* The open ones, for /metrics. */
static void count(struct state *st, enum task_state state, int n)
{
	if (state == TASK_ASSIGNED || state == TASK_RUNNING)
		atomic_fetch_add(&st->metrics.jobs[state == TASK_RUNNING],
				 (unsigned)n);
}

int task_apply_state(struct state *st, struct session *s,
		    struct fact_reader *r, struct err *e)
{
	uint8_t pub[PRIM_PUB];
	struct item *it = take_item(s, r);
	struct task *j = it ? it->job : NULL;
	enum task_state state = (enum task_state)fact_take_u8(r);
	enum task_reason reason = (enum task_reason)fact_take_u8(r);
	fact_take(r, pub, sizeof pub);
	struct participant *p = state_by_pub(s, pub);
	if (!j || !task_is_open(j) || state > TASK_FAILED || reason >= REASONS ||
	    (state != TASK_FAILED && (!p || !p->runner)))
		return unknown(e);
	count(st, j->state, -1);
	count(st, state, 1);
	j->state = state;
	j->reason = reason;
	j->queued = false;
	if (state == TASK_ASSIGNED)
		return assign(s, j, p, e);
	if (state == TASK_RUNNING)
		j->seen_ms = loop_mono_ms();
	else
		end_job(s, j);
	return 0;
}

int task_apply_cancel(struct session *s, struct fact_reader *r, struct err *e)
{
	uint8_t by[PRIM_PUB];
	struct item *it = take_item(s, r);
	fact_take(r, by, sizeof by);
	if (!it || !it->job)
		return unknown(e);
	it->job->cancelling = true;
	it->job->cancel_ms = loop_mono_ms();
	return 0;
}

int task_apply_approved(struct session *s, struct fact_reader *r,
		       struct err *e)
{
	uint8_t pub[PRIM_PUB];
	fact_take(r, pub, sizeof pub);
	struct participant *p = state_by_pub(s, pub);
	if (!p || !p->runner)
		return unknown(e);
	p->approved = true;
	return 0;
}

void task_apply_closed(struct state *st, struct session *s)
{
	for (struct task *j = s->jobs; j; j = j->next)
		count(st, j->state, -1);
}
