/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "airloxfs/follow.h"

#define WAIT_APPROVALS_MS 2000
#define GRACE_MS 2000	/* for a result behind the relay's "failed" */

/* --- results --- */

static void choose(struct follow *f)
{
	for (size_t i = 0; f->has_job && !f->result && i < f->claimed_n; i++) {
		const struct claimed_result *c = &f->claimed[i];
		if (job_accepts(&f->job, &c->payload, &c->author,
				&f->peer->manifest, &f->approvals, NULL) == 0)
			f->result = c;
	}
	if (f->result) {
		f->live.over = true;
		f->feed.done = f->feed.live;
	}
}

/* Kept also where it does not count yet: the approval may come later. */
static int keep_result(struct follow *f, const struct shown *s, struct err *e)
{
	struct claimed_result *c = &f->claimed[f->claimed_n];
	const struct opened *o = s->opened;

	if (!f->has_job || f->claimed_n == FOLLOW_RESULTS_MAX ||
	    strcmp(o->payload.u.result.job.id, f->job.ref.id) != 0)
		return 0;
	*c = (struct claimed_result){ .author = s->item->author };
	buf_add(&c->meta, o->meta.data, o->meta.len);
	if (buf_failed(&c->meta) ||
	    payload_parse(&c->payload, buf_bytes(&c->meta), 0, e) < 0) {
		buf_free(&c->meta);
		return err_set(e, ERR_MEMORY, "out of memory");
	}
	f->claimed_n++;
	choose(f);
	return 0;
}

static int hear_shown(void *arg, const struct shown *s, struct err *e)
{
	struct follow *f = arg;

	if (s->status == SHOWN_PENDING) {
		*e = *s->why;
		return -1;
	}
	if (s->status != SHOWN_OK)
		return 0;
	switch (s->opened->payload.kind) {
	case ITEM_EVENT:
		if (approval_hear(&f->approvals, &s->opened->payload,
				  s->item->author.role, e) < 0)
			return -1;
		choose(f);
		return 0;
	case ITEM_RESULT:
		return keep_result(f, s, e);
	case ITEM_JOB:
		if (f->has_job)
			return 0;
		f->has_job = true;
		return job_read(&f->job, &s->opened->ref,
				buf_bytes(&s->opened->meta), e);
	case ITEM_TEXT:
	case ITEM_FILE:
		break;
	}
	return 0;
}

/* --- what is worth fetching --- */

static bool keep_file(struct follow *f, struct incoming *in)
{
	void *v = realloc(f->file, (f->file_n + 1) * sizeof in);

	if (!v)
		return false;
	f->file = v;
	f->file[f->file_n++] = in;
	return true;
}

static enum feed_pick pick(void *arg, struct incoming *in)
{
	struct follow *f = arg;
	const struct item_header *h = &in->env.header;

	switch (h->kind) {
	case ITEM_EVENT:
		return in->author.role == ROLE_OWNER ? FEED_SHOW : FEED_LEAVE;
	case ITEM_JOB:
		return f->job_id && !strcmp(h->id, f->job_id) ? FEED_SHOW :
			FEED_LEAVE;
	case ITEM_RESULT:
		return f->has_job && in->author.role == ROLE_RUNNER ?
			FEED_SHOW : FEED_LEAVE;
	case ITEM_FILE:
		if (in->author.role == ROLE_RUNNER && keep_file(f, in))
			return FEED_KEEP;
		break;
	case ITEM_TEXT:
		break;
	}
	return FEED_LEAVE;
}

/* --- the relay's word, and live output --- */

static int hear_job(struct follow *f, const struct news *n)
{
	enum routed state;

	if (!f->job_id || strcmp(n->id, f->job_id) != 0 ||
	    routed_parse(&state, bytes_str(n->word)) < 0)
		return 0;
	f->ran |= state == ROUTED_RUNNING || state == ROUTED_DONE;
	if (n->has_pub && f->has_job && state == ROUTED_RUNNING)
		live_runner(&f->live, &f->job, &f->peer->manifest,
			    &f->approvals, n->pub);
	if (state == ROUTED_FAILED) {
		f->failed = true;
		free(f->reason);
		f->reason = n->reason ? strdup(n->reason) : NULL;
		f->feed.done = f->feed.live;
	}
	return 0;
}

static int hear_news(void *arg, const struct event *ev, const struct news *n,
		     struct err *e)
{
	struct follow *f = arg;
	cleanup_buf struct buf more = { 0 };
	enum progress_stream stream;

	(void)e;
	if (n->kind == NEWS_JOB)
		return hear_job(f, n);
	if (n->kind == NEWS_LIVE && f->has_job && f->output &&
	    live_hear(&f->live, f->peer, &f->job, ev, &stream, &more,
		      NULL) == 1)
		f->output(f->output_arg, stream, buf_bytes(&more));
	return 0;
}

/* --- */

int follow_open(struct follow *f, struct peer *p, struct err *e)
{
	*f = (struct follow){ .peer = p };
	if (p->manifest.mode != MODE_EXECUTE)
		return err_set(e, ERR_POLICY, "this session runs no jobs: it "
			       "was made without --execute");
	if (feed_open(&f->feed, p, hear_shown, f, e) < 0)
		return -1;
	f->feed.pick = pick;
	f->feed.news = hear_news;
	return 0;
}

void follow_close(struct follow *f)
{
	if (!f->peer)
		return;
	feed_close(&f->feed);
	approval_free(&f->approvals);
	for (size_t i = 0; i < f->claimed_n; i++) {
		payload_free(&f->claimed[i].payload);
		buf_free(&f->claimed[i].meta);
	}
	for (size_t i = 0; i < f->file_n; i++)
		incoming_free(f->file[i]);
	free(f->file);
	if (f->has_job)
		job_free(&f->job);
	free(f->reason);
	*f = (struct follow){ 0 };
}

int follow_now(struct follow *f, struct err *e)
{
	return feed_now(&f->feed, e);
}

int follow_approvals(struct follow *f, const uint8_t *pub, struct err *e)
{
	int64_t now, end = clock_mono_ms() + WAIT_APPROVALS_MS;

	if (!f->peer->manifest.job.approve_runners)
		return 0;
	while (f->feed.waiting_n && (now = clock_mono_ms()) < end &&
	       !(pub && approval_of(&f->approvals, pub) != APPROVAL_NONE))
		if (feed_follow(&f->feed, now + 100, e) < 0)
			return -1;
	return 0;
}

void follow_job(struct follow *f, const struct job *j)
{
	f->job = *j;
	f->has_job = true;
	f->job_id = f->job.ref.id;
	f->feed.done = f->failed = f->ran = false;
}

/* Whatever was heard first; a session that ended says so. */
static int follow_until(struct follow *f, int64_t end_ms, struct err *e)
{
	f->feed.done = false;
	if (feed_follow(&f->feed, end_ms, e) < 0)
		return -1;
	if (f->peer->state != PEER_CLOSED || f->result || f->failed)
		return 0;
	*e = f->peer->why;
	return -1;
}

int follow_result(struct follow *f, int64_t end_ms, struct err *e)
{
	int64_t end;

	if (!f->result && !f->failed && follow_until(f, end_ms, e) < 0)
		return -1;
	if (f->result || !f->failed || !f->ran)
		return 0;
	/* who ran it may have said more than the relay knows */
	end = clock_mono_ms() + GRACE_MS;
	return follow_until(f, end < end_ms ? end : end_ms, e);
}

struct incoming *follow_file(struct follow *f, const struct out_file *out,
			     struct err *e)
{
	for (size_t i = 0; i < f->file_n; i++)
		if (!strcmp(f->file[i]->env.header.id, out->item.id))
			return f->file[i];
	err_set(e, ERR_NOT_FOUND, "its item was not in the session");
	return NULL;
}
