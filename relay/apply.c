/* SPDX-License-Identifier: MIT
 *
 * apply: facts made true, one function a type.  Nothing is checked against
 * policy here: what is in the log was accepted. */
#include <string.h>

#include "relay/loop.h"
#include "relay/pool.h"
#include "relay/task.h"
#include "relay/waiting.h"

static int no_memory(struct err *e)
{
	return err_set(e, ERR_MEMORY, "out of memory");
}

/* Room for one more in an array that doubles. */
static int grow(void *array, uint32_t n, uint32_t *cap, size_t size)
{
	void **a = array;
	if (n < *cap)
		return 0;
	uint32_t to = *cap ? *cap * 2 : 8;
	void *p = realloc(*a, to * size);
	if (!p)
		return -1;
	*a = p;
	*cap = to;
	return 0;
}

static int remember(struct session *s, const struct fact *f,
		    const struct rec_loc *loc, struct err *e)
{
	if (f->seq != FACT_NO_SEQ && f->seq != s->event_n)
		return err_set(e, ERR_SYS, "the log skips an event");
	if (grow(&s->rec, s->rec_n, &s->rec_cap, sizeof *s->rec) < 0 ||
	    grow(&s->event, s->event_n, &s->event_cap, sizeof *s->event) < 0)
		return no_memory(e);
	if (f->seq != FACT_NO_SEQ) {
		s->event[s->event_n++] = s->rec_n;
		if (s->assigned < s->event_n)
			s->assigned = s->event_n;
	}
	s->rec[s->rec_n++] = *loc;
	return 0;
}

static int apply_session(struct state *st, struct session *s, struct err *e)
{
	struct session **slot = &st->bucket[fact_tag(s->id) % st->bucket_n];
	(void)e;
	s->next = *slot;
	*slot = state_ref(s);
	st->session_n++;
	return 0;
}

static int apply_join(struct session *s, struct fact_reader *r, struct err *e)
{
	struct participant *p = calloc(1, sizeof *p);
	if (!p || grow(&s->part, s->part_n, &s->part_cap,
		       sizeof *s->part) < 0) {
		free(p);
		return no_memory(e);
	}
	fact_take(r, p->cert.pub, PRIM_PUB);
	p->cert.role = (enum role)(fact_take_u8(r) % ROLES);
	p->approved = fact_take_u8(r);
	fact_take(r, p->token, HASH_SIZE);
	p->cert.issued_at_ms = (int64_t)fact_take_u64(r);
	p->end_seq = FACT_NO_SEQ;
	p->index = s->part_n;
	s->part[s->part_n++] = p;
	return p->cert.role == ROLE_RUNNER ? task_apply_join(s, p, r, e) : 0;
}

static int rehash(struct session *s)
{
	uint32_t n = s->bucket_n ? s->bucket_n * 2 : 16;
	struct item **b = calloc(n, sizeof *b);
	if (!b)
		return -1;
	for (uint32_t i = 0; i < s->bucket_n; i++)
		for (struct item *it = s->item[i], *next; it; it = next) {
			struct item **slot = &b[fact_tag(it->id) & (n - 1)];
			next = it->next;
			it->next = *slot;
			*slot = it;
		}
	free(s->item);
	s->item = b;
	s->bucket_n = n;
	return 0;
}

static int apply_item(struct session *s, const struct fact *f,
		      struct fact_reader *r, const struct rec_loc *loc,
		      int file, struct err *e)
{
	uint8_t author[PRIM_PUB];
	struct item *it = calloc(1, sizeof *it);
	if (!it || (s->item_n >= s->bucket_n && rehash(s) < 0) ||
	    waiting_reset(s, it) < 0) {
		free(it);
		return no_memory(e);
	}
	fact_take(r, it->id, ITEM_ID);
	fact_take(r, author, sizeof author);
	it->kind = (enum item_kind)fact_take_u8(r);
	fact_take(r, it->sha256, HASH_SIZE);
	fact_take(r, it->sig, FACT_SIG);
	it->blob_n = fact_take_u64(r);
	it->file = (struct blob){ fact_take_u64(r), file };
	it->author = state_by_pub(s, author);
	it->loc = *loc;
	it->seq = f->seq;
	it->present = true;
	it->hold_ms = loop_mono_ms() + TASK_HOLD_MS;
	struct item **slot = &s->item[fact_tag(it->id) & (s->bucket_n - 1)];
	it->next = *slot;
	*slot = it;
	s->item_n++;
	s->blob_bytes += it->blob_n;
	if (waiting_fill(s, it) < 0)
		return no_memory(e);
	return it->kind == ITEM_JOB || it->kind == ITEM_RESULT ?
	       task_apply_item(s, it, r, e) : 0;
}

static struct item *take_item(struct session *s, struct fact_reader *r)
{
	char id[ITEM_ID + 1] = "";
	fact_take(r, id, ITEM_ID);
	return state_item(s, id);
}

static struct participant *take_pub(struct session *s, struct fact_reader *r)
{
	uint8_t pub[PRIM_PUB];
	fact_take(r, pub, sizeof pub);
	return state_by_pub(s, pub);
}

struct removal {
	struct state *st;
	struct rec_loc loc;
	struct blob file;
};

static void remove_blob(void *arg)
{
	struct removal *r = arg;
	if (r->file.name)
		blob_remove(r->st->blobs, &r->file);
	else
		store_punch(r->st->store, &r->loc);
	free(r);
}

/* On the pool, or here while starting. */
static void run(struct state *st, void (*fn)(void *), void *arg)
{
	if (!st->pool || pool_run(st->pool, fn, arg) < 0)
		fn(arg);
}

void state_discard(struct state *st, struct blob *b)
{
	struct removal *r = malloc(sizeof *r);
	if (!r)
		return;		/* the next start sweeps it */
	*r = (struct removal){ .st = st, .file = *b };
	*b = (struct blob){ 0, -1 };
	run(st, remove_blob, r);
}

static int apply_evicted(struct state *st, struct session *s, struct item *it,
			 struct err *e)
{
	struct removal *r = malloc(sizeof *r);
	if (!r)
		return no_memory(e);
	*r = (struct removal){ st, it->loc, it->file };
	it->file = (struct blob){ 0, -1 };
	it->present = false;
	s->blob_bytes -= it->blob_n;
	run(st, remove_blob, r);
	return 0;
}

static int apply_want(struct item *it, struct participant *p, int64_t at_ms,
		      struct err *e)
{
	struct want *w = realloc(it->want, (it->want_n + 1) * sizeof *w);
	if (!w)
		return no_memory(e);
	it->want = w;
	w[it->want_n++] = (struct want){ p->index, at_ms };
	p->want_n++;
	return 0;
}

/* Its recipients now are those who asked. */
static int apply_reseeded(struct session *s, struct item *it,
			  struct fact_reader *r, const struct rec_loc *loc,
			  int file, struct err *e)
{
	uint8_t by[PRIM_PUB];
	fact_take(r, by, sizeof by);
	if (waiting_reset(s, it) < 0)
		return no_memory(e);
	for (uint32_t i = 0; i < it->want_n; i++) {
		struct participant *p = s->part[it->want[i].by];
		p->want_n -= p->want_n > 0;
		if (!p->gone && waiting_add(s, it, p) < 0)
			return no_memory(e);
	}
	it->want_n = 0;
	it->file = (struct blob){ fact_take_u64(r), file };
	it->loc = *loc;
	it->present = true;
	s->blob_bytes += it->blob_n;
	return 0;
}

/* Cut off: its token is dead, its streams end with event `seq`. */
static void end_participant(struct session *s, struct participant *p,
			    uint64_t seq)
{
	if (p->gone)
		return;
	p->gone = true;
	p->end_seq = seq;
	waiting_release_all(s, p);
}

struct purge {
	struct state *st;
	struct rec_loc *rec;
	uint32_t rec_n, file_n;
	struct blob file[];
};

static void purge_run(void *arg)
{
	struct purge *p = arg;
	for (uint32_t i = 0; i < p->file_n; i++)
		blob_remove(p->st->blobs, &p->file[i]);
	for (uint32_t i = 0; i < p->rec_n; i++)
		store_drop(p->st->store, &p->rec[i]);
	free(p->rec);
	free(p);
}

/* Everything of it goes but its id.  Who still holds the session reads from
 * what is in memory. */
static int apply_closed(struct state *st, struct session *s,
			struct fact_reader *r, struct err *e)
{
	struct purge *p = calloc(1, sizeof *p + s->item_n * sizeof *p->file);
	if (!p || state_add_closed(st, s->id,
				     (int64_t)fact_take_u64(r)) < 0) {
		free(p);
		return no_memory(e);
	}
	*p = (struct purge){ st, s->rec, s->rec_n, 0 };
	for (uint32_t i = 0; i < s->bucket_n; i++)
		for (struct item *it = s->item[i]; it; it = it->next)
			if (it->present && it->file.name) {
				p->file[p->file_n++] = it->file;
				it->file = (struct blob){ 0, -1 };
				it->present = false;
			}
	task_apply_closed(st, s);
	s->rec = NULL;
	s->rec_n = s->rec_cap = 0;
	s->closed = true;
	struct session **slot = &st->bucket[fact_tag(s->id) % st->bucket_n];
	while (*slot && *slot != s)
		slot = &(*slot)->next;
	if (*slot) {
		*slot = s->next;
		st->session_n--;
		state_unref(s);
	}
	run(st, purge_run, p);
	return 0;
}

static void apply_revoked(struct session *s, enum role role, uint64_t seq)
{
	s->revoked[role] = true;
	for (uint32_t i = 0; i < s->part_n; i++)
		if (s->part[i]->cert.role == role)
			end_participant(s, s->part[i], seq);
}

/* The facts about an item or a participant that must be known. */
static int apply_known(struct state *st, struct session *s,
		       const struct fact *f, struct fact_reader *r,
		       const struct rec_loc *loc, int file, struct err *e)
{
	bool ends = f->type == REC_LEFT || f->type == REC_REJECTED;
	struct item *it = ends ? NULL : take_item(s, r);
	struct participant *p = f->type == REC_EVICTED ||
				f->type == REC_RESEEDED ? NULL :
				take_pub(s, r);
	bool needs_p = ends || f->type == REC_ACK || f->type == REC_WANT;
	if ((!ends && !it) || (needs_p && !p))
		return err_set(e, ERR_SYS, "the log names what it never held");
	if (f->type == REC_ACK) {
		it->acked = true;
		waiting_release(s, it, p);
	} else if (f->type == REC_EVICTED) {
		return apply_evicted(st, s, it, e);
	} else if (f->type == REC_WANT) {
		return apply_want(it, p, f->at_ms, e);
	} else if (f->type == REC_RESEEDED) {
		return apply_reseeded(s, it, r, loc, file, e);
	} else {
		if (f->type == REC_REJECTED && p->runner)
			p->runner->rejected = true;
		end_participant(s, p, f->seq);
	}
	return 0;
}

static int apply_one(struct state *st, struct session *s, const struct fact *f,
		     struct fact_reader *r, const struct rec_loc *loc,
		     int file, struct err *e)
{
	switch (f->type) {
	case REC_SESSION:
		return apply_session(st, s, e);
	case REC_JOIN:
		return apply_join(s, r, e);
	case REC_ITEM:
		return apply_item(s, f, r, loc, file, e);
	case REC_REVOKED:
		apply_revoked(s, (enum role)(fact_take_u8(r) % ROLES), f->seq);
		return 0;
	case REC_CLOSED:
		return apply_closed(st, s, r, e);
	case REC_JOB:
		return task_apply_state(st, s, r, e);
	case REC_CANCEL:
		return task_apply_cancel(s, r, e);
	case REC_APPROVED:
		return task_apply_approved(s, r, e);
	case REC_REJECTED:
	case REC_ACK:
	case REC_EVICTED:
	case REC_WANT:
	case REC_RESEEDED:
	case REC_LEFT:
		return apply_known(st, s, f, r, loc, file, e);
	case REC_TYPES:
		break;
	}
	return err_set(e, ERR_SYS, "a record of the log is malformed");
}

int state_apply(struct state *st, struct session *s, const struct fact *f,
		  const struct rec_loc *loc, int file, struct err *e)
{
	struct fact_reader r = { .left = f->extra };
	if (f->type != REC_CLOSED && remember(s, f, loc, e) < 0)
		return -1;
	if (apply_one(st, s, f, &r, loc, file, e) < 0)
		return -1;
	if (r.bad)
		return err_set(e, ERR_SYS, "a record of the log is malformed");
	if (f->seq != FACT_NO_SEQ && st->pool) {
		hub_publish(&s->hub, f->seq, fact_event(f->type), f->data);
		hub_wake(&s->hub);
	}
	if (f->type == REC_CANCEL)
		hub_wake(&s->hub);	/* its runner's stream */
	return 0;
}
