/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/enc.h"
#include "core/host/ids.h"
#include "core/host/trail.h"
#include "core/json.h"

#define PEOPLE_MAX 65536u

struct person {
	struct cert cert;
	bool gone;		/* left, rejected, or its role revoked */
};

struct trail {
	struct trail_sum sum;
	char *want_id;
	struct buf want_manifest;
	bool begun, closed;
	struct manifest m;
	struct person *people;
	size_t people_n, people_cap;
	struct ids *items;
};

/* A line taken apart, and what its fields name. */
struct line {
	const struct json *doc;
	int64_t seq;		/* -1: no event */
};

struct trail *trail_new(const char *session_id, struct bytes manifest,
			struct err *e)
{
	struct trail *t = calloc(1, sizeof *t);
	if (t && (t->items = ids_new())) {
		t->want_id = session_id ? strdup(session_id) : NULL;
		buf_add(&t->want_manifest, manifest.p, manifest.n);
		if ((t->want_id || !session_id) &&
		    !buf_failed(&t->want_manifest))
			return t;
	}
	trail_free(t);
	err_set(e, ERR_MEMORY, "out of memory");
	return NULL;
}

void trail_free(struct trail *t)
{
	if (!t)
		return;
	if (t->begun)
		manifest_free(&t->m);
	free(t->want_id);
	buf_free(&t->want_manifest);
	free(t->people);
	ids_free(t->items);
	free(t);
}

const struct trail_sum *trail_sum(const struct trail *t) { return &t->sum; }

/* ---- who and what was there before ---- */

static struct person *find(struct trail *t, const uint8_t pub[PRIM_PUB])
{
	for (size_t i = 0; i < t->people_n; i++)
		if (memcmp(t->people[i].cert.pub, pub, PRIM_PUB) == 0)
			return &t->people[i];
	return NULL;
}

static int add(struct trail *t, const struct cert *cert, struct err *e)
{
	if (t->people_n == t->people_cap) {
		size_t cap = t->people_cap ? t->people_cap * 2 : 16;
		struct person *p = cap > PEOPLE_MAX ? NULL :
			realloc(t->people, cap * sizeof *p);
		if (!p)
			return err_set(e, ERR_MEMORY,
				       "too many participants");
		t->people = p;
		t->people_cap = cap;
	}
	t->people[t->people_n++] = (struct person){ .cert = *cert };
	return 0;
}

static const struct json *member(const struct json *doc, const char *key)
{
	for (const struct json *c = doc->child; c; c = c->next)
		if (bytes_eq(c->key, bytes_str(key)))
			return c;
	return NULL;
}

/* A participant named by its key in the field, if there is one. */
static int known_person(struct trail *t, const struct json *v,
			struct person **out, struct err *e)
{
	uint8_t pub[PRIM_PUB];
	*out = NULL;
	if (!v)
		return 0;
	if (v->type != JSON_STRING ||
	    enc_b64_fixed(pub, sizeof pub, v->str) < 0)
		return err_set(e, ERR_INVALID, "a key is malformed");
	*out = find(t, pub);
	return *out ? 0 : err_set(e, ERR_INVALID, "about a participant whose "
				  "join is not in the trail before it");
}

static int known_item(struct trail *t, const struct json *v, struct err *e)
{
	char id[ITEM_ID + 1];
	if (!v)
		return 0;
	if (v->type != JSON_STRING || !item_is_id(v->str))
		return err_set(e, ERR_INVALID, "an item id is malformed");
	memcpy(id, v->str.p, ITEM_ID);
	id[ITEM_ID] = 0;
	return ids_has(t->items, id) ? 0 :
	       err_set(e, ERR_INVALID, "about an item that is not in the "
		       "trail before it");
}

/* ---- lines with signatures ---- */

static int is_ours(struct trail *t, struct bytes signed_manifest,
		   struct err *e)
{
	if (t->want_id && strcmp(t->want_id, t->m.session_id) != 0)
		return err_set(e, ERR_INVALID, "this is the trail of %s, not "
			       "of %s", t->m.session_id, t->want_id);
	if (t->want_manifest.len &&
	    !bytes_eq(buf_bytes(&t->want_manifest), signed_manifest))
		return err_set(e, ERR_INVALID, "its manifest is not the one "
			       "that was given");
	return 0;
}

static int line_created(struct trail *t, const struct line *l, struct err *e)
{
	struct json_reader r;
	json_open(&r, l->doc, "line");
	json_take_int(&r, "at_ms", 0, JSON_INT_MAX);
	json_take_string(&r, "event");
	struct bytes id = json_take_string(&r, "session_id");
	struct bytes text = json_take_string(&r, "signed_manifest");
	if (json_close(&r, e) < 0 || manifest_parse(&t->m, text, e) < 0)
		return -1;
	t->begun = true;
	memcpy(t->sum.session_id, t->m.session_id, sizeof t->m.session_id);
	if (!bytes_eq(id, bytes_str(t->m.session_id)))
		return err_set(e, ERR_INVALID, "session_id is not the "
			       "manifest's");
	return is_ours(t, text, e);
}

static bool says_the_same(const struct join *j, struct bytes name,
			  struct bytes kind, const uint8_t pub[PRIM_PUB],
			  struct bytes role)
{
	return bytes_eq(name, bytes_str(j->display_name)) &&
	       bytes_eq(kind, bytes_str(client_kind_word(j->kind))) &&
	       memcmp(pub, j->cert.pub, PRIM_PUB) == 0 &&
	       bytes_eq(role, bytes_str(role_word(j->cert.role)));
}

static int line_joined(struct trail *t, const struct line *l, struct err *e)
{
	struct json_reader r;
	struct join j;
	uint8_t pub[PRIM_PUB];
	json_open(&r, l->doc, "line");
	json_take_int(&r, "at_ms", 0, JSON_INT_MAX);
	struct bytes name = json_take_string(&r, "display_name");
	json_take_string(&r, "event");
	struct bytes kind = json_take_string(&r, "kind");
	json_take_fixed(&r, "participant_pub", pub, sizeof pub);
	struct bytes role = json_take_string(&r, "role");
	json_take_int(&r, "seq", 0, JSON_INT_MAX);
	struct bytes text = json_take_string(&r, "signed_join");
	if (json_close(&r, e) < 0 || join_parse(&j, text, &t->m, e) < 0)
		return -1;
	int rc = 0;
	if (!says_the_same(&j, name, kind, pub, role))
		rc = err_set(e, ERR_INVALID, "the line says another thing "
			     "than the join that it holds");
	else if (find(t, j.cert.pub))
		rc = err_set(e, ERR_INVALID, "this participant has joined "
			     "before");
	else
		rc = add(t, &j.cert, e);
	t->sum.joins[j.cert.role] += rc == 0;
	join_free(&j);
	return rc;
}

static int check_item(struct trail *t, const struct envelope *v,
		      const uint8_t sha256[HASH_SIZE], struct err *e)
{
	const struct item_header *h = &v->header;
	const struct person *by = find(t, h->author);
	if (!by)
		return err_set(e, ERR_INVALID, "its author's join is not in "
			       "the trail before it");
	if (item_check_header(h, &by->cert, &t->m, e) < 0 ||
	    envelope_verify(v, sha256, e) < 0)
		return -1;
	if (by->gone)
		return err_set(e, ERR_INVALID, "its author was not in the "
			       "session any more");
	return ids_add(t->items, h->id) ? 0 :
	       err_set(e, ERR_INVALID, "an item of this id was there before");
}

static int line_posted(struct trail *t, const struct line *l, struct err *e)
{
	struct json_reader r;
	struct envelope v;
	uint8_t sha256[HASH_SIZE];
	json_open(&r, l->doc, "line");
	json_take_int(&r, "at_ms", 0, JSON_INT_MAX);
	json_take_fixed(&r, "blob_sha256", sha256, sizeof sha256);
	struct bytes text = json_take_string(&r, "envelope");
	json_take_string(&r, "event");
	json_take_int(&r, "seq", 0, JSON_INT_MAX);
	if (json_close(&r, e) < 0 || envelope_parse(&v, text, e) < 0)
		return -1;
	int rc = check_item(t, &v, sha256, e);
	if (rc == 0) {
		t->sum.items++;
		t->sum.bytes += v.header.size;
	}
	envelope_free(&v);
	return rc;
}

/* ---- the relay's word ---- */

static int line_left(struct trail *t, const struct line *l, struct err *e)
{
	struct person *p;
	const struct json *v = member(l->doc, "participant_pub");
	if (known_person(t, v, &p, e) < 0)
		return -1;
	if (!p || p->gone)
		return err_set(e, ERR_INVALID, "nobody who could leave");
	p->gone = true;
	return 0;
}

/* It names everybody of the role who was there, and nobody else. */
static int line_revoked(struct trail *t, const struct line *l, struct err *e)
{
	const struct json *v = member(l->doc, "role");
	const struct json *list = member(l->doc, "participants");
	enum role role;
	size_t here = 0;
	if (!v || v->type != JSON_STRING || role_parse(&role, v->str) < 0 ||
	    !list || list->type != JSON_ARRAY)
		return err_set(e, ERR_INVALID, "malformed");
	for (size_t i = 0; i < t->people_n; i++)
		here += t->people[i].cert.role == role && !t->people[i].gone;
	for (const struct json *c = list->child; c; c = c->next) {
		struct person *p;
		if (known_person(t, c, &p, e) < 0)
			return -1;
		if (p->gone || p->cert.role != role)
			return err_set(e, ERR_INVALID, "it names somebody who "
				       "was not there in this role");
		p->gone = true;
		here--;
	}
	return here ? err_set(e, ERR_INVALID, "it does not name everybody who "
			      "was there in this role") : 0;
}

static int line_closed(struct trail *t, const struct line *l, struct err *e)
{
	(void)l;
	(void)e;
	t->closed = true;
	return 0;
}

static int line_about(struct trail *t, const struct line *l, struct err *e)
{
	static const char *const item[] = { "item", "job" };
	static const char *const who[] = { "by", "participant_pub", "runner" };
	struct person *p;
	for (size_t i = 0; i < sizeof item / sizeof *item; i++)
		if (known_item(t, member(l->doc, item[i]), e) < 0)
			return -1;
	for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
		const struct json *v = member(l->doc, who[i]);
		if (v && !json_is_null(v) && known_person(t, v, &p, e) < 0)
			return -1;
	}
	return 0;
}

static const struct kind {
	const char *word;
	int (*check)(struct trail *t, const struct line *l, struct err *e);
	bool is_signed, has_seq;
} kinds[] = {
	{ "created", line_created, true, false },
	{ "joined", line_joined, true, true },
	{ "posted", line_posted, true, true },
	{ "acked", line_about, false, false },
	{ "evicted", line_about, false, true },
	{ "wanted", line_about, false, true },
	{ "reseeded", line_about, false, true },
	{ "approved", line_about, false, false },
	{ "rejected", line_left, false, true },
	{ "job", line_about, false, true },
	{ "cancelled", line_about, false, false },
	{ "left", line_left, false, true },
	{ "revoked", line_revoked, false, true },
	{ "closed", line_closed, false, true },
	{ 0 }
};

static const struct kind *kind_of(const struct json *doc, struct err *e)
{
	const struct json *v = doc->type == JSON_OBJECT ?
			       member(doc, "event") : NULL;
	for (const struct kind *k = kinds; v && k->word; k++)
		if (v->type == JSON_STRING &&
		    bytes_eq(v->str, bytes_str(k->word)))
			return k;
	err_set(e, ERR_INVALID, "no event that this program knows");
	return NULL;
}

/* After a fault the next number is looked for behind this one, so that one
 * missing line is one fault. */
static int check_seq(struct trail *t, const struct kind *k,
		     const struct line *l, struct err *e)
{
	uint64_t want = t->sum.events;
	if (l->seq < 0)
		return k->has_seq ?
		       err_set(e, ERR_INVALID, "an event without its number") :
		       0;
	t->sum.events = (uint64_t)l->seq + 1;
	if ((uint64_t)l->seq == want)
		return 0;
	return err_set(e, ERR_INVALID, "event %lld where %llu should be: a "
		       "line is missing, or not in its place",
		       (long long)l->seq, (unsigned long long)want);
}

static int read_line(struct line *l, struct err *e)
{
	const struct json *at = member(l->doc, "at_ms");
	const struct json *seq = member(l->doc, "seq");
	if (!at || at->type != JSON_INT || at->num < 0 ||
	    (seq && (seq->type != JSON_INT || seq->num < 0)))
		return err_set(e, ERR_INVALID, "malformed");
	l->seq = seq ? seq->num : -1;
	return 0;
}

static int check_line(struct trail *t, const struct kind *k, struct line *l,
		      struct err *e)
{
	bool first = t->sum.lines == 1;
	struct err gap;
	if (first != (k->check == line_created))
		return err_set(e, ERR_INVALID, first ?
			       "the trail does not begin with its session" :
			       "the session begins a second time");
	if (!first && !t->begun)
		return err_set(e, ERR_INVALID, "no manifest to check it by");
	if (t->closed)
		return err_set(e, ERR_INVALID, "after the session's end");
	if (read_line(l, e) < 0)
		return -1;
	int there = check_seq(t, k, l, &gap);
	int rc = k->check(t, l, e);
	if (there == 0)
		return rc;
	*e = gap;
	return -1;
}

int trail_line(struct trail *t, struct bytes text, struct err *e)
{
	t->sum.lines++;
	struct json *doc = text.n <= TRAIL_LINE_MAX ? json_parse(text, e) :
						      NULL;
	if (text.n > TRAIL_LINE_MAX)
		err_set(e, ERR_SIZE, "longer than a line can be");
	const struct kind *k = doc ? kind_of(doc, e) : NULL;
	struct line l = { .doc = doc };
	int rc = k ? check_line(t, k, &l, e) : -1;
	json_free(doc);
	t->sum.faults += rc < 0;
	t->sum.words += rc == 0 && !k->is_signed;
	return rc;
}
