/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/load.h"
#include "relay/tell.h"

/* A record that is no fact any more, or about a session that is not there:
 * allowed where the session's end comes later in the log. */
struct orphan {
	uint32_t tag;
	bool intact;		/* the purge did not get to it */
	struct rec_loc loc;
};

struct loading {
	struct state *st;
	struct orphan *orphan;
	size_t n, cap;
};

static int add_orphan(struct loading *ld, const struct store_rec *r,
		      bool intact, struct err *e)
{
	if (ld->n == ld->cap) {
		size_t cap = ld->cap ? ld->cap * 2 : 64;
		struct orphan *p = realloc(ld->orphan, cap * sizeof *p);
		if (!p)
			return err_set(e, ERR_MEMORY, "out of memory");
		ld->orphan = p;
		ld->cap = cap;
	}
	ld->orphan[ld->n++] = (struct orphan){ r->tag, intact, r->loc };
	return 0;
}

/* The end of a session: its orphans were purged, or are now. */
static void settle_orphans(struct loading *ld, uint32_t tag)
{
	size_t keep = 0;
	for (size_t i = 0; i < ld->n; i++) {
		struct orphan *o = &ld->orphan[i];
		if (o->tag != tag)
			ld->orphan[keep++] = *o;
		else if (o->intact)
			store_drop(ld->st->store, &o->loc);
	}
	ld->n = keep;
}

/* In the last batch the blob, too, may be only half there. */
static bool blob_is_whole(const struct store_rec *r, const struct fact *f)
{
	struct fact_reader rd = { .left = f->extra };
	uint8_t skip[ITEM_ID + PRIM_PUB + 1], want[HASH_SIZE], got[HASH_SIZE];
	if (f->type != REC_ITEM || r->blob.n == 0)
		return true;
	fact_take(&rd, skip, sizeof skip);
	fact_take(&rd, want, sizeof want);
	hash_sha256(got, r->blob.p, r->blob.n);
	return memcmp(want, got, HASH_SIZE) == 0;
}

static int end_unknown(struct loading *ld, const struct fact *f)
{
	struct fact_reader rd = { .left = f->extra };
	return state_add_closed(ld->st, f->session_id,
				  (int64_t)fact_take_u64(&rd));
}

static int take(void *arg, const struct store_rec *r, bool intact, bool tail,
		struct err *e)
{
	struct loading *ld = arg;
	struct fact f;
	if (!intact)
		return add_orphan(ld, r, false, e);
	if (fact_parse(&f, r->body, e) < 0)
		return -1;
	if (tail && !blob_is_whole(r, &f))
		return 1;
	struct session *s = state_find_any(ld->st, f.session_id);
	int rc = 0;
	if (f.type == REC_SESSION) {
		s = state_new(f.extra, e);
		if (!s)
			return -1;
		rc = state_apply(ld->st, s, &f, &r->loc, -1, e);
		state_unref(s);
	} else if (s && !s->closed) {
		rc = state_apply(ld->st, s, &f, &r->loc, -1, e);
	} else if (f.type == REC_CLOSED) {
		rc = s ? 0 : end_unknown(ld, &f);
	} else {
		rc = add_orphan(ld, r, true, e);
	}
	if (rc == 0 && f.type == REC_CLOSED)
		settle_orphans(ld, r->tag);
	return rc;
}

/* The names of all blobs that are files, sorted. */
struct names {
	uint64_t *v;
	size_t n, cap;
};

static int add_name(struct names *ns, uint64_t name)
{
	if (ns->n == ns->cap) {
		size_t cap = ns->cap ? ns->cap * 2 : 256;
		uint64_t *p = realloc(ns->v, cap * sizeof *p);
		if (!p)
			return -1;
		ns->v = p;
		ns->cap = cap;
	}
	ns->v[ns->n++] = name;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int collect_names(const struct state *st, struct names *ns)
{
	for (size_t b = 0; b < st->bucket_n; b++)
		for (struct session *s = st->bucket[b]; s; s = s->next)
			for (uint32_t i = 0; i < s->bucket_n; i++)
				for (struct item *it = s->item[i]; it;
				     it = it->next)
					if (it->file.name &&
					    add_name(ns, it->file.name) < 0)
						return -1;
	if (ns->n)
		qsort(ns->v, ns->n, sizeof *ns->v, compare);
	return 0;
}

/* A copy of a directory in use may lack files: their items count as evicted,
 * and whoever holds one can seed it again. */
static size_t give_up_missing(struct state *st)
{
	size_t n = 0;
	for (size_t b = 0; b < st->bucket_n; b++)
		for (struct session *s = st->bucket[b]; s; s = s->next)
			for (uint32_t i = 0; i < s->bucket_n; i++)
				for (struct item *it = s->item[i]; it;
				     it = it->next) {
					if (!it->present || !it->file.name ||
					    blob_exists(st->blobs, &it->file))
						continue;
					it->file = (struct blob){ 0, -1 };
					it->present = false;
					s->blob_bytes -= it->blob_n;
					n++;
				}
	return n;
}

static bool is_named(void *arg, uint64_t name)
{
	const struct names *ns = arg;
	return ns->n && bsearch(&name, ns->v, ns->n, sizeof name, compare);
}

static int sweep(struct state *st, struct err *e)
{
	struct names ns = { 0 };
	size_t swept;
	int rc = collect_names(st, &ns) < 0 ?
		 err_set(e, ERR_MEMORY, "out of memory") :
		 blobs_sweep(st->blobs, is_named, &ns, &swept, e);
	free(ns.v);
	if (rc == 0 && swept)
		tell(st->look ? "%zu blobs of uploads that a crash cut short: "
				"the next start removes them" :
				"removed %zu blobs of uploads that a crash "
				"cut short", swept);
	return rc;
}

int load_state(struct state *st, struct err *e)
{
	struct loading ld = { .st = st };
	const struct store_reader rd = { take, &ld };
	uint64_t dropped;
	int rc = store_load(st->store, &rd, &dropped, e);
	if (rc == 0 && ld.n)
		rc = err_set(e, ERR_SYS, "the log is damaged: %zu records of "
			     "open sessions cannot be read; restore it from "
			     "a copy, or start with another data directory",
			     ld.n);
	free(ld.orphan);
	if (rc < 0)
		return -1;
	if (dropped)
		tell(st->look ? "%llu bytes of a write that a crash cut short: "
				"the next start drops them; nothing of it was "
				"acknowledged" :
				"dropped %llu bytes of a write that a crash "
				"cut short; nothing of it was acknowledged",
		     (unsigned long long)dropped);
	if (sweep(st, e) < 0)
		return -1;
	size_t missing = st->look ? 0 : give_up_missing(st);
	if (missing)
		tell("%zu blobs are missing; those who hold them can seed "
		     "them again", missing);
	if (!st->look)
		tell("%zu sessions", st->session_n);
	return 0;
}
