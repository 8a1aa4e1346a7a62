/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/host/live.h"

void live_runner(struct live *l, const struct job *j, const struct manifest *m,
		 const struct approval_list *a, const uint8_t pub[PRIM_PUB])
{
	if (!job_may_run(j, m, a, pub))
		return;
	l->has_runner = true;
	memcpy(l->runner, pub, PRIM_PUB);
}

/* Who sent it, and whether it is newer: only then is it worth opening. */
static int check(const struct live *l, const struct peer *p,
		 const struct progress *f, struct err *e)
{
	if (strcmp(f->session_id, p->manifest.session_id) != 0)
		return err_set(e, ERR_POLICY, "live output of another "
			       "session");
	if (!l->has_runner || l->over)
		return err_set(e, ERR_POLICY, "live output of a job that "
			       "does not run");
	if (l->has_seq && f->seq <= l->seq)
		return err_set(e, ERR_POLICY, "live output that was here "
			       "already");
	return progress_verify(f, l->runner, e);
}

int live_hear(struct live *l, const struct peer *p, const struct job *j,
	      const struct event *ev, enum progress_stream *stream,
	      struct buf *out, struct err *e)
{
	struct progress f;
	struct err own;
	int got = 0;

	e = e ? e : &own;
	*e = (struct err){ 0 };
	if (ev->has_seq || strcmp(ev->kind, PROGRESS_EVENT) != 0 ||
	    progress_parse(&f, ev->data, e) < 0)
		return 0;
	if (!strcmp(f.job, j->ref.id)) {
		got = check(l, p, &f, e) == 0 &&
		      progress_open(out, &f, p->invite.keys.session_key,
				    e) == 0;
		l->refused += !got;
	}
	if (got) {
		l->has_seq = true;
		l->seq = f.seq;
		*stream = f.stream;
	}
	progress_free(&f);
	return got;
}

int live_frame(struct buf *body, const struct peer *p, const char *job,
	       uint64_t seq, enum progress_stream stream, struct bytes output,
	       struct err *e)
{
	struct progress f = { .seq = seq, .stream = stream };

	if (!item_is_id(bytes_str(job)))
		return err_set(e, ERR_INVALID, "that is no job id");
	strcpy(f.job, job);
	strcpy(f.session_id, p->manifest.session_id);
	int r = progress_seal(&f, output, p->invite.keys.session_key,
			      p->identity.seed, NULL, e);
	if (r == 0)
		progress_put(body, &f);
	progress_free(&f);
	return r == 0 && buf_failed(body) ?
		err_set(e, ERR_MEMORY, "out of memory") : r;
}
