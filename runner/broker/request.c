/* SPDX-License-Identifier: MIT
 *
 * request: from a head to a decision. */
#include <stdio.h>
#include <string.h>

#include "core/prim.h"
#include "runner/broker/conn.h"
#include "runner/broker/text.h"

void request_free(struct conn *c)
{
	struct request *r = c->req;
	if (!r)
		return;
	if (r->n && r->rule) {
		struct egress_line end = {
			.event = "end", .n = r->n, .status = r->status,
			.host = &r->host, .port = r->ask.port,
			.address = c->up_text, .up_bytes = r->up_bytes,
			.down_bytes = r->down_bytes,
			.swapped = r->swap.swapped,
			.redacted = r->redacted + r->redact.found,
			.ms = c->b->now_ms - r->began_ms,
		};
		egress_put(&c->b->egress, &end);
	}
	c->b->held_bytes -= r->body.len;
	buf_free(&r->head);
	buf_free(&r->body);
	http_body_free(&r->from);
	http_body_free(&r->answer);
	redact_reset(&r->redact);
	prim_wipe(r, sizeof *r);
	free(r);
	c->req = NULL;
}

/* "Basic " and base64 of "box:TOKEN". */
static bool knows_token(const struct conn *c, const struct http_head *h)
{
	const char *want = c->b->token;
	if (!*want || c->door != DOOR_PROXY || c->client.tls)
		return true;
	for (unsigned i = 0; i < h->field_n; i++) {
		cleanup_buf struct buf got = { 0 };
		struct bytes v = h->field[i].value;
		if (!http_is(h->field[i].name, "proxy-authorization") ||
		    v.n < 6 || !http_is((struct bytes){ v.p, 6 }, "basic "))
			continue;
		v.p += 6, v.n -= 6;
		if (text_from_base64(&got, v) == 0 &&
		    got.len == strlen(want) + 4 &&
		    !memcmp(got.data, "box:", 4) &&
		    prim_equal(got.data + 4, want, strlen(want)))
			return true;
	}
	return false;
}

static void split_target(struct request *r, struct bytes target)
{
	const uint8_t *q = memchr(target.p, '?', target.n);
	size_t n = q ? (size_t)(q - target.p) : target.n;
	r->ask.path = (struct bytes){ target.p, n };
	r->query = (struct bytes){ target.p + n, target.n - n };
}

/* http://HOST/PATH, as a proxy is asked. */
static int read_absolute(struct request *r, const char **why)
{
	struct bytes t = r->h.target;
	if (t.n < 8 || !http_is((struct bytes){ t.p, 7 }, "http://")) {
		*why = "this is a proxy: ask it for http://HOST/PATH, or "
		       "CONNECT HOST:PORT";
		return -1;
	}
	t.p += 7, t.n -= 7;
	size_t n = 0;
	while (n < t.n && t.p[n] != '/' && t.p[n] != '?')
		n++;
	if (host_parse(&r->host, (struct bytes){ t.p, n }) < 0) {
		*why = "not a host in this address";
		return -1;
	}
	r->ask.port = r->host.port ? r->host.port : 80;
	if (n == t.n)
		t = bytes_str("/");
	else if (t.p[n] == '/')
		t.p += n, t.n -= n;
	else {
		*why = "an address needs a path";
		return -1;
	}
	split_target(r, t);
	return 0;
}

/* /PATH, or "*" for OPTIONS; whose it is says the tunnel, or Host. */
static int read_origin(struct conn *c, const char **why)
{
	struct request *r = c->req;
	bool star = bytes_eq(r->h.target, bytes_str("*")) &&
		    http_is(r->h.method, "OPTIONS");
	*why = "the target must be a path";
	if (r->h.target.p[0] != '/' && !star)
		return -1;
	split_target(r, r->h.target);
	if (r->ask.tls) {
		r->host = c->authority;
		r->ask.port = c->port;
		return 0;
	}
	*why = "not a host in Host";
	if (host_parse(&r->host, r->h.host) < 0)
		return -1;
	r->ask.port = r->host.port ? r->host.port : 80;
	return 0;
}

static bool host_agrees(const struct request *r)
{
	struct host h;
	uint16_t usual = r->ask.tls ? 443 : 80;
	return host_parse(&h, r->h.host) == 0 && host_same(&h, &r->host) &&
	       (h.port ? h.port : usual) == r->ask.port;
}

/* A bucket that a minute fills. */
static bool within_rate(struct broker *b)
{
	int64_t per_minute = b->policy->limits.requests;
	if (per_minute == 0)
		return true;
	if (b->tokens_milli < 1000)
		return false;
	b->tokens_milli -= 1000;
	return true;
}

static const char *over_limit(struct broker *b)
{
	const struct policy_limits *l = &b->policy->limits;
	if (!within_rate(b))
		return "too many requests a minute for the policy";
	if (l->upload_bytes && b->up_bytes >= (uint64_t)l->upload_bytes)
		return "the upload of the policy is used up";
	if (l->download_bytes && b->down_bytes >= (uint64_t)l->download_bytes)
		return "the download of the policy is used up";
	return NULL;
}

static bool plain_credential(const struct broker *b, const struct request *r)
{
	for (size_t i = 0; !r->ask.tls && i < b->policy->credential_n; i++)
		if (policy_credential_holds(&b->policy->credential[i],
					    &r->ask) &&
		    !b->policy->credential[i].plaintext)
			return true;
	return false;
}

/* Fields by which a server may be told of another method or path than the one
 * that was decided on. */
static const char *find_override(const struct request *r,
				 const struct policy_rule *rule)
{
	static const struct { const char *name; bool path; } t[] = {
		{ "x-http-method-override", false },
		{ "x-http-method", false }, { "x-method-override", false },
		{ "x-original-url", true }, { "x-rewrite-url", true },
		{ "x-original-uri", true },
	};
	for (unsigned i = 0; i < r->h.field_n; i++)
		for (size_t k = 0; k < sizeof t / sizeof t[0]; k++)
			if (http_is(r->h.field[i].name, t[k].name) &&
			    (t[k].path ? rule->paths.n : rule->methods.n))
				return t[k].name;
	return NULL;
}

/* The decision.  False when the answer is no, and on its way. */
static bool decide(struct conn *c)
{
	struct request *r = c->req;
	struct policy_answer a;
	policy_decide(c->b->policy, &r->ask, &a);
	r->rule = NULL;
	if (!a.allowed) {
		bool trace = http_is(r->h.method, "TRACE");
		answer_deny(c, trace ? 405 : 403, "%s", a.why);
		return false;
	}
	const char *override = find_override(r, a.rule);
	const char *limit = override ? NULL : over_limit(c->b);
	if (override)
		answer_deny(c, 403, "%s is not let through where a rule names "
			    "methods or paths", override);
	else if (limit)
		answer_deny(c, 429, "%s", limit);
	else if (plain_credential(c->b, r))
		answer_deny(c, 403, "a credential of this host does not go "
			    "without TLS: ask for https://");
	else if (http_has(r->h.upgrade, "websocket"))
		answer_deny(c, 501, "WebSockets are not carried, but where the "
			    "policy says passthrough");
	else {
		r->rule = a.rule;
		r->n = c->b->egress.next++;
		answer_note(c, "allowed", a.why);
		if (!c->b->egress.failed)
			return true;
		r->rule = NULL;
		answer_fail(c, 503, "the account of this run cannot be "
			    "written, so nothing is allowed");
	}
	return false;
}

/* What is allowed goes on: a body that must be searched is gathered first. */
static void go_on(struct conn *c)
{
	struct request *r = c->req;
	r->swap = (struct swap){ c->b->policy, &c->b->secrets, &r->ask,
				 r->query, 0 };
	const struct policy_credential *stray = swap_stray(&r->swap, &r->h);
	if (stray) {
		char why[160];
		snprintf(why, sizeof why, "the placeholder of line %u is sent "
			 "here as plain text", stray->line);
		answer_note(c, "notice", why);
	}
	r->from = (struct http_body){ .framing = http_request_framing(&r->h),
				      .left = r->h.length };
	if (r->h.has_length && r->h.length == 0)
		r->from.framing = HTTP_NONE;
	r->holds = swap_wants_body(&r->swap, &r->h);
	if (!r->holds) {
		dial_begin(c);
		return;
	}
	if (r->h.expect && !r->h.http10)
		buf_add_str(&c->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
	conn_enter(c, CONN_HOLD);
}

static void begin(struct conn *c)
{
	struct request *r = c->req;
	const char *why = "";
	bool proxy = c->door == DOOR_PROXY && !c->client.tls;
	r->ask = (struct policy_ask){ .host = &r->host,
				      .tls = c->client.tls != NULL,
				      .method = r->h.method };
	r->began_ms = c->b->now_ms;
	if (!knows_token(c, &r->h)) {
		answer_deny(c, 407, "this proxy wants the token of this run: "
			    "take the address of HTTPS_PROXY as it is");
	} else if (http_is(r->h.method, "CONNECT")) {
		if (proxy)
			front_connect(c, &r->h);
		else
			answer_deny(c, 405, "no tunnel within a tunnel");
	} else if (c->misdirected) {
		answer_deny(c, 421, "%s", c->misdirected);
	} else if ((proxy ? read_absolute(r, &why) :
			    read_origin(c, &why)) < 0) {
		r->host.name[0] = 0;
		answer_deny(c, 400, "%s", why);
	} else if (!host_agrees(r)) {
		answer_deny(c, 421, "Host names another host than %s",
			    r->ask.tls ? "the TLS connection" : "the address");
	} else if (decide(c)) {
		go_on(c);
	}
}

bool request_head(struct conn *c)
{
	struct buf *in = &c->client.in;
	struct http_fault f;
	long size = in->len ? http_head_end(in->data, in->len,
					    HTTP_REQUEST_MAX, &c->seen, &f) :
			      0;
	if (size == 0) {
		if (c->client.eof)
			conn_close(c);
		return false;
	}
	struct request *r = calloc(1, sizeof *r);
	if (!r) {
		conn_close(c);
		return true;
	}
	c->req = r;
	c->seen = 0;
	if (size > 0) {
		buf_add(&r->head, in->data, (size_t)size);
		buf_consume(in, (size_t)size);
	}
	if (size < 0 || buf_failed(&r->head) ||
	    http_request_parse(&r->h, r->head.data, (size_t)size, &f) < 0) {
		if (size > 0 && buf_failed(&r->head))
			f = (struct http_fault){ 503, "out of memory" };
		r->h.method = (struct bytes){ NULL, 0 };
		answer_deny(c, f.status, "malformed request: %s", f.why);
		return true;
	}
	begin(c);
	return true;
}

/* Gathers a body of up to 1 MiB; of all connections 64 MiB. */
bool request_hold(struct conn *c)
{
	struct request *r = c->req;
	struct buf *in = &c->client.in;
	bool any = false;
	int rc = 0;
	while (in->len && rc == 0) {
		struct bytes run;
		size_t used;
		rc = http_body_read(&r->from, in->data, in->len, &used, &run);
		if (r->body.len + run.n > SWAP_BODY_MAX) {
			answer_deny(c, 413, "bodies for this host are searched "
				    "for a placeholder: at most 1 MiB");
			return true;
		}
		if (c->b->held_bytes + run.n > BROKER_HELD_MAX) {
			answer_fail(c, 503, "too many bodies at once");
			return true;
		}
		buf_add(&r->body, run.p, run.n);
		c->b->held_bytes += run.n;
		r->up_bytes += run.n;
		buf_consume(in, used);
		any = true;
	}
	if (rc < 0 || buf_failed(&r->body))
		answer_deny(c, 400, "malformed body");
	else if (rc > 0)
		dial_begin(c);
	else if (c->client.eof)
		conn_close(c);
	return any || rc != 0;
}
