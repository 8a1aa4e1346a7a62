/* SPDX-License-Identifier: MIT
 *
 * What the relay tells, held against what is signed.  cJSON only takes the
 * relay's own object apart; the strings in it that are signed go to the
 * strict readers as they are. */
#include <string.h>

#include <cjson/cJSON.h>

#include "core/enc.h"
#include "core/host/ids.h"
#include "core/host/peer.h"

#define SEQ_JUMP_MAX 10000
#define REASON_MAX 4096

struct telling {
	struct peer *p;
	const cJSON *data;
	struct news *n;
};

static const char *text_of(const struct telling *t, const char *name)
{
	return cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(t->data, name));
}

static bool take_id(struct telling *t, const char *name)
{
	const char *id = text_of(t, name);
	if (!id || !item_is_id(bytes_str(id)))
		return false;
	strcpy(t->n->id, id);
	return true;
}

static bool take_pub(struct telling *t, const char *name)
{
	const char *pub = text_of(t, name);
	t->n->has_pub = pub && enc_b64_fixed(t->n->pub, PRIM_PUB,
					     bytes_str(pub)) == 0;
	return t->n->has_pub;
}

static int take_reason(struct telling *t, const char *name, struct err *e)
{
	const char *s = text_of(t, name);
	t->n->reason = s ? strndup(s, REASON_MAX) : NULL;
	if (s && !t->n->reason)
		return err_set(e, ERR_MEMORY, "out of memory");
	return 0;
}

static int reject(struct news *n, const struct err *why, struct err *e)
{
	n->kind = NEWS_REJECTED;
	n->why = *why;
	if (why->code != ERR_MEMORY)
		return 0;
	if (e)
		*e = *why;
	return -1;
}

/* --- participants --- */

static int hear_participant(struct telling *t, struct err *e)
{
	struct err why = { 0 };
	const char *text = text_of(t, "signed_join");
	if (!text)
		err_set(&why, ERR_INVALID, "a participant without its join");
	else
		t->n->who = people_add(&t->p->people, bytes_str(text),
				       t->n->seq, &t->p->manifest, &why);
	if (!t->n->who)
		return reject(t->n, &why, e);
	t->n->kind = NEWS_PARTICIPANT;
	return 0;
}

static int hear_left(struct telling *t)
{
	if (take_pub(t, "participant_pub"))
		t->n->who = people_find(&t->p->people, t->n->pub);
	/* once: a relay can say it for ever */
	if (t->n->who && !t->n->who->left) {
		t->n->who->left = true;
		t->n->kind = NEWS_LEFT;
	}
	return 0;
}

static void cut_off(struct peer *p, const char *pub_text, enum role role)
{
	uint8_t pub[PRIM_PUB];
	if (!pub_text || enc_b64_fixed(pub, sizeof pub,
				       bytes_str(pub_text)) < 0)
		return;
	struct participant *q = people_find(&p->people, pub);
	if (q)
		q->left = q->revoked = true;
	if (memcmp(pub, p->pub, PRIM_PUB) != 0)
		return;
	err_set(&p->why, ERR_AUTH, "the owner revoked the %s role",
		role_word(role));
	p->state = PEER_CLOSED;
}

static int hear_revoked(struct telling *t)
{
	const char *word = text_of(t, "role");
	const cJSON *pub;
	if (!word || role_parse(&t->n->role, bytes_str(word)) < 0)
		return 0;
	cJSON_ArrayForEach(pub, cJSON_GetObjectItemCaseSensitive(
				t->data, "participants"))
		cut_off(t->p, cJSON_GetStringValue(pub), t->n->role);
	t->n->kind = NEWS_REVOKED;
	return 0;
}

/* --- items --- */

static int check_author(struct telling *t, struct incoming *in,
			struct err *why)
{
	const struct item_header *h = &in->env.header;
	struct participant *q = people_find(&t->p->people, h->author);
	t->n->who = q;
	if (!q)
		return err_set(why, ERR_POLICY, "its author is no participant "
			       "that could be verified");
	in->author = q->join.cert;
	in->author_shown = strdup(q->shown);
	if (!in->author_shown)
		return err_set(why, ERR_MEMORY, "out of memory");
	in->mine = !memcmp(h->author, t->p->pub, PRIM_PUB);
	if (item_check_header(h, &in->author, &t->p->manifest, why) < 0)
		return -1;
	if (!ids_add(t->p->ids, h->id))
		return err_set(why, ERR_POLICY, "an item of this id was here "
			       "already");
	return 0;
}

static int read_item(struct telling *t, struct incoming *in, struct err *why)
{
	const char *text = text_of(t, "envelope");
	if (!text || strlen(text) > ENVELOPE_MAX)
		return err_set(why, ERR_INVALID, "an item without an envelope");
	buf_add_str(&in->raw, text);
	if (buf_failed(&in->raw))
		return err_set(why, ERR_MEMORY, "out of memory");
	if (envelope_parse(&in->env, buf_bytes(&in->raw), why) < 0)
		return -1;
	strcpy(t->n->id, in->env.header.id);
	strcpy(in->ref.id, in->env.header.id);
	return check_author(t, in, why);
}

static int hear_item(struct telling *t, struct err *e)
{
	struct err why = { 0 };
	struct incoming *in = calloc(1, sizeof *in);
	if (!in)
		return err_set(e, ERR_MEMORY, "out of memory");
	in->seq = t->n->seq;
	if (read_item(t, in, &why) < 0) {
		incoming_free(in);
		return reject(t->n, &why, e);
	}
	t->n->item = in;
	t->n->kind = NEWS_ITEM;
	return 0;
}

void incoming_free(struct incoming *in)
{
	if (!in)
		return;
	envelope_free(&in->env);
	buf_free(&in->raw);
	free(in->author_shown);
	free(in);
}

/* --- the rest --- */

static int hear_blob(struct telling *t, enum news_kind kind)
{
	if (!take_id(t, "item"))
		return 0;
	if (kind == NEWS_WANT && take_pub(t, "by"))
		t->n->who = people_find(&t->p->people, t->n->pub);
	t->n->kind = kind;
	return 0;
}

static int hear_job(struct telling *t, struct err *e)
{
	const char *state = text_of(t, "state");
	if (!take_id(t, "job") || !state || strlen(state) >= sizeof t->n->word)
		return 0;
	strcpy(t->n->word, state);
	take_pub(t, "runner");
	t->n->kind = NEWS_JOB;
	return take_reason(t, "reason", e);
}

static int hear_closed(struct telling *t, struct err *e)
{
	t->n->kind = NEWS_CLOSED;
	err_set(&t->p->why, ERR_GONE, "the session was closed");
	t->p->state = PEER_CLOSED;
	return take_reason(t, "reason", e);
}

static int hear(struct telling *t, const char *kind, struct err *e)
{
	if (!strcmp(kind, "participant"))
		return hear_participant(t, e);
	if (!strcmp(kind, "item"))
		return hear_item(t, e);
	if (!strcmp(kind, "evicted"))
		return hear_blob(t, NEWS_EVICTED);
	if (!strcmp(kind, "want"))
		return hear_blob(t, NEWS_WANT);
	if (!strcmp(kind, "reseeded"))
		return hear_blob(t, NEWS_RESEEDED);
	if (!strcmp(kind, "left"))
		return hear_left(t);
	if (!strcmp(kind, "revoked"))
		return hear_revoked(t);
	if (!strcmp(kind, "job"))
		return hear_job(t, e);
	if (!strcmp(kind, "closed"))
		return hear_closed(t, e);
	return 0;		/* a kind of a later version */
}

/* Forward only.  A wild jump would make every later event look old. */
static bool in_order(struct peer *p, const struct event *ev, struct news *n)
{
	int64_t seq = (int64_t)ev->seq;
	int64_t last = p->seq < 0 ? 0 : p->seq;
	if (seq <= p->seq) {
		n->kind = NEWS_BEHIND;
		err_set(&n->why, ERR_PROTO, "the relay's event numbers go "
			"back from %lld to %lld; ignored", (long long)p->seq,
			(long long)seq);
		return false;
	}
	if (seq > last + SEQ_JUMP_MAX) {
		n->kind = NEWS_BEHIND;
		err_set(&n->why, ERR_PROTO, "the relay's event numbers jump "
			"from %lld to %lld; ignored", (long long)p->seq,
			(long long)seq);
		return false;
	}
	n->gap = (uint64_t)(seq - p->seq - 1);
	p->seq = seq;
	return true;
}

int peer_apply(struct peer *p, const struct event *ev, struct news *n,
	       struct err *e)
{
	*n = (struct news){ .kind = NEWS_NOTHING, .seq = ev->seq };
	if (!ev->kind[0])
		return 0;
	if (p->state == PEER_OFFLINE)
		p->state = PEER_ONLINE;
	if (!ev->has_seq) {
		n->kind = NEWS_LIVE;
		return 0;
	}
	if (!in_order(p, ev, n))
		return 0;
	cJSON *data = cJSON_ParseWithLength((const char *)ev->data.p,
					    ev->data.n);
	struct telling t = { p, data, n };
	int r = cJSON_IsObject(data) ? hear(&t, ev->kind, e) : 0;
	cJSON_Delete(data);
	return r;
}

void news_free(struct news *n)
{
	incoming_free(n->item);
	free(n->reason);
	*n = (struct news){ 0 };
}
