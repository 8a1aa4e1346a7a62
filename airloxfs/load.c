/* SPDX-License-Identifier: MIT
 *
 * The index, read when the mount starts and written while it runs. */
#include <stdlib.h>
#include <string.h>

#include "airloxfs/in_private.h"
#include "airloxfs/text.h"

int in_append(struct in *in, struct index_record *r, uint64_t *at,
	      struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t where;
	pthread_mutex_lock(&in->lock);
	r->cursor = in->cursor;
	pthread_mutex_unlock(&in->lock);
	index_put(&b, r);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	return journal_append(in->journal, buf_bytes(&b), at ? at : &where, e);
}

int in_sync(struct in *in, struct err *e)
{
	return journal_sync(in->journal, e);
}

void in_set_cursor(struct in *in, int64_t cursor)
{
	pthread_mutex_lock(&in->lock);
	if (cursor > in->cursor && !in->stuck)
		in->cursor = cursor;
	pthread_mutex_unlock(&in->lock);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

bool in_settled(struct in *in, uint64_t seq)
{
	/* fixed once loaded: no lock */
	return in->settled_n && bsearch(&seq, in->settled, in->settled_n,
					sizeof seq, by_number) != NULL;
}

/* --- loading --- */

struct loading {
	struct mount *m;
	struct in *in;
};

static int settle(struct in *in, uint64_t seq, struct err *e)
{
	if (in->settled_n == in->settled_cap) {
		size_t cap = in->settled_cap ? in->settled_cap * 2 : 256;
		uint64_t *v = realloc(in->settled, cap * sizeof *v);
		if (!v)
			return err_set(e, ERR_MEMORY, "out of memory");
		in->settled = v;
		in->settled_cap = cap;
	}
	in->settled[in->settled_n++] = seq;
	return 0;
}

static void drop_missing(struct in *in, uint64_t seq)
{
	for (struct missing **at = &in->missing; *at; at = &(*at)->next)
		if ((*at)->seq == seq) {
			struct missing *gone = *at;
			*at = gone->next;
			buf_free(&gone->envelope);
			free(gone);
			return;
		}
}

static void load_participant(struct mount *m, const struct index_record *r)
{
	struct err e;
	struct participant *who = people_add(&m->peer->people, r->text,
					     r->seq, &m->peer->manifest, &e);
	if (who)
		text_participant(m, who, false);
}

static void load_left(struct mount *m, const struct index_record *r)
{
	struct participant *who = people_find(&m->peer->people, r->pub);
	if (who) {
		who->left = true;
		who->revoked = r->text.n > 0;
	}
}

static void note_signed(struct in *in, const char *id)
{
	struct in_signed *s = calloc(1, sizeof *s);
	if (!s)
		return;
	strcpy(s->id, id);
	if (!in->signed_last)
		in->signed_last = &in->signed_first;
	*in->signed_last = s;
	in->signed_last = &s->next;
}

static void load_item(struct loading *l, uint64_t at,
		      const struct index_record *r)
{
	struct envelope v;
	struct err e;
	if (envelope_parse(&v, r->text, &e) < 0)
		return;
	struct in_item *i = in_find(l->in, v.header.id);
	bool again = i && i->at;
	if (!i)
		i = in_add(l->in, v.header.id, r->seq);
	if (i) {
		i->at = at;
		i->verified = true;
		peer_seen(l->m->peer, i->id);
	}
	enum item_kind kind = v.header.kind;
	if (i && !again && kind != ITEM_TEXT && kind != ITEM_FILE) {
		note_signed(l->in, i->id);
	} else if (i && !again) {
		cleanup_buf struct buf name = { 0 };
		buf_add(&name, r->item.name.p, r->item.name.n);
		char *s = buf_cstr(&name);
		if (s)
			in_show(l->m, i, s, r->item.view_n,
				v.header.created_at_ms, false);
	}
	drop_missing(l->in, r->seq);
	envelope_free(&v);
}

static void load_id(struct loading *l, const struct index_record *r)
{
	char id[ITEM_ID + 1];
	if (!item_is_id(r->id))
		return;
	memcpy(id, r->id.p, ITEM_ID);
	id[ITEM_ID] = 0;
	struct in_item *i = in_find(l->in, id);
	if (r->kind == INDEX_HIDDEN && i && i->node) {
		tree_unlink(l->m->tree, i->node);
		i->node = NULL;
	} else if (r->kind != INDEX_HIDDEN && !i) {
		in_add(l->in, id, r->seq);
		peer_seen(l->m->peer, id);
	}
}

static void load_seen(struct loading *l, uint64_t at,
		      const struct index_record *r)
{
	char id[ITEM_ID + 1];
	if (!item_is_id(r->id))
		return;
	memcpy(id, r->id.p, ITEM_ID);
	id[ITEM_ID] = 0;
	struct in_item *i = in_find(l->in, id);
	if (!i && (i = in_add(l->in, id, r->seq)))
		i->at = at;
	peer_seen(l->m->peer, id);
}

static void load_pending(struct in *in, const struct index_record *r)
{
	drop_missing(in, r->seq);
	struct missing *p = calloc(1, sizeof *p);
	if (!p)
		return;
	p->seq = r->seq;
	buf_add(&p->envelope, r->text.p, r->text.n);
	p->next = in->missing;
	in->missing = p;
}

static void load_refusal(struct loading *l, const struct index_record *r)
{
	cleanup_buf struct buf who = { 0 };
	buf_add(&who, r->name.p, r->name.n);
	load_id(l, r);
	l->m->refused++;
	in_show_refusal(l->m, r->seq, buf_cstr(&who), r->text, false);
	drop_missing(l->in, r->seq);
}

static int load_record(void *arg, uint64_t at, struct bytes record,
		       struct err *e)
{
	struct loading *l = arg;
	struct index_record r;
	if (index_parse(&r, record, e) < 0) {
		mount_log(l->m, "a record of the index was left out: %s",
			  e->why);
		return 0;
	}
	if (r.cursor > l->in->cursor)
		l->in->cursor = r.cursor;
	switch (r.kind) {
	case INDEX_PARTICIPANT: load_participant(l->m, &r); break;
	case INDEX_LEFT: load_left(l->m, &r); break;
	case INDEX_ITEM: load_item(l, at, &r); break;
	case INDEX_REJECTED: load_refusal(l, &r); break;
	case INDEX_PENDING: load_pending(l->in, &r); break;
	case INDEX_HIDDEN: case INDEX_OWN: load_id(l, &r); break;
	case INDEX_SEEN: load_seen(l, at, &r); break;
	case INDEX_KINDS: break;
	}
	int rc = r.kind == INDEX_HIDDEN ? 0 : settle(l->in, r.seq, e);
	index_free(&r);
	return rc;
}

struct in *in_new(struct mount *m, int64_t *cursor, struct err *e)
{
	struct in *in = calloc(1, sizeof *in);
	uint64_t cut = 0;
	if (!in) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&in->lock, NULL);
	in->cursor = -1;
	m->in = in;
	struct loading l = { m, in };
	in->journal = store_journal(m->store, "index", load_record, &l, &cut,
				    e);
	if (!in->journal) {
		m->in = NULL;
		in_free(in);
		return NULL;
	}
	if (cut)
		mount_log(m, "the index had a damaged end of %llu bytes; "
			  "what it held is fetched and verified again",
			  (unsigned long long)cut);
	if (in->settled_n)
		qsort(in->settled, in->settled_n, sizeof *in->settled, by_number);
	*cursor = in->cursor;
	return in;
}

void in_free(struct in *in)
{
	if (!in)
		return;
	journal_close(in->journal);
	for (size_t s = 0; s < IN_SLOTS; s++)
		for (struct in_item *i = in->items[s], *next; i; i = next) {
			next = i->next;
			free(i);
		}
	while (in->missing)
		drop_missing(in, in->missing->seq);
	for (struct in_signed *g = in->signed_first, *next; g; g = next) {
		next = g->next;
		free(g);
	}
	free(in->settled);
	pthread_mutex_destroy(&in->lock);
	free(in);
}

void in_pending(struct mount *m,
		void (*each)(void *arg, uint64_t seq, struct bytes envelope),
		void *arg)
{
	for (const struct missing *p = m->in->missing; p; p = p->next)
		each(arg, p->seq, buf_bytes(&p->envelope));
}

static int by_seq(const void *a, const void *b)
{
	const struct in_item *const *x = a, *const *y = b;
	return (*x)->seq < (*y)->seq ? -1 : (*x)->seq > (*y)->seq;
}

static size_t find_unacked(const struct in *in, const struct in_item **v)
{
	size_t n = 0;
	for (size_t s = 0; s < IN_SLOTS; s++)
		for (struct in_item *i = in->items[s]; i; i = i->next) {
			if (!i->verified || (int64_t)i->seq <= in->cursor)
				continue;
			if (v)
				v[n] = i;
			n++;
		}
	return n;
}

void in_unacked(struct mount *m,
		void (*each)(void *arg, uint64_t seq, const char *id),
		void *arg)
{
	size_t n = find_unacked(m->in, NULL);
	const struct in_item **v = calloc(n + 1, sizeof *v);
	if (!v)
		return;
	find_unacked(m->in, v);
	qsort(v, n, sizeof *v, by_seq);
	for (size_t i = 0; i < n; i++)
		each(arg, v[i]->seq, v[i]->id);
	free(v);
}

/* --- notes --- */

void in_note(struct mount *m, struct index_record *r)
{
	struct err e;
	if (in_append(m->in, r, NULL, &e) == 0)
		return;
	pthread_mutex_lock(&m->in->lock);
	m->in->stuck = true;
	pthread_mutex_unlock(&m->in->lock);
	mount_failed(m, &e);
}

void in_note_participant(struct mount *m, uint64_t seq, struct bytes join)
{
	in_note(m, &(struct index_record){ .kind = INDEX_PARTICIPANT,
					.seq = seq, .text = join });
}

void in_note_left(struct mount *m, uint64_t seq,
		  const struct participant *who)
{
	struct index_record r = {
		.kind = INDEX_LEFT, .seq = seq,
		.text = bytes_str(who->revoked ? "revoked" : "") };
	memcpy(r.pub, who->join.cert.pub, PRIM_PUB);
	in_note(m, &r);
}

void in_note_own(struct mount *m, uint64_t seq, const char *id)
{
	pthread_mutex_lock(&m->in->lock);
	if (!in_find(m->in, id))
		in_add(m->in, id, seq);
	pthread_mutex_unlock(&m->in->lock);
	in_note(m, &(struct index_record){ .kind = INDEX_OWN, .seq = seq,
					.id = bytes_str(id) });
}

void in_note_seen(struct mount *m, uint64_t seq, const char *id,
		  struct bytes envelope)
{
	struct index_record r = { .kind = INDEX_SEEN, .seq = seq,
				  .id = bytes_str(id), .text = envelope };
	uint64_t at;
	struct err e;
	if (in_append(m->in, &r, &at, &e) < 0) {
		mount_failed(m, &e);
		return;
	}
	pthread_mutex_lock(&m->in->lock);
	struct in_item *i = in_find(m->in, id);
	if (!i)
		i = in_add(m->in, id, seq);
	if (i && !i->at)
		i->at = at;
	pthread_mutex_unlock(&m->in->lock);
}

void in_note_pending(struct mount *m, uint64_t seq, struct bytes envelope)
{
	in_note(m, &(struct index_record){ .kind = INDEX_PENDING, .seq = seq,
					.text = envelope });
}
