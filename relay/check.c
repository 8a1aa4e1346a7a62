/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "relay/check.h"
#include "relay/task_commit.h"

#define COMINGS 16	/* participants that came and went, for each place */

static int say(struct intent *it, int status, const char *error,
	       const char *message)
{
	it->status = status;
	it->error = error;
	it->message = message;
	return -1;
}

int check_say(struct intent *it, int status, const char *error,
	      const char *message)
{
	return say(it, status, error, message);
}

int check_new_id(struct session *s, const char *id,
		 const struct participant *by, const uint8_t *sha256,
		 const uint8_t sig[FACT_SIG], const char **error,
		 const char **message)
{
	const struct item *old = state_item(s, id);
	if (!old)
		return 0;
	bool same = old->author == by;
	if (same && sha256)
		same = memcmp(old->sha256, sha256, HASH_SIZE) == 0;
	else if (same && memcmp(old->sig, sig, FACT_SIG) != 0)
		return 0;	/* only the hash can tell */
	*error = same ? "duplicate" : "conflict";
	*message = same ? "this item is here already" :
			  "another item has this id";
	return -1;
}

static int check_session(struct state *st, struct intent *it)
{
	const struct session *old = state_find_any(st, it->session->id);
	if (!old)
		return st->session_n < st->limits.sessions ? 0 :
		       say(it, 507, "disk_full",
			   "this relay takes no more sessions");
	if (old->closed)
		return say(it, 410, "gone", "this session was closed");
	if (strcmp(old->signed_manifest, it->session->signed_manifest) == 0)
		return say(it, 200, NULL, NULL);
	return say(it, 409, "conflict",
		   "this session exists with another manifest");
}

static int check_join(struct state *st, struct intent *it)
{
	struct session *s = it->session;
	if (s->revoked[it->role])
		return say(it, 403, "forbidden", "this role was revoked");
	/* Not even for the same join: whoever saw it in the events could ask
	 * for the token with it. */
	if (state_by_pub(s, it->key))
		return say(it, 409, "conflict", "this participant has joined; "
			   "its token is given out once");
	uint32_t here = 0;
	for (uint32_t i = 0; i < s->part_n; i++)
		here += !s->part[i]->gone;
	if (here >= st->limits.participants ||
	    s->part_n >= st->limits.participants * COMINGS)
		return say(it, 409, "conflict",
			   "this session takes no more participants");
	return 0;
}

static int check_post(struct state *st, struct intent *it)
{
	struct session *s = it->session;
	const char *error, *message;
	if (check_new_id(s, (const char *)it->key, it->by, it->sha256,
			 it->sig, &error, &message) < 0)
		return say(it, 409, error, message);
	if (s->item_n >= st->limits.items)
		return say(it, 507, "disk_full",
			   "this session takes no more items");
	if (s->blob_bytes + it->blob_n > (uint64_t)st->limits.session_bytes)
		return say(it, 507, "disk_full", "this session is full until "
			   "its recipients have taken what is there");
	return it->kind == ITEM_RESULT && it->by->runner ?
	       task_check_result(it) : 0;
}

/* An open want of the same participant is not repeated; lapsed ones go. */
static int check_want(struct state *st, struct intent *it, struct item *item)
{
	uint32_t keep = 0;
	bool open = false;
	for (uint32_t i = 0; i < item->want_n; i++) {
		struct want w = item->want[i];
		struct participant *by = it->session->part[w.by];
		if (it->fact.at_ms - w.at_ms > WANT_LAPSE_MS) {
			by->want_n -= by->want_n > 0;
			continue;
		}
		open |= by == it->by;
		item->want[keep++] = w;
	}
	item->want_n = keep;
	if (open)
		return say(it, 204, NULL, NULL);
	it->retry_s = WANT_LAPSE_MS / 1000;
	if (it->by->want_n >= st->limits.wants)
		return say(it, 429, "rate_limited", "too many open wants");
	return 0;
}

static int check_item(struct state *st, struct intent *it)
{
	struct session *s = it->session;
	struct item *item = state_item(s, (const char *)it->key);
	if (!item)
		return say(it, 404, "not_found", "no such item");
	switch ((int)it->fact.type) {
	case REC_ACK:
		return state_waits_for(item, it->by) ? 0 :
		       say(it, 204, NULL, NULL);
	case REC_EVICTED:
		return item->present && !item->waiting_n ? 0 :
		       say(it, 204, NULL, NULL);
	case REC_WANT:
		return item->present ? say(it, 409, "present",
					   "the blob is here") :
		       check_want(st, it, item);
	default:
		if (item->present)
			return say(it, 409, "present", "the blob is here");
		return s->blob_bytes + item->blob_n <=
		       (uint64_t)st->limits.session_bytes ? 0 :
		       say(it, 507, "disk_full", "this session is full until "
			   "its recipients have taken what is there");
	}
}

/* Those who are there now, a joiner of a moment ago among them. */
static int check_revoke(struct intent *it)
{
	struct session *s = it->session;
	bool first = true;
	if (s->revoked[it->role])
		return say(it, 204, NULL, NULL);
	buf_add_str(&it->body, "{\"participants\":[");
	for (uint32_t i = 0; i < s->part_n; i++) {
		const struct participant *p = s->part[i];
		if (p->gone || p->cert.role != it->role)
			continue;
		if (!first)
			buf_add_byte(&it->body, ',');
		first = false;
		json_put_b64(&it->body, p->cert.pub, PRIM_PUB);
	}
	buf_addf(&it->body, "],\"role\":\"%s\"}", role_word(it->role));
	return buf_failed(&it->body) ?
	       say(it, 503, "unavailable", "out of memory") : 0;
}

int check_intent(struct state *st, struct intent *it)
{
	if (it->fact.type == REC_SESSION)
		return check_session(st, it);
	if (it->session->closed)
		return say(it, 404, "not_found", "no such session");
	if (it->by && it->by->gone)
		return say(it, 401, "unauthorized",
			   "this participant is not in the session any more");
	switch (it->fact.type) {
	case REC_JOIN:
		return check_join(st, it);
	case REC_ITEM:
		return check_post(st, it);
	case REC_ACK:
	case REC_EVICTED:
	case REC_WANT:
	case REC_RESEEDED:
		return check_item(st, it);
	case REC_JOB:
	case REC_CANCEL:
	case REC_APPROVED:
	case REC_REJECTED:
		return task_check(st, it);
	case REC_REVOKED:
		return check_revoke(it);
	case REC_LEFT:
	case REC_CLOSED:
	case REC_SESSION:
	case REC_TYPES:
		break;
	}
	return 0;
}

/* A job needs to know which runner is idle by then, and a result makes one
 * so. */
static bool is_easy(const struct intent *it)
{
	if (it->fact.type == REC_ITEM)
		return it->kind != ITEM_JOB && it->kind != ITEM_RESULT;
	return it->fact.type == REC_ACK || it->fact.type == REC_JOIN;
}

/* Facts of one kind about different things are independent, and so are acks
 * of one item.  Everything else of one session waits its turn. */
bool check_conflict(const struct intent *a, const struct intent *b)
{
	if (strcmp(a->session->id, b->session->id) != 0)
		return false;
	enum rec_type ta = a->fact.type, tb = b->fact.type;
	if (!is_easy(a) || !is_easy(b))
		return true;
	return ta == tb && ta != REC_ACK &&
	       memcmp(a->key, b->key, sizeof a->key) == 0;
}
