/* SPDX-License-Identifier: MIT
 *
 * How a job ends: what is in its files is put down in the journal.  Sealing it
 * is queue_seal.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "core/clear.h"
#include "core/host/clock.h"

void queue_end_free(struct qend *end)
{
	buf_free(&end->reason);
	buf_free(&end->out);
	buf_free(&end->err);
}

/* --- what the files say; with q->lock --- */

/* A number alone on its line; empty: `none`. */
static int read_number(const struct buf *b, int64_t min, int64_t max,
		       int64_t *out, bool *has)
{
	char text[32] = "", *end;
	size_t n = b->len < sizeof text ? b->len : sizeof text - 1;
	*has = false;
	if (n)
		memcpy(text, b->data, n);
	while (n && strchr(" \n\t\r", text[n - 1]))
		text[--n] = 0;
	if (!n)
		return 0;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (*end || errno || v < min || v > max || n == sizeof text - 1)
		return -1;
	*out = v;
	*has = true;
	return 0;
}

/* UTF-8 of at most QUEUE_REASON_CHARS characters, without the last newline. */
static void put_reason(struct buf *out, struct bytes s)
{
	size_t chars = 0;
	while (s.n && s.p[s.n - 1] == '\n')
		s.n--;
	for (size_t at = 0; at < s.n && chars < QUEUE_REASON_CHARS; chars++) {
		uint32_t c = clear_next(s, &at);
		clear_put(out, c == UINT32_MAX ? 0xfffd : c);
	}
}

static int fill_exit(struct qjob *j, struct qend *end, struct err *e)
{
	bool may = end->status == RESULT_COMPLETED ||
		end->status == RESULT_FAILED;
	if (read_number(&j->exit, INT32_MIN, INT32_MAX, &end->exit,
			&end->has_exit) < 0)
		return err_set(e, ERR_VERB, "exit is no number: write the exit "
			       "code of the job into it");
	if (!end->has_exit && end->status == RESULT_COMPLETED)
		return err_set(e, ERR_VERB, "write the exit code of the job "
			       "into exit before done");
	if (!may) {
		end->has_exit = false;
		end->exit = 0;
	}
	return 0;
}

static int fill(struct qjob *j, struct qend *end, const char *reason,
		struct err *e)
{
	bool has;
	if (fill_exit(j, end, e) < 0)
		return -1;
	if (read_number(&j->peak, 0, UINT32_MAX, &end->peak_mem_mb, &has) < 0)
		return err_set(e, ERR_VERB, "peak_mem_mb is no number");
	put_reason(&end->reason, reason ? bytes_str(reason)
					: buf_bytes(&j->reason));
	bool wants = end->status == RESULT_FAILED ||
		end->status == RESULT_REFUSED;
	if (wants && !end->reason.len)
		return err_set(e, ERR_VERB, "give a reason, or write it into "
			       "reason before");
	end->wall_ms = j->claimed_ms ? clock_mono_ms() - j->claimed_ms : 0;
	end->out_cut = kept_text(&j->std[0], &end->out, KEPT_MAX);
	end->err_cut = kept_text(&j->std[1], &end->err, KEPT_MAX);
	return end->out.failed || end->err.failed || end->reason.failed
		? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

/* --- ending --- */

static bool may_end(const struct qjob *j, enum result_status status)
{
	return j->state == Q_CLAIMED ||
	       (j->state == Q_CLAIMING && status == RESULT_FAILED);
}

static int begin_end(struct queue_room *q, struct qjob *j,
		     enum result_status status, const char *reason,
		     enum qstate *was, struct err *e)
{
	struct qend end = { .status = j->cancelled ? RESULT_CANCELLED
						   : status };
	*was = j->state;
	if (!may_end(j, status))
		return err_set(e, ERR_VERB, "the job is not claimed, or is "
			       "over");
	if (fill(j, &end, reason, e) < 0) {
		queue_end_free(&end);
		return -1;
	}
	j->end = end;
	j->state = Q_ENDING;
	pthread_cond_broadcast(&q->claimed);
	return 0;
}

/* From here on it has ended, whatever happens. */
static int put_down(struct queue_room *q, struct qjob *j, struct err *e)
{
	pthread_mutex_lock(&q->lock);
	int rc = queue_remember(q, j->id, QK_FINISHED);
	pthread_mutex_unlock(&q->lock);
	if (rc < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (queue_note(q, QK_FINISHED, j, j->id, true, e) < 0)
		return -1;
	j->keep = true;
	return 0;
}

static void tell_end(struct qjob *j)
{
	cleanup_buf struct buf text = { 0 };
	if (j->end.has_exit)
		buf_addf(&text, "exit %lld%s", (long long)j->end.exit,
			 j->end.reason.len ? ", " : "");
	buf_add(&text, j->end.reason.data, j->end.reason.len);
	queue_tell(j->m, j->id, payload_status_word(j->end.status),
		   buf_cstr(&text));
}

int queue_finish(struct qjob *j, enum result_status status, const char *reason,
		 struct err *e)
{
	struct queue_room *q = j->m->queue;
	enum qstate was;
	pthread_mutex_lock(&q->lock);
	int rc = begin_end(q, j, status, reason, &was, e);
	pthread_mutex_unlock(&q->lock);
	if (rc < 0)
		return -1;
	pthread_mutex_lock(&j->io);	/* a write that had begun is over */
	pthread_mutex_unlock(&j->io);
	if (queue_out_sync(j, e) < 0 || put_down(q, j, e) < 0) {
		pthread_mutex_lock(&q->lock);
		j->state = was;
		queue_end_free(&j->end);
		pthread_mutex_unlock(&q->lock);
		return -1;
	}
	tell_end(j);
	queue_ask(q, QT_SEAL, j->id, j, 0, 0);
	return 0;
}

int queue_refuse(struct qjob *j, enum result_status status, const char *why,
		 struct err *e)
{
	struct queue_room *q = j->m->queue;
	pthread_mutex_lock(&q->lock);
	enum qstate was = j->state;
	bool may = was == Q_TAKING || was == Q_OPEN;
	if (may) {
		j->end.status = status;
		put_reason(&j->end.reason, bytes_str(why));
		j->state = Q_ENDING;
		if (was == Q_TAKING)
			queue_list(q, j);
	}
	pthread_mutex_unlock(&q->lock);
	if (!may)
		return err_set(e, ERR_VERB, "the job is over");
	if (put_down(q, j, e) < 0) {
		pthread_mutex_lock(&q->lock);
		if (was == Q_TAKING)
			queue_unlist(q, j);
		else
			j->state = Q_OPEN;
		queue_end_free(&j->end);
		pthread_mutex_unlock(&q->lock);
		return -1;
	}
	tell_end(j);
	queue_ask(q, QT_SEAL, j->id, j, 0, 0);
	return 0;
}
