/* SPDX-License-Identifier: MIT
 *
 * result: of a job that was submitted.  cancel: stops one. */
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/job_show.h"
#include "airloxfs/print.h"
#include "core/host/tell.h"

struct asking {
	struct common c;
	const char *out_dir, *wait;
	int64_t wait_ms;
	const char *id;
	struct peer *peer;
	struct follow follow;
};

/* The job as its author signed it. */
static int find_job(struct asking *q, char *invite, struct err *e)
{
	struct follow *f = &q->follow;

	q->peer = cmd_open(&q->c, invite, e);
	if (!q->peer || follow_open(f, q->peer, e) < 0)
		return -1;
	f->job_id = q->id;
	if (follow_now(f, e) < 0)
		return -1;
	if (!f->has_job && f->feed.waiting_n &&
	    feed_follow(&f->feed, clock_mono_ms() + 2000, e) < 0)
		return -1;
	return f->has_job ? 0 : err_set(e, ERR_NOT_FOUND, "no job %s in this "
					"session", q->id);
}

static int show_none(struct asking *q, int *status, struct err *e)
{
	struct routed_job state;
	cleanup_buf struct buf say = { 0 };

	if (wire_job_get(q->follow.feed.get, q->id, &state, e) < 0)
		return -1;
	*status = err_exit(ERR_NET);
	buf_addf(&say, "no result yet, the job is %s; --wait waits for it",
		 routed_word(state.state));
	if (buf_cstr(&say))
		job_show_state(q->c.json, q->id, routed_word(state.state),
			       NULL, buf_cstr(&say));
	routed_job_free(&state);
	return 0;
}

static int result(struct asking *q, char *invite, int *status, struct err *e)
{
	const struct job_show show = { .json = q->c.json,
				       .out_dir = q->out_dir };
	struct follow *f = &q->follow;

	if (clock_parse_duration(bytes_str(q->wait), &q->wait_ms) < 0)
		return err_set(e, ERR_USAGE, "--wait: like 30s, 10m or never");
	if (find_job(q, invite, e) < 0)
		return -1;
	int64_t end = q->wait_ms == CLOCK_FOREVER ? CLOCK_FOREVER :
		clock_mono_ms() + q->wait_ms;
	if (!f->result && (q->wait_ms > 0 || f->feed.waiting_n) &&
	    follow_result(f, q->wait_ms > 0 ? end : end + 2000, e) < 0)
		return -1;
	if (!f->result && !f->failed)
		return show_none(q, status, e);
	return job_show_end(&show, f, status, e);
}

static int cancel(struct asking *q, char *invite, int *status, struct err *e)
{
	cleanup_buf struct buf b = { 0 };

	*status = 0;
	if (find_job(q, invite, e) < 0 ||
	    job_cancel(q->peer, q->follow.feed.get, &q->follow.job.ref, e) < 0)
		return -1;
	if (!q->c.json) {
		tell_say("asked for the end of %s", q->id);
		return 0;
	}
	buf_add_byte(&b, '{');
	print_member(&b, "cancelled", q->id);
	buf_add_byte(&b, '}');
	*status = print_doc(&b);
	return 0;
}

static int run(struct asking *q, struct args *a,
	       int (*act)(struct asking *q, char *invite, int *status,
			  struct err *e))
{
	struct err e;
	int status = 0;
	char *invite = cmd_take_invite(&q->c, a, 1);

	if (a->n != 1 || !item_is_id(bytes_str(a->v[0])))
		return cmd_misuse(a->n == 1 ? "that is no job id; run prints "
				  "it" : "which job? one id");
	q->id = a->v[0];
	int r = act(q, invite, &status, &e);
	follow_close(&q->follow);
	peer_free(q->peer);
	if (r < 0)
		return tell_fail(&e);
	int flushed = tell_flush();
	return status ? status : flushed;
}

int cmd_result(struct setting *set, int argc, char **argv)
{
	struct asking q = { .c = { .setting = set }, .wait = "0s" };
	const struct flag flags[] = {
		CMD_FLAGS(q.c),
		{ "--out-dir", FLAG_TEXT, &q.out_dir, "DIR",
		  "save the files it wrote into this directory" },
		{ "--wait", FLAG_TEXT, &q.wait, "TIME",
		  "wait for it at most so long (default 0s)" },
		{ 0 }
	};
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs result [FLAGS] [INVITE] JOB",
			     "Print the result of a job, and exit as it did.");
	if (over >= 0)
		return over;
	return run(&q, &a, result);
}

int cmd_cancel(struct setting *set, int argc, char **argv)
{
	struct asking q = { .c = { .setting = set } };
	const struct flag flags[] = { CMD_FLAGS(q.c), { 0 } };
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs cancel [FLAGS] [INVITE] JOB",
			     "Stop a job.");
	if (over >= 0)
		return over;
	return run(&q, &a, cancel);
}
