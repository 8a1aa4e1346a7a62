/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>

#include "relay/check.h"
#include "relay/live.h"
#include "relay/task_commit.h"
#include "relay/loop.h"
#include "relay/tell.h"
#include "relay/tidy.h"

#define BATCH_MAX 256
#define BATCH_BYTES (8u << 20)

struct commit {
	struct state *st;
	pthread_t thread;
	pthread_mutex_t lock;	/* the queue and stop */
	pthread_cond_t more;
	struct intent *first, **last;
	bool stop, probe;
};

/* What the thread works on; only its own. */
struct batch {
	struct intent *in[BATCH_MAX];	/* taken from the queue */
	size_t in_n, bytes;		/* about, of their records */
	struct intent *ok[2 * BATCH_MAX]; /* those that are written */
	struct store_rec rec[2 * BATCH_MAX];
	size_t ok_n;
};

struct intent *intent_new(struct session *s, enum rec_type type,
			  int64_t at_ms, struct bytes extra, struct bytes data)
{
	struct intent *it = calloc(1, sizeof *it);
	if (!it)
		return NULL;
	it->mail.kind = MAIL_DONE;
	it->session = state_ref(s);
	it->fact.type = type;
	it->fact.at_ms = at_ms;
	it->file.fd = -1;
	it->loop = -1;
	fact_begin(&it->body, type, s->id, at_ms, extra);
	buf_add(&it->body, data.p, data.n);
	if (buf_failed(&it->body)) {
		intent_free(it);
		return NULL;
	}
	return it;
}

struct intent *intent_closed(struct session *s, int64_t at_ms,
			     const char *data)
{
	cleanup_buf struct buf extra = { 0 };
	fact_add_u64(&extra, (uint64_t)s->m.expires_at_ms);
	return intent_new(s, REC_CLOSED, at_ms, buf_bytes(&extra),
			  bytes_str(data));
}

void intent_free(struct intent *it)
{
	if (!it)
		return;
	intent_free(it->then);
	state_unref(it->session);
	free(it->target);
	buf_free(&it->body);
	buf_free(&it->blob);
	prim_wipe(it->token, sizeof it->token);
	free(it);
}

void commit_queue(struct commit *c, struct intent *it)
{
	it->next = NULL;
	pthread_mutex_lock(&c->lock);
	bool empty = !c->first;
	*c->last = it;
	c->last = &it->next;
	if (empty)
		pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

static bool fits(const struct batch *b, const struct intent *it)
{
	for (size_t i = 0; i < b->in_n; i++)
		if (check_conflict(b->in[i], it))
			return false;
	return true;
}

/* The head of the queue, as far as one batch goes; none, to try to write.
 * false at the very end. */
static bool take_batch(struct commit *c, struct batch *b)
{
	b->in_n = b->ok_n = b->bytes = 0;
	pthread_mutex_lock(&c->lock);
	while (!c->first && !c->stop && !c->probe)
		pthread_cond_wait(&c->more, &c->lock);
	while (c->first && b->in_n < BATCH_MAX && b->bytes < BATCH_BYTES &&
	       fits(b, c->first)) {
		struct intent *it = c->first;
		c->first = it->next;
		b->bytes += it->body.len + it->blob.len + 64;
		b->in[b->in_n++] = it;
	}
	if (!c->first)
		c->last = &c->first;
	bool go_on = b->in_n || c->probe;
	c->probe = false;
	pthread_mutex_unlock(&c->lock);
	return go_on;
}

static bool is_event(enum rec_type type) { return fact_event(type) != NULL; }

static bool ends_someone(enum rec_type type)
{
	return type == REC_LEFT || type == REC_REJECTED ||
	       type == REC_REVOKED;
}

/* What makes the relay hold more, rather than less. */
static bool grows(enum rec_type type)
{
	return type == REC_SESSION || type == REC_JOIN || type == REC_ITEM ||
	       type == REC_WANT || type == REC_RESEEDED;
}

static void refuse(struct intent *it, const struct err *e)
{
	it->status = err_http(e->code);
	it->error = err_http_code(e->code);
	it->message = e->code == ERR_FULL ?
		      "the relay's disk is full; try again later" :
		      "the relay cannot store this now; try again later";
	if (it->fact.type == REC_CLOSED)
		it->session->closing = false;
}

static void add_record(struct batch *b, struct intent *it)
{
	if (is_event(it->fact.type)) {
		it->seq = it->session->assigned++;
		fact_set_seq(&it->body, it->seq);
	}
	b->rec[b->ok_n] = (struct store_rec){
		.type = it->fact.type,
		.tag = fact_tag(it->session->id),
		.body = buf_bytes(&it->body),
		.blob = buf_bytes(&it->blob) };
	b->ok[b->ok_n++] = it;
}

/* full: why nothing that grows can be taken, or NULL. */
static void check_batch(struct commit *c, struct batch *b,
			const struct err *full)
{
	const struct err no_memory = { .code = ERR_MEMORY };
	pthread_mutex_lock(&c->st->lock);
	for (size_t i = 0; i < b->in_n; i++) {
		struct intent *it = b->in[i];
		if (check_intent(c->st, it) < 0)
			continue;
		if (full && grows(it->fact.type)) {
			refuse(it, full);
			continue;
		}
		if (task_follow(c->st, it) < 0) {
			refuse(it, &no_memory);
			continue;
		}
		add_record(b, it);
		if (it->then)
			add_record(b, it->then);
	}
	pthread_mutex_unlock(&c->st->lock);
}

static void fail_batch(struct commit *c, struct batch *b, const struct err *e)
{
	tell("%s", e->why);
	c->st->failing = true;
	METRIC_ADD(c->st->metrics.write_failures, 1);
	pthread_mutex_lock(&c->st->lock);
	for (size_t i = 0; i < b->ok_n; i++) {
		struct intent *it = b->ok[i];
		it->session->assigned = it->session->event_n;
		refuse(it, e);
	}
	pthread_mutex_unlock(&c->st->lock);
}

static int status_of(enum rec_type type)
{
	return type == REC_SESSION || type == REC_JOIN || type == REC_ITEM ?
	       201 : 204;
}

static void count(struct state *st, const struct intent *it)
{
	struct metrics *m = &st->metrics;
	if (it->fact.type == REC_JOIN)
		METRIC_ADD(m->joins, 1);
	else if (it->fact.type == REC_EVICTED)
		METRIC_ADD(m->evictions, 1);
	else if (it->fact.type == REC_ITEM)
		METRIC_ADD(m->items, 1);
	if (it->fact.type == REC_ITEM || it->fact.type == REC_RESEEDED)
		METRIC_ADD(m->bytes_in, it->blob_n);
	if (it->fact.type == REC_JOB && it->job_state >= TASK_DONE)
		METRIC_ADD(m->jobs_ended[it->job_state == TASK_FAILED], 1);
}

/* The facts are durable: nothing may fail from here on.  If memory ends all
 * the same, the process stops, and a new one reads them from the log. */
static void apply_batch(struct commit *c, struct batch *b)
{
	pthread_mutex_lock(&c->st->lock);
	for (size_t i = 0; i < b->ok_n; i++) {
		struct intent *it = b->ok[i];
		struct err e;
		it->status = it->answer ? it->answer :
					  status_of(it->fact.type);
		if (fact_parse(&it->fact, buf_bytes(&it->body), &e) < 0 ||
		    state_apply(c->st, it->session, &it->fact,
				  &b->rec[i].loc, it->file.fd, &e) < 0) {
			tell("stopping: %s", e.why);
			raise(SIGTERM);
		}
		it->file.name = 0;
		count(c->st, it);
		commit_due(c, it->session, it->fact.at_ms);
		if (ends_someone(it->fact.type))
			task_sweep(c->st, c, it->session, loop_mono_ms());
	}
	pthread_mutex_unlock(&c->st->lock);
}

void commit_due(struct commit *c, struct session *s, int64_t at_ms)
{
	for (struct item *item; (item = state_take_due(s));) {
		cleanup_buf struct buf data = { 0 };
		buf_addf(&data, "{\"item\":\"%s\"}", item->id);
		struct intent *it = intent_new(
			s, REC_EVICTED, at_ms,
			(struct bytes){ (uint8_t *)item->id, ITEM_ID },
			buf_bytes(&data));
		if (!it)
			return;		/* it stays, until expiry */
		memcpy(it->key, item->id, ITEM_ID);
		commit_queue(c, it);
	}
}

void commit_tick(struct commit *c)
{
	struct state *st = c->st;
	int64_t now_ms = loop_mono_ms();
	pthread_mutex_lock(&st->lock);
	for (size_t i = 0; i < st->bucket_n; i++)
		for (struct session *s = st->bucket[i]; s; s = s->next) {
			task_sweep(st, c, s, now_ms);
			live_expire(&s->hub, now_ms);
			state_unhold(s);
			commit_due(c, s, loop_wall_ms());
		}
	pthread_mutex_unlock(&st->lock);
}

static void answer_batch(struct commit *c, struct batch *b)
{
	for (size_t i = 0; i < b->in_n; i++) {
		struct intent *it = b->in[i];
		/* a blob that did not become a fact */
		if (it->file.name)
			blob_remove(c->st->blobs, &it->file);
		if (it->loop >= 0)
			loop_post(it->loop, &it->mail);
		else
			intent_free(it);
	}
}

static void succeed(struct commit *c, struct batch *b)
{
	c->st->failing = false;
	METRIC_ADD(c->st->metrics.batches, 1);
	apply_batch(c, b);
}

/* What is done when asked to, between batches. */
static void look_after(struct commit *c)
{
	struct err e;
	if (tidy_log(c->st, &e) < 0)
		tell("%s", e.why);
	if (!c->st->failing || store_probe(c->st->store) < 0)
		return;
	c->st->failing = false;
	tell("writing works again");
}

void commit_probe(struct commit *c)
{
	pthread_mutex_lock(&c->lock);
	c->probe = true;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

static void *run(void *arg)
{
	struct commit *c = arg;
	static struct batch b;
	while (take_batch(c, &b)) {
		struct err e;
		if (!b.in_n) {
			look_after(c);
			continue;
		}
		bool full = (c->st->low && !state_can_write(c->st, &e)) ||
			    store_room(c->st->store, b.bytes, &e) < 0;
		check_batch(c, &b, full ? &e : NULL);
		if (b.ok_n && store_append(c->st->store, b.rec, b.ok_n,
					   &e) < 0)
			fail_batch(c, &b, &e);
		else if (b.ok_n)
			succeed(c, &b);
		answer_batch(c, &b);
	}
	return NULL;
}

struct commit *commit_start(struct state *st, struct err *e)
{
	struct commit *c = calloc(1, sizeof *c);
	if (!c) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	c->st = st;
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	if (pthread_create(&c->thread, NULL, run, c) != 0) {
		err_set(e, ERR_MEMORY, "cannot start a thread");
		free(c);
		return NULL;
	}
	return c;
}

void commit_stop(struct commit *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->more);
	free(c);
}
