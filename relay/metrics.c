/* SPDX-License-Identifier: MIT */
#include "relay/metrics.h"
#include "relay/state.h"

static void put(struct buf *out, const char *name, const char *type,
		const char *help, unsigned long long v)
{
	buf_addf(out, "# HELP airlox_%s %s\n# TYPE airlox_%s %s\n"
		 "airlox_%s %llu\n", name, help, name, type, name, v);
}

static void put_answers(struct buf *out, const struct metrics *m)
{
	buf_add_str(out, "# HELP airlox_answers_total answers by class of "
		    "status\n# TYPE airlox_answers_total counter\n");
	for (int i = 2; i < 6; i++)
		buf_addf(out, "airlox_answers_total{status=\"%dxx\"} %llu\n",
			 i, (unsigned long long)m->answers[i]);
}

static void put_jobs(struct buf *out, const struct metrics *m)
{
	static const char *const open[] = { "assigned", "running" };
	static const char *const ended[] = { "done", "failed" };
	buf_add_str(out, "# HELP airlox_jobs open jobs by state\n"
		    "# TYPE airlox_jobs gauge\n");
	for (int i = 0; i < 2; i++)
		buf_addf(out, "airlox_jobs{state=\"%s\"} %u\n", open[i],
			 m->jobs[i]);
	buf_add_str(out, "# HELP airlox_jobs_ended_total jobs that ended\n"
		    "# TYPE airlox_jobs_ended_total counter\n");
	for (int i = 0; i < 2; i++)
		buf_addf(out, "airlox_jobs_ended_total{state=\"%s\"} %llu\n",
			 ended[i], (unsigned long long)m->jobs_ended[i]);
}

void metrics_put(struct state *st, struct buf *out)
{
	struct metrics *m = &st->metrics;
	pthread_mutex_lock(&st->lock);
	size_t sessions = st->session_n;
	pthread_mutex_unlock(&st->lock);
	int64_t left = st->free_bytes;
	put_answers(out, m);
	put(out, "limited_total", "counter", "answers that said 429",
	    m->limited);
	put(out, "sessions", "gauge", "open sessions", sessions);
	put(out, "connections", "gauge", "open connections", m->connections);
	put(out, "streams", "gauge", "open event streams", m->streams);
	put(out, "joins_total", "counter", "participants that joined",
	    m->joins);
	put(out, "items_total", "counter", "items made durable", m->items);
	put(out, "evictions_total", "counter", "blobs that left", m->evictions);
	put(out, "events_sent_total", "counter", "events sent on streams",
	    m->events_sent);
	put(out, "live_frames_total", "counter",
	    "frames of jobs' live output that were passed on",
	    m->live_frames);
	put(out, "blob_bytes_in_total", "counter", "bytes of blobs received",
	    m->bytes_in);
	put(out, "blob_bytes_out_total", "counter", "bytes of blobs sent",
	    m->bytes_out);
	put_jobs(out, m);
	put(out, "log_batches_total", "counter", "writes of the log, synced",
	    m->batches);
	put(out, "write_failures_total", "counter",
	    "writes that failed and were answered so", m->write_failures);
	if (left >= 0)
		put(out, "disk_free_bytes", "gauge",
		    "free on the data directory's disk",
		    (unsigned long long)left);
	put(out, "can_write", "gauge", "whether new items are taken",
	    state_can_write(st, NULL));
}
