/* SPDX-License-Identifier: MIT
 *
 * The relay's side of a runner: its stream of assignments, claims and
 * heartbeats, live output.  Each has a thread and a connection of its own:
 * none waits for another. */
#include <string.h>

#include "airloxfs/queue_private.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"
#include "core/host/live.h"
#include "core/host/wire_job.h"

#define BEAT_MS 10000
#define IDLE_MS 60000
#define FRAME_MS 250		/* four a second */
#define FRAME_TOTAL_MS 5000	/* output that is older is no news */
#define CLAIM_RETRY_MS 500
#define AWAY_TOTAL_MS 1000	/* an unmount does not wait longer for it */

/* --- what is assigned --- */

static int on_event(void *arg, const struct event *ev, struct err *e)
{
	struct queue_room *q = arg;
	char id[ITEM_ID + 1];
	(void)e;
	if (wire_assigned(id, ev->data) < 0)
		return 0;
	if (!strcmp(ev->kind, "job_assigned"))
		queue_ask(q, QT_TAKE, id, NULL, 0, 0);
	else if (!strcmp(ev->kind, "job_cancel"))
		queue_cancel_id(q->m, id, "cancelled");
	return 0;
}

static void *listener_thread(void *arg)
{
	struct queue_room *q = arg;
	unsigned tries = 0;
	bool told = false;
	while (!q->m->closed) {
		uint64_t delivered = 0;
		struct err e = { 0 };
		wire_runner_stream(q->listen_wire, on_event, q, &delivered,
				   &e);
		if (e.code == ERR_FORBIDDEN && !told)
			mount_log(q->m, "queue: the relay assigns nothing to "
				  "this runner yet: %s", e.why);
		told = e.code == ERR_FORBIDDEN;
		tries = delivered ? 0 : tries + 1;
		if (!queue_pause(q, peer_delay_ms(tries,
				wire_retry_after_ms(q->listen_wire))))
			break;
	}
	return NULL;
}

/* --- claims and heartbeats --- */

static bool is_withdrawal(const struct err *e)
{
	return e->code == ERR_CONFLICT || e->code == ERR_GONE ||
	       e->code == ERR_NOT_FOUND || e->code == ERR_FORBIDDEN;
}

/* With the lock, which is let go for the call.  False: ask again later. */
static bool claim_one(struct queue_room *q, struct qjob *j)
{
	struct err e = { 0 };
	queue_hold(j);
	pthread_mutex_unlock(&q->lock);
	int rc = wire_job_claim(q->beat_wire, j->id, &e);
	bool gone = rc < 0 && is_withdrawal(&e);
	pthread_mutex_lock(&q->lock);
	bool waits = j->state == Q_CLAIMING;
	if (rc == 0) {
		memcpy(q->beat_job, j->id, sizeof q->beat_job);
		j->claimed_ms = clock_mono_ms();
	}
	if (rc == 0 && waits)
		j->state = Q_CLAIMED;
	if (gone && waits) {
		j->withdrawn = true;
		queue_unlist(q, j);
	}
	pthread_cond_broadcast(&q->claimed);
	pthread_mutex_unlock(&q->lock);
	if (gone && waits) {
		queue_tell(q->m, j->id, "withdrawn", e.why);
		queue_note(q, QK_ENDED, NULL, j->id, false, NULL);
		queue_dir_vanish(j);
	} else if (rc == 0 && waits) {
		queue_tell(q->m, j->id, "claimed", NULL);
	} else if (rc < 0) {
		mount_failed(q->m, &e);
	}
	queue_drop(j);
	pthread_mutex_lock(&q->lock);
	return rc == 0 || gone;
}

static void beat(struct queue_room *q)
{
	struct err e = { 0 };
	char id[ITEM_ID + 1];
	memcpy(id, q->beat_job, sizeof id);
	pthread_mutex_unlock(&q->lock);
	int rc = wire_heartbeat(q->beat_wire, id[0] ? id : NULL, &e);
	if (rc < 0 && !q->ending && e.code != ERR_FORBIDDEN)
		mount_failed(q->m, &e);
	pthread_mutex_lock(&q->lock);
	q->heard |= rc == 0;
}

/* Nobody holds queue/ready any more: the relay need not find out by itself. */
static void rest(struct queue_room *q)
{
	struct err e;
	q->heard = false;
	pthread_mutex_unlock(&q->lock);
	wire_runner_away(q->beat_wire, &e);
	pthread_mutex_lock(&q->lock);
}

static struct qjob *to_claim(struct queue_room *q)
{
	struct qjob *j = q->jobs;
	while (j && !(j->state == Q_CLAIMING && !j->withdrawn))
		j = j->next;
	return j;
}

static void *beater_thread(void *arg)
{
	struct queue_room *q = arg;
	int64_t next = 0, retry = 0;
	pthread_mutex_lock(&q->lock);
	while (!q->ending) {
		int64_t now = clock_mono_ms();
		struct qjob *j = now >= retry ? to_claim(q) : NULL;
		if (j) {
			bool done = claim_one(q, j);
			retry = done ? 0 : clock_mono_ms() + CLAIM_RETRY_MS;
		} else if (q->holders && (q->beat_now || now >= next)) {
			q->beat_now = false;
			next = now + BEAT_MS;
			beat(q);
		} else if (!q->holders && q->heard) {
			rest(q);
		} else {
			int64_t due = q->holders ? next : now + IDLE_MS;
			bool claims = to_claim(q) != NULL;
			wait_until(&q->beat, &q->lock,
				   claims && retry < due ? retry : due);
		}
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* --- live output --- */

static bool has_output(const struct qjob *j)
{
	return j->state == Q_CLAIMED && !j->frames_off &&
	       (j->std[0].live.len || j->std[1].live.len);
}

/* With the lock: the job whose frame is due first. */
static struct qjob *next_frame(struct queue_room *q, int64_t *due)
{
	struct qjob *best = NULL;
	for (struct qjob *j = q->jobs; j; j = j->next)
		if (has_output(j) && (!best || j->frame_ms < best->frame_ms))
			best = j;
	if (best)
		*due = best->frame_ms + FRAME_MS;
	return best;
}

static int post_frame(struct queue_room *q, const struct qjob *j,
		      uint64_t seq, unsigned stream, struct bytes output,
		      struct err *e)
{
	cleanup_buf struct buf body = { 0 };
	if (live_frame(&body, q->m->peer, j->id, seq,
		       (enum progress_stream)stream, output, e) < 0)
		return -1;
	return wire_job_progress(q->live_wire, j->id, buf_bytes(&body), e);
}

/* With the lock, which is let go for the call. */
static void send_frame(struct queue_room *q, struct qjob *j)
{
	struct err e = { 0 };
	cleanup_buf struct buf output = { 0 };
	unsigned s = j->std[j->turn % 2].live.len ? j->turn % 2
						  : (j->turn + 1) % 2;
	kept_take_live(&j->std[s], &output);
	j->turn = s + 1;
	j->frame_ms = clock_mono_ms();
	uint64_t seq = ++j->frame_seq;
	queue_hold(j);
	pthread_mutex_unlock(&q->lock);
	int rc = post_frame(q, j, seq, s, buf_bytes(&output), &e);
	pthread_mutex_lock(&q->lock);
	/* the result has all of it; a relay that takes none is not asked
	 * again, one that cannot be reached or is busy is */
	if (rc < 0 && e.code != ERR_NET && e.code != ERR_RATE)
		j->frames_off = true;
	else if (rc < 0)
		kept_lost(&j->std[s], output.len);
	pthread_mutex_unlock(&q->lock);
	queue_drop(j);
	pthread_mutex_lock(&q->lock);
}

static void *live_thread(void *arg)
{
	struct queue_room *q = arg;
	pthread_mutex_lock(&q->lock);
	while (!q->ending) {
		int64_t now = clock_mono_ms(), due = now + IDLE_MS;
		struct qjob *j = next_frame(q, &due);
		if (j && due <= now)
			send_frame(q, j);
		else
			wait_until(&q->print, &q->lock, due);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* --- life --- */

static int begin(pthread_t *thread, bool *has, void *(*run)(void *),
		 struct queue_room *q, struct err *e)
{
	if (pthread_create(thread, NULL, run, q))
		return err_sys(e, "cannot start a thread");
	*has = true;
	return 0;
}

int queue_net_start(struct queue_room *q, struct err *e)
{
	struct peer *p = q->m->peer;
	q->beat_wire = peer_wire(p, e);
	q->live_wire = q->beat_wire ? peer_wire(p, e) : NULL;
	q->listen_wire = q->live_wire ? peer_wire(p, e) : NULL;
	if (!q->listen_wire)
		return -1;
	wire_set_total(q->live_wire, FRAME_TOTAL_MS);
	return begin(&q->beater, &q->has_beater, beater_thread, q, e) < 0 ||
	       begin(&q->live, &q->has_live, live_thread, q, e) < 0 ||
	       begin(&q->listener, &q->has_listener, listener_thread, q,
		     e) < 0 ? -1 : 0;
}

/* The mount ends with somebody in it who took jobs.  The wires have been
 * aborted by now. */
static void say_away(struct queue_room *q)
{
	mount_lock(q->m);
	bool online = q->m->online && !q->m->closed;
	mount_unlock(q->m);
	struct err e;
	struct wire *w = q->heard && online ? peer_wire(q->m->peer, &e)
					    : NULL;
	q->heard = false;
	if (!w)
		return;
	wire_set_total(w, AWAY_TOTAL_MS);
	wire_runner_away(w, &e);
	wire_free(w);
}

/* The threads have been told. */
void queue_net_stop(struct queue_room *q)
{
	struct wire *wires[] = { q->beat_wire, q->live_wire, q->listen_wire };
	for (size_t i = 0; i < 3; i++)
		if (wires[i])
			wire_abort(wires[i]);
	if (q->has_beater)
		pthread_join(q->beater, NULL);
	if (q->has_live)
		pthread_join(q->live, NULL);
	if (q->has_listener)
		pthread_join(q->listener, NULL);
	q->has_beater = q->has_live = q->has_listener = false;
	say_away(q);
	for (size_t i = 0; i < 3; i++)
		wire_free(wires[i]);
	q->beat_wire = q->live_wire = q->listen_wire = NULL;
}
