/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/progress.h"
#include "relay/auth.h"
#include "relay/reply.h"
#include "relay/route.h"

#define BODY_IGNORED (8 * 1024)	/* of requests that need none */
#define HEARTBEAT_MAX 1024
#define S "/v1/sessions/{sid}"

static const struct route routes[] = {
	{ HTTP_GET, "/v1/health", 0, 0, NULL, NULL, serve_health, NULL },
	{ HTTP_GET, "/v1/limits", 0, 0, NULL, NULL, serve_limits, NULL },
	{ HTTP_GET, "/metrics", 0, 0, NULL, NULL, serve_metrics, NULL },
	{ HTTP_POST, "/v1/sessions", 0, MANIFEST_MAX, NULL, NULL,
	  serve_create, NULL },
	{ HTTP_GET, S, 0, 0, NULL, NULL, serve_manifest, NULL },
	{ HTTP_POST, S "/participants", 0, JOIN_MAX, NULL, NULL, serve_join,
	  serve_joined },
	{ HTTP_GET, S "/events", WHO_ALL, 0, NULL, NULL, serve_events, NULL },
	{ HTTP_GET, S "/stream", WHO_ALL, 0, NULL, NULL, serve_stream, NULL },
	{ HTTP_POST, S "/items", WHO_ALL, 0, upload_post_begin, upload_data,
	  upload_end, NULL },
	{ HTTP_GET, S "/items/{id}/blob", WHO_ALL, 0, NULL, NULL, serve_blob,
	  NULL },
	{ HTTP_PUT, S "/items/{id}/blob", WHO_ALL, 0, upload_put_begin,
	  upload_data, upload_end, NULL },
	{ HTTP_POST, S "/items/{id}/ack", WHO_ALL, BODY_IGNORED, NULL, NULL,
	  serve_ack, NULL },
	{ HTTP_POST, S "/items/{id}/want", WHO_ALL, BODY_IGNORED, NULL, NULL,
	  serve_want, NULL },
	{ HTTP_POST, S "/jobs", WHO_OWNER | WHO_SENDER, 0, upload_job_begin,
	  upload_data, upload_end, serve_job_posted },
	{ HTTP_GET, S "/jobs/{id}", WHO_ALL, 0, NULL, NULL, serve_job, NULL },
	{ HTTP_POST, S "/jobs/{id}/claim", WHO_RUNNER, BODY_IGNORED, NULL,
	  NULL, serve_claim, serve_claimed },
	{ HTTP_POST, S "/jobs/{id}/cancel", WHO_OWNER | WHO_SENDER,
	  BODY_IGNORED, NULL, NULL, serve_cancel, NULL },
	{ HTTP_POST, S "/jobs/{id}/progress", WHO_RUNNER, PROGRESS_BODY_MAX,
	  NULL, NULL, serve_progress, NULL },
	{ HTTP_GET, S "/runners", WHO_ALL, 0, NULL, NULL, serve_runners,
	  NULL },
	{ HTTP_POST, S "/runners/{id}/approve", WHO_OWNER, BODY_IGNORED, NULL,
	  NULL, serve_approve, NULL },
	{ HTTP_POST, S "/runners/{id}/reject", WHO_OWNER, BODY_IGNORED, NULL,
	  NULL, serve_reject, NULL },
	{ HTTP_POST, S "/runners/me/heartbeat", WHO_RUNNER, HEARTBEAT_MAX,
	  NULL, NULL, serve_heartbeat, NULL },
	{ HTTP_POST, S "/runners/me/away", WHO_RUNNER, BODY_IGNORED, NULL,
	  NULL, serve_away, NULL },
	{ HTTP_GET, S "/runners/me/stream", WHO_RUNNER, 0, NULL, NULL,
	  serve_duty, NULL },
	{ HTTP_POST, S "/roles/{id}/revoke", WHO_OWNER, BODY_IGNORED, NULL,
	  NULL, serve_revoke, NULL },
	{ HTTP_POST, S "/leave", WHO_ALL, BODY_IGNORED, NULL, NULL,
	  serve_leave, NULL },
	{ HTTP_POST, S "/close", WHO_OWNER, BODY_IGNORED, NULL, NULL,
	  serve_close, NULL },
	{ HTTP_GET, S "/audit.jsonl", WHO_OWNER | WHO_OBSERVER, 0, NULL, NULL,
	  serve_audit, NULL },
};

/* What a path holds. */
struct parts {
	struct bytes sid, id;
};

static struct bytes segment(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *slash = memchr(p, '/', (size_t)(end - p));
	return (struct bytes){ p, (size_t)((slash ? slash : end) - p) };
}

static bool matches(const char *pattern, struct bytes path, struct parts *out)
{
	const uint8_t *p = path.p, *end = path.p + path.n;
	const uint8_t *q = (const uint8_t *)pattern;
	const uint8_t *qend = q + strlen(pattern);
	while (p < end && q < qend) {
		if (*p++ != '/' || *q++ != '/')
			return false;
		struct bytes want = segment(q, qend), have = segment(p, end);
		if (want.n && want.p[0] == '{')
			*(want.p[1] == 's' ? &out->sid : &out->id) = have;
		else if (!bytes_eq(want, have))
			return false;
		p += have.n;
		q += want.n;
	}
	return p == end && q == qend;
}

/* allow: the method that it would be, or NULL. */
static const struct route *find(const struct http_head *h, struct parts *out,
				const char **allow)
{
	static const char *const words[HTTP_OTHER][HTTP_OTHER] = {
		{ "GET", "GET, POST", "GET, PUT" },
		{ "GET, POST", "POST", "POST, PUT" },
		{ "GET, PUT", "POST, PUT", "PUT" } };
	enum http_method first = HTTP_OTHER;
	*allow = NULL;
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
		if (!matches(routes[i].path, h->path, out))
			continue;
		if (routes[i].method == h->method)
			return &routes[i];
		if (first == HTTP_OTHER)
			first = routes[i].method;
		*allow = words[first][routes[i].method];
	}
	return NULL;
}

/* Session and participant; under the lock.  token is NULL where none came.
 * NULL, or the refusal. */
static const char *look_up(struct conn *c, const struct parts *parts,
			   const uint8_t *token, int *status)
{
	struct req *r = c->req;
	struct session *s = state_find(c->loop->st, parts->sid,
					 loop_wall_ms());
	*status = 404;
	if (!s)
		return "no such session; it may be closed or expired";
	r->session = state_ref(s);
	if (!r->route->who)
		return NULL;
	*status = 401;
	if (!token)
		return "a token is needed: Authorization: Bearer TOKEN";
	r->by = state_by_token(s, token);
	if (!r->by)
		return "unknown token; the participant may have left or been "
		       "revoked";
	*status = 403;
	if (!(r->route->who & (1u << r->by->cert.role)))
		return "this role may not";
	return NULL;
}

static int read_numbers(struct req *r, const struct http_head *h)
{
	r->after = -1;
	if (h->last_event_id.n && http_number(h->last_event_id, &r->after) < 0)
		return -1;
	return http_query_number(h->query, "after", &r->after) < 0 ? -1 : 0;
}

/* Each address has so many requests a minute, whatever they are. */
static bool is_slow_enough(struct conn *c)
{
	static const struct addr none;
	struct state *st = c->loop->st;
	if (!st->limits.address_minute ||
	    memcmp(&c->req->client, &none, sizeof none) == 0)
		return true;
	pthread_mutex_lock(&st->asking.lock);
	int64_t wait_ms = rate_table_take(st->asking.asked, c->req->client,
					  st->limits.address_minute,
					  MINUTE_MS, c->loop->now_ms);
	pthread_mutex_unlock(&st->asking.lock);
	if (wait_ms)
		reply_later(c, wait_ms, "too many requests from your address");
	return !wait_ms;
}

void route_begin(struct conn *c, const struct http_head *h)
{
	struct parts parts = { { 0 }, { 0 } };
	struct req *r = c->req;
	uint8_t hash[HASH_SIZE];
	int status = 0;
	const char *why = NULL;
	r->forwarded = !addr_client(&r->client, &c->loop->st->limits.proxies,
				    h->forwarded);
	r->route = find(h, &parts, &r->allow);
	if (h->method == HTTP_OTHER)
		c->close = true;	/* HEAD: no body is expected */
	if (!is_slow_enough(c))
		return;
	if (!r->route) {
		reply_error(c, r->allow ? 405 : 404,
			    r->allow ? "bad_request" : "not_found",
			    r->allow ? "not with this method" :
				       "no such resource");
		return;
	}
	if (parts.sid.p) {
		bool has = h->authorization.p &&
			   auth_read(hash, h->authorization) == 0;
		pthread_mutex_lock(&c->loop->st->lock);
		why = look_up(c, &parts, has ? hash : NULL, &status);
		pthread_mutex_unlock(&c->loop->st->lock);
	}
	if (why) {
		reply_error(c, status, status == 404 ? "not_found" :
			    status == 401 ? "unauthorized" : "forbidden", why);
		return;
	}
	if (parts.id.n < sizeof r->id)
		memcpy(r->id, parts.id.p ? (const char *)parts.id.p : "",
		       parts.id.n);
	if (read_numbers(r, h) < 0)
		reply_error(c, 400, "bad_request", "malformed event number");
	else if (!r->route->data && h->length > r->route->cap)
		reply_error(c, 413, "too_large", "the body is too large");
	r->refs_complete = bytes_eq(h->refs, bytes_str("complete"));
	if (c->state != CONN_BODY || !r->route->begin)
		return;
	r->target = h->target;
	r->route->begin(c);
	r->target = (struct bytes){ 0 };
}

void route_commit(struct conn *c, struct intent *it)
{
	bool had = it != NULL;
	if (!had || !c->loop->commit) {
		intent_free(it);
		reply_error(c, 503, "unavailable",
			    had ? "the relay is stopping" : "out of memory");
		return;
	}
	it->loop = c->loop->index;
	it->fd = c->fd;
	it->gen = c->generation;
	c->state = CONN_WAIT;
	commit_queue(c->loop->commit, it);
}

void route_done(struct conn *c, struct intent *it)
{
	cleanup_buf struct buf b = { 0 };
	c->req->retry_s = it->retry_s;
	if (it->status >= 400) {
		reply_error(c, it->status, it->error, it->message);
	} else if (it->status == 204) {
		reply_empty(c);
	} else {
		if (it->fact.type == REC_SESSION)
			buf_addf(&b, "{\"session_id\":\"%s\"}",
				 it->session->id);
		else
			buf_addf(&b, "{\"seq\":%llu}",
				 (unsigned long long)it->seq);
		reply_json(c, it->status, buf_bytes(&b));
	}
}

bool route_transfer(struct conn *c, uint64_t n)
{
	struct state *st = c->loop->st;
	pthread_mutex_lock(&st->lock);
	int64_t wait_ms = rate_take(&c->req->session->transfer, (double)n,
				    (double)st->limits.transfer_day, DAY_MS,
				    loop_wall_ms());
	pthread_mutex_unlock(&st->lock);
	if (wait_ms)
		reply_later(c, wait_ms, "this session has moved as much as "
			    "one may in a day");
	return !wait_ms;
}
