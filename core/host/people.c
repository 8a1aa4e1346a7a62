/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "core/enc.h"
#include "core/host/people.h"

#define PEOPLE_MAX 100000

struct participant *people_find(const struct people *p,
				const uint8_t pub[PRIM_PUB])
{
	for (size_t i = 0; i < p->n; i++)
		if (!memcmp(p->v[i]->join.cert.pub, pub, PRIM_PUB))
			return p->v[i];
	return NULL;
}

/* What somebody is called by: the name they chose, and the one they are shown
 * under; a newcomer may be neither.  Runner names are names of another kind. */
enum { KEY_NAME, KEY_SHOWN, KEY_RUNNER, KEY_RUNNER_SHOWN };

static bool is_taken(const struct people *p, struct bytes key, int kind)
{
	for (size_t i = 0; i < p->n; i++)
		for (int k = kind; k < kind + 2; k++)
			if (bytes_eq(key, buf_bytes(&p->v[i]->key[k])))
				return true;
	return false;
}

/* "owner" is for the owner: a sender of that name is an impostor. */
static bool is_foreign_role(struct bytes key, enum role role)
{
	bool foreign = false;
	for (int i = 0; i < ROLES; i++) {
		cleanup_buf struct buf word = { 0 };
		clear_fold(&word, bytes_str(role_word((enum role)i)));
		foreign |= (enum role)i != role &&
			   bytes_eq(key, buf_bytes(&word));
	}
	return foreign;
}

/* The name itself, or with 8 digits of the fingerprint, or, should somebody
 * have searched for a key with those, with all 16. */
static char *shown_name(const struct people *p, const char *name,
			struct participant *q, int kind)
{
	static const int digits[] = { 0, 8, 16 };
	char *out = NULL;
	clear_fold(&q->key[kind], bytes_str(name));
	for (int i = 0; i < 3; i++) {
		struct buf *key = &q->key[kind + 1];
		free(out);
		if (asprintf(&out, "%s%s%.*s", name, i ? "+" : "", digits[i],
			     q->fingerprint) < 0)
			return NULL;
		buf_reset(key);
		clear_fold(key, bytes_str(out));
		if (i == 0 && is_foreign_role(buf_bytes(key),
					      q->join.cert.role))
			continue;
		if (!is_taken(p, buf_bytes(key), kind))
			break;
	}
	return out;
}

static void participant_free(struct participant *q)
{
	if (!q)
		return;
	join_free(&q->join);
	free(q->shown);
	free(q->shown_runner);
	buf_free(&q->raw);
	for (int i = 0; i < 4; i++)
		buf_free(&q->key[i]);
	free(q);
}

static bool make_room(struct people *p)
{
	if (p->n < p->cap)
		return true;
	size_t cap = p->cap ? 2 * p->cap : 16;
	void *v = p->n < PEOPLE_MAX ?
		realloc(p->v, cap * sizeof *p->v) : NULL;
	if (!v)
		return false;
	p->v = v;
	p->cap = cap;
	return true;
}

static bool set_names(const struct people *p, struct participant *q)
{
	q->shown = shown_name(p, q->join.display_name, q, KEY_NAME);
	if (q->join.has_runner)
		q->shown_runner = shown_name(p, q->join.runner.name, q,
					     KEY_RUNNER);
	return q->shown && (q->shown_runner || !q->join.has_runner);
}

struct participant *people_add(struct people *p, struct bytes signed_join,
			       uint64_t seq, const struct manifest *m,
			       struct err *e)
{
	struct participant *q = calloc(1, sizeof *q);
	if (!q || !make_room(p)) {
		free(q);
		err_set(e, ERR_MEMORY, "too many participants");
		return NULL;
	}
	if (join_parse(&q->join, signed_join, m, e) < 0) {
		free(q);
		return NULL;
	}
	struct participant *known = people_find(p, q->join.cert.pub);
	if (known) {
		participant_free(q);
		return known;
	}
	key_fingerprint(q->fingerprint, q->join.cert.pub);
	q->seq = seq;
	buf_add(&q->raw, signed_join.p, signed_join.n);
	if (buf_failed(&q->raw) || !set_names(p, q)) {
		participant_free(q);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	p->v[p->n++] = q;
	return q;
}

static bool has_key(const struct participant *q, struct bytes text)
{
	uint8_t pub[PRIM_PUB];
	return enc_b64_fixed(pub, sizeof pub, text) == 0 &&
	       !memcmp(pub, q->join.cert.pub, sizeof pub);
}

static bool is_shown_as(const struct participant *q, struct bytes name)
{
	return bytes_eq(name, bytes_str(q->shown)) ||
	       (q->shown_runner &&
		bytes_eq(name, bytes_str(q->shown_runner)));
}

struct participant *people_named(const struct people *p, struct bytes name,
				 struct err *e)
{
	struct participant *found = NULL;
	for (size_t i = 0; i < p->n; i++)
		if (has_key(p->v[i], name))
			return p->v[i];
	for (size_t i = 0; i < p->n; i++) {
		if (!is_shown_as(p->v[i], name))
			continue;
		if (found) {
			err_set(e, ERR_CONFLICT, "more than one participant "
				"has that name, give the key");
			return NULL;
		}
		found = p->v[i];
	}
	if (!found)
		err_set(e, ERR_NOT_FOUND, "no participant has that name");
	return found;
}

struct participant *people_runner(const struct people *p, struct bytes which,
				  struct err *e)
{
	struct participant *found = NULL;
	size_t alike = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct participant *q = p->v[i];
		if (!q->shown_runner || q->left)
			continue;
		if (has_key(q, which))
			return q;
		if (bytes_eq(which, bytes_str(q->shown_runner)))
			found = q;
		alike += bytes_eq(which, bytes_str(q->join.runner.name));
	}
	if (found && alike <= 1)
		return found;
	if (alike > 1)
		err_set(e, ERR_CONFLICT, "more than one runner chose that "
			"name, give the key");
	else
		err_set(e, ERR_NOT_FOUND, "no runner has that name");
	return NULL;
}

void people_free(struct people *p)
{
	for (size_t i = 0; i < p->n; i++)
		participant_free(p->v[i]);
	free(p->v);
	*p = (struct people){ 0 };
}
