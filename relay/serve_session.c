/* SPDX-License-Identifier: MIT
 *
 * serve_session: sessions, participants, and their end. */
#include <string.h>

#include "core/json.h"
#include "relay/auth.h"
#include "relay/reply.h"
#include "relay/route.h"

void serve_health(struct conn *c)
{
	struct err e;
	if (!state_can_write(c->loop->st, &e))
		reply_error(c, 503, err_http_code(e.code), e.why);
	else
		reply_json(c, 200, bytes_str("{\"status\":\"ok\"}"));
}

/* For the operator: not for whom a proxy brings from elsewhere. */
void serve_metrics(struct conn *c)
{
	struct state *st = c->loop->st;
	cleanup_buf struct buf b = { 0 };
	if (c->req->forwarded ||
	    !addr_set_has(&st->limits.metrics, &c->req->client)) {
		reply_error(c, 404, "not_found", "no such resource");
		return;
	}
	metrics_put(st, &b);
	reply_text(c, "text/plain; version=0.0.4", buf_bytes(&b));
}

void serve_limits(struct conn *c)
{
	cleanup_buf struct buf b = { 0 };
	limit_put(&c->loop->st->limits, &b);
	reply_json(c, 200, buf_bytes(&b));
}

static int check_limits(const struct limits *l, const struct manifest *m,
			int64_t now, struct err *e)
{
	if (m->expires_at_ms <= now)
		return err_set(e, ERR_TIME, "this session has expired");
	if (m->max_item_bytes > l->item_bytes)
		return err_set(e, ERR_SIZE, "this relay takes items of at "
			       "most %lld bytes", (long long)l->item_bytes);
	if (m->expires_at_ms == MANIFEST_FOREVER)
		return l->never ? 0 :
		       err_set(e, ERR_POLICY, "this relay takes no sessions "
			       "without an end");
	if (m->expires_at_ms - m->created_at_ms > l->ttl_ms)
		return err_set(e, ERR_POLICY, "this relay takes sessions of "
			       "at most %lld s", (long long)l->ttl_ms / 1000);
	return 0;
}

/* How long this address must wait to make one more session. */
static int64_t wait_maker(struct conn *c, const char *id, int64_t now)
{
	struct state *st = c->loop->st;
	pthread_mutex_lock(&st->lock);
	int64_t wait_ms = state_find_any(st, id) ? 0 :
		rate_table_take(st->makers, c->req->client,
				st->limits.sessions_hour, HOUR_MS, now);
	pthread_mutex_unlock(&st->lock);
	return wait_ms;
}

void serve_create(struct conn *c)
{
	struct err e;
	struct bytes body = buf_bytes(&c->req->body);
	int64_t now = loop_wall_ms();
	struct session *s = state_new(body, &e);
	int64_t wait_ms = s ? wait_maker(c, s->id, now) : 0;
	if (wait_ms) {
		state_unref(s);
		reply_later(c, wait_ms, "too many sessions from your address; "
			    "try again later");
		return;
	}
	if (!s || check_limits(&c->loop->st->limits, &s->m, now, &e) < 0) {
		state_unref(s);
		reply_err(c, &e);
		return;
	}
	cleanup_buf struct buf data = { 0 };
	buf_addf(&data, "{\"session_id\":\"%s\"}", s->id);
	route_commit(c, intent_new(s, REC_SESSION, now, body,
				   buf_bytes(&data)));
	state_unref(s);
}

void serve_manifest(struct conn *c)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "{\"signed_manifest\":");
	json_put_string(&b, bytes_str(c->req->session->signed_manifest));
	buf_add_byte(&b, '}');
	reply_json(c, 200, buf_bytes(&b));
}

static void put_participant(struct buf *b, const struct join *j,
			    struct bytes signed_join)
{
	buf_add_str(b, "{\"display_name\":");
	json_put_string(b, bytes_str(j->display_name));
	buf_addf(b, ",\"kind\":\"%s\",\"participant_pub\":",
		 client_kind_word(j->kind));
	json_put_b64(b, j->cert.pub, PRIM_PUB);
	buf_addf(b, ",\"role\":\"%s\",\"signed_join\":",
		 role_word(j->cert.role));
	json_put_string(b, signed_join);
	buf_add_byte(b, '}');
}

/* What a job can ask for. */
static void put_runner(struct buf *extra, const struct runner_info *r)
{
	fact_add_name(extra, r->name);
	buf_add_byte(extra, (uint8_t)r->label_n);
	for (size_t i = 0; i < r->label_n; i++)
		fact_add_name(extra, r->labels[i]);
}

void serve_join(struct conn *c)
{
	struct session *s = c->req->session;
	struct bytes body = buf_bytes(&c->req->body);
	char token[TOKEN_N + 1];
	uint8_t hash[HASH_SIZE];
	struct join j;
	struct err e;
	if (join_parse(&j, body, &s->m, &e) < 0) {
		reply_err(c, &e);
		return;
	}
	bool approved = j.cert.role != ROLE_RUNNER ||
			!s->m.job.approve_runners;
	cleanup_buf struct buf extra = { 0 }, data = { 0 };
	auth_new_token(token, hash);
	buf_add(&extra, j.cert.pub, PRIM_PUB);
	buf_add_byte(&extra, (uint8_t)j.cert.role);
	buf_add_byte(&extra, approved);
	buf_add(&extra, hash, HASH_SIZE);
	fact_add_u64(&extra, (uint64_t)j.cert.issued_at_ms);
	if (j.has_runner)
		put_runner(&extra, &j.runner);
	put_participant(&data, &j, body);
	struct intent *it = intent_new(s, REC_JOIN, loop_wall_ms(),
				       buf_bytes(&extra), buf_bytes(&data));
	if (it) {
		it->role = j.cert.role;
		memcpy(it->key, j.cert.pub, PRIM_PUB);
		memcpy(it->token, token, sizeof token);
	}
	prim_wipe(token, sizeof token);
	join_free(&j);
	route_commit(c, it);
}

void serve_joined(struct conn *c, struct intent *it)
{
	cleanup_buf struct buf b = { 0 };
	if (it->status >= 400) {
		route_done(c, it);
		return;
	}
	buf_addf(&b, "{\"token\":\"%s\"}", it->token);
	reply_json(c, it->status, buf_bytes(&b));
}

static void put_pub(struct buf *b, const struct participant *p)
{
	json_put_b64(b, p->cert.pub, PRIM_PUB);
}

/* Whom it cuts off is known when its turn comes: check_intent says so. */
void serve_revoke(struct conn *c)
{
	struct req *r = c->req;
	enum role role;
	if (role_parse(&role, bytes_str(r->id)) < 0 || role == ROLE_OWNER) {
		reply_error(c, 400, "bad_request",
			    "revoke one of sender, observer, runner");
		return;
	}
	uint8_t word = (uint8_t)role;
	struct intent *it = intent_new(r->session, REC_REVOKED, loop_wall_ms(),
				       (struct bytes){ &word, 1 },
				       bytes_str(""));
	if (it) {
		it->by = r->by;
		it->role = role;
	}
	route_commit(c, it);
}

void serve_leave(struct conn *c)
{
	struct req *r = c->req;
	cleanup_buf struct buf data = { 0 };
	buf_add_str(&data, "{\"participant_pub\":");
	put_pub(&data, r->by);
	buf_add_byte(&data, '}');
	struct intent *it = intent_new(
		r->session, REC_LEFT, loop_wall_ms(),
		(struct bytes){ r->by->cert.pub, PRIM_PUB },
		buf_bytes(&data));
	if (it)
		it->by = r->by;
	route_commit(c, it);
}

void serve_close(struct conn *c)
{
	struct intent *it = intent_closed(c->req->session, loop_wall_ms(),
					  "{\"reason\":\"closed by the "
					  "owner\"}");
	if (it)
		it->by = c->req->by;
	route_commit(c, it);
}
