/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "relay/duty.h"

/* The join as it was posted, in JSON's quotes, out of the event's data: the
 * last member there.  A name in it cannot look like this: its quotes are
 * escaped. */
static struct bytes find_join(struct bytes data)
{
	static const char key[] = ",\"signed_join\":";
	const uint8_t *p = memmem(data.p, data.n, key, sizeof key - 1);
	const uint8_t *end = data.p + data.n - 1;	/* the brace */
	if (!p)
		return (struct bytes){ 0 };
	p += sizeof key - 1;
	return (struct bytes){ p, (size_t)(end - p) };
}

static const char *truth(bool b) { return b ? "true" : "false"; }

static int put_runner(struct state *st, struct session *s,
		      const struct participant *p, struct buf *out,
		      struct err *e)
{
	cleanup_buf struct buf body = { 0 };
	const struct runner *r = p->runner;
	struct fact f;
	if (store_read(st->store, &s->rec[r->rec], &body, e) < 0 ||
	    fact_parse(&f, buf_bytes(&body), e) < 0)
		return -1;
	struct bytes join = find_join(f.data);
	buf_addf(out, "{\"approved\":%s,\"job\":", truth(p->approved));
	if (r->job)
		buf_addf(out, "\"%s\"", r->job->item->id);
	else
		buf_add_str(out, "null");
	buf_addf(out, ",\"online\":%s,\"participant_pub\":",
		 truth(task_is_online(st, p, loop_mono_ms())));
	json_put_b64(out, p->cert.pub, PRIM_PUB);
	buf_addf(out, ",\"rejected\":%s,\"signed_join\":",
		 truth(r->rejected));
	buf_add(out, join.p, join.n);
	buf_add_byte(out, '}');
	return 0;
}

int duty_text(struct state *st, struct req *r, size_t enough,
		struct buf *out, struct err *e)
{
	struct session *s = r->session;
	if (s->closed)
		return err_set(e, ERR_GONE, "the session is closed");
	for (; r->next < r->end && out->len < enough; r->next++) {
		const struct participant *p = s->part[r->next];
		if (!p->runner || (p->gone && !p->runner->rejected))
			continue;
		if (r->listed)
			buf_add_byte(out, ',');
		r->listed = true;
		if (put_runner(st, s, p, out, e) < 0)
			return -1;
	}
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

static void put_event(struct conn *c, const char *kind, const char *id)
{
	buf_addf(&c->out, "event: %s\ndata: {\"job\":\"%s\"}\n\n", kind, id);
}

/* What it was told to run, and what it says that it runs, may be to stop. */
static bool put_end(struct conn *c, struct runner *r)
{
	const struct task *told = c->told[0] ? task_find(c->session, c->told) :
					      NULL;
	if (told && !c->told_end &&
	    (told->cancelling || told->state == TASK_FAILED)) {
		put_event(c, "job_cancel", c->told);
		c->told_end = true;
		return true;
	}
	if (!r->stray[0])
		return false;
	put_event(c, "job_cancel", r->stray);
	r->stray[0] = 0;
	return true;
}

bool duty_news(struct conn *c)
{
	struct runner *r = c->by->runner;
	const struct task *j = r->job;
	if (put_end(c, r))
		return true;
	if (!j || strcmp(c->told, j->item->id) == 0)
		return false;
	if (j->state != TASK_ASSIGNED && !j->cancelling)
		return false;		/* it knows of it by itself */
	memcpy(c->told, j->item->id, sizeof c->told);
	c->told_end = j->cancelling;
	put_event(c, j->cancelling ? "job_cancel" : "job_assigned", c->told);
	return true;
}

void duty_beat(struct session *s, struct participant *p, const char *id,
		 int64_t now_ms)
{
	const struct task *j = id[0] ? task_find(s, id) : NULL;
	p->runner->beat_ms = now_ms;
	if (!j || j->runner != p)
		return;
	if (p->runner->job == j)
		p->runner->job->seen_ms = now_ms;
	else if (j->state == TASK_FAILED && strcmp(p->runner->stray, id) != 0) {
		memcpy(p->runner->stray, id, sizeof p->runner->stray);
		hub_wake(&s->hub);
	}
}

void duty_away(struct participant *p)
{
	p->runner->beat_ms = 0;
}
