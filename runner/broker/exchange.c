/* SPDX-License-Identifier: MIT
 *
 * exchange: a request on its way up and its answer on its way down.  Both are
 * streamed; nothing is made for an end that does not take it.  Framing is
 * written anew on both sides, and every byte that goes to the box has been
 * searched for the credentials. */
#include <stdio.h>
#include <string.h>

#include "runner/broker/conn.h"

/* --- up --- */

static void put_chunk(struct buf *out, struct bytes run)
{
	if (run.n == 0)
		return;
	buf_addf(out, "%zx\r\n", run.n);
	buf_add(out, run.p, run.n);
	buf_add_str(out, "\r\n");
}

static void put_framing(struct buf *out, const struct request *r, size_t held)
{
	static const char *const with_body[] = { "POST", "PUT", "PATCH" };
	if (r->holds) {
		buf_addf(out, "Content-Length: %zu\r\n", held);
	} else if (r->from.framing == HTTP_CHUNKED) {
		buf_add_str(out, "Transfer-Encoding: chunked\r\n");
	} else if (r->from.framing == HTTP_LENGTH) {
		buf_addf(out, "Content-Length: %llu\r\n",
			 (unsigned long long)r->h.length);
	} else {
		for (int i = 0; i < 3; i++)
			if (bytes_eq(r->h.method, bytes_str(with_body[i])))
				buf_add_str(out, "Content-Length: 0\r\n");
	}
	buf_add_str(out, "\r\n");
}

void exchange_begin(struct conn *c)
{
	struct request *r = c->req;
	struct buf *out = &c->up.out;
	cleanup_buf struct buf body = { 0 };
	r->swap.swapped = 0;
	if (r->holds)
		swap_body(&body, &r->swap, &r->h, buf_bytes(&r->body));
	swap_head(out, &r->swap, &r->h);
	put_framing(out, r, body.len);
	buf_add(out, body.data, body.len);
	c->up_seen = 0;
	if (buf_failed(out) || buf_failed(&body)) {
		answer_fail(c, 503, "out of memory");
		return;
	}
	if (!r->holds && r->h.expect && !r->h.http10 && !r->sent_head)
		buf_add_str(&c->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
	r->sent_head = true;
	conn_enter(c, CONN_EXCHANGE);
}

/* A limit that is reached in the middle cuts the connection. */
static bool count(struct conn *c, uint64_t *sum, int64_t limit, size_t n)
{
	*sum += n;
	if (!limit || *sum <= (uint64_t)limit)
		return true;
	answer_note(c, "denied", limit == c->b->policy->limits.upload_bytes ?
		    "the upload of the policy is used up" :
		    "the download of the policy is used up");
	conn_close(c);
	return false;
}

static bool send_up(struct conn *c)
{
	struct request *r = c->req;
	struct buf *in = &c->client.in;
	bool any = false;
	while (in->len && !r->holds && !http_body_done(&r->from) &&
	       side_pending(&c->up) < SIDE_OUT_MAX) {
		struct bytes run;
		size_t used;
		int rc = http_body_read(&r->from, in->data, in->len, &used,
					&run);
		if (rc < 0) {
			answer_note(c, "denied", "malformed request body");
			conn_close(c);
			return true;
		}
		r->up_bytes += run.n;
		if (!count(c, &c->b->up_bytes,
			   c->b->policy->limits.upload_bytes, run.n))
			return true;
		if (r->from.framing == HTTP_CHUNKED)
			put_chunk(&c->up.out, run);
		else
			buf_add(&c->up.out, run.p, run.n);
		/* trailers of a request do not go on */
		if (rc > 0 && r->from.framing == HTTP_CHUNKED)
			buf_add_str(&c->up.out, "0\r\n\r\n");
		buf_consume(in, used);
		any = true;
	}
	return any;
}

/* --- down: the head --- */

static bool is_dropped(const struct http_head *h, struct bytes name)
{
	static const char *const ours[] = { "content-length", "alt-svc",
					    "x-airlox-box", NULL };
	for (int i = 0; ours[i]; i++)
		if (http_is(name, ours[i]))
			return true;
	return http_is_hop(h, name);
}

static void put_answer_framing(struct conn *c, const struct http_head *h)
{
	struct request *r = c->req;
	struct buf *out = &c->client.out;
	switch (r->answer.framing) {
	case HTTP_NONE:
		if (h->has_length && h->status != 204)
			buf_addf(out, "Content-Length: %llu\r\n",
				 (unsigned long long)h->length);
		break;
	case HTTP_LENGTH:
		buf_addf(out, "Content-Length: %llu\r\n",
			 (unsigned long long)h->length);
		break;
	case HTTP_CHUNKED:
	case HTTP_TO_CLOSE:
		r->to_chunks = !r->h.http10;
		if (r->to_chunks)
			buf_add_str(out, "Transfer-Encoding: chunked\r\n");
		break;
	}
	r->to_close = !r->h.keep_alive ||
		      (!r->to_chunks && r->answer.framing != HTTP_NONE &&
		       r->answer.framing != HTTP_LENGTH);
	if (r->to_close)
		buf_add_str(out, "Connection: close\r\n");
	buf_add_str(out, "\r\n");
}

static void put_answer_head(struct conn *c, const struct http_head *h)
{
	struct request *r = c->req;
	struct buf *out = &c->client.out;
	size_t from = out->len;
	buf_addf(out, "HTTP/1.1 %d ", h->status);
	size_t code = out->len;
	buf_add(out, h->reason.p, h->reason.n);
	buf_add_str(out, "\r\n");
	for (unsigned i = 0; i < h->field_n; i++) {
		const struct http_field *f = &h->field[i];
		if (is_dropped(h, f->name))
			continue;
		buf_add(out, f->name.p, f->name.n);
		buf_add_str(out, ": ");
		buf_add(out, f->value.p, f->value.n);
		buf_add_str(out, "\r\n");
	}
	(void)from;
	if (!buf_failed(out))
		r->redacted += redact_whole(c->b->redact, out->data + code,
					    out->len - code);
	put_answer_framing(c, h);
}

/* What cannot be searched is not handed on where a credential went along. */
static bool is_searchable(const struct conn *c, const struct http_head *h)
{
	const struct request *r = c->req;
	return r->answer.framing == HTTP_NONE || h->content_encoding.n == 0 ||
	       http_is(h->content_encoding, "identity") ||
	       !policy_has_credential(c->b->policy, &r->host, r->ask.port);
}

static void take_head(struct conn *c, const struct http_head *h)
{
	struct request *r = c->req;
	r->answer = (struct http_body){
		.framing = http_answer_framing(h, r->h.method),
		.left = h->length, .lenient = true
	};
	if (h->status == 101) {
		answer_fail(c, 502, "the upstream switched protocols, which "
			    "nobody asked for");
		return;
	}
	if (!is_searchable(c, h)) {
		answer_fail(c, 502, "the answer is compressed although it was "
			    "asked not to be: it cannot be searched for the "
			    "credential");
		return;
	}
	r->keep_up = h->keep_alive && r->answer.framing != HTTP_TO_CLOSE;
	put_answer_head(c, h);
	r->status = h->status;
}

/* An upstream that ended a connection which was idle may not have seen the
 * request: one without a body is sent again, once, on a new one. */
static void ended_early(struct conn *c)
{
	struct request *r = c->req;
	bool fresh = c->up.in.len == 0;
	if (r->warm && fresh && r->tries++ == 0 &&
	    (r->holds || r->from.framing == HTTP_NONE)) {
		side_close(&c->up);
		dial_begin(c);
	} else if (c->up.tls && c->up.broken && *tls_why(c->up.tls) && fresh) {
		if (tls_only_h2(c->up.tls))
			answer_deny(c, 502, "this host speaks HTTP/2 only, "
				    "which is not looked into; passthrough "
				    "would carry it");
		else
			answer_fail(c, 502, "%s", tls_why(c->up.tls));
	} else {
		answer_fail(c, 502, "the upstream ended the connection "
			    "without an answer");
	}
}

static bool is_h2(const struct buf *in)
{
	/* a SETTINGS frame, with which an HTTP/2 server begins */
	return in->len >= 9 && in->data[0] == 0 && in->data[3] == 4 &&
	       in->data[5] == 0 && in->data[8] == 0;
}

static bool receive_head(struct conn *c)
{
	struct buf *in = &c->up.in;
	struct http_head h;
	struct http_fault f = { 0, NULL };
	long size = in->len ? http_head_end(in->data, in->len, HTTP_ANSWER_MAX,
					    &c->up_seen, &f) : 0;
	if (size == 0 && !c->up.eof && !c->up.broken)
		return false;
	if (size == 0) {
		ended_early(c);
		return true;
	}
	if (size < 0 && is_h2(in)) {
		answer_deny(c, 502, "this host speaks HTTP/2 only, which is "
			    "not looked into; passthrough would carry it");
		return true;
	}
	if (size < 0 || http_answer_parse(&h, in->data, (size_t)size, &f) < 0) {
		answer_fail(c, 502, "the upstream's answer is malformed: %s",
			    f.why);
		return true;
	}
	c->up_seen = 0;
	if (h.status >= 200 || h.status == 101)
		take_head(c, &h);
	if (c->state == CONN_EXCHANGE)
		buf_consume(in, (size_t)size);
	return true;
}

/* --- down: the body --- */

static void put_body(struct conn *c, struct bytes run, bool end)
{
	struct request *r = c->req;
	struct buf *out = &c->client.out;
	if (!r->to_chunks) {
		redact_feed(&r->redact, c->b->redact, run, end, out);
		return;
	}
	cleanup_buf struct buf clean = { 0 };
	redact_feed(&r->redact, c->b->redact, run, end, &clean);
	put_chunk(out, buf_bytes(&clean));
	out->failed |= clean.failed;
}

/* Trailers are header fields that come late: read and searched like them. */
static void put_trailer(struct conn *c)
{
	struct request *r = c->req;
	cleanup_buf struct buf all = { 0 };
	struct http_head h;
	struct http_fault f;
	buf_add_str(&c->client.out, "0\r\n");
	buf_add_str(&all, "HTTP/1.1 200 \r\n");
	buf_add(&all, r->answer.trailer.data, r->answer.trailer.len);
	buf_add_str(&all, "\r\n");
	if (r->answer.trailer.len && !buf_failed(&all) &&
	    http_answer_parse(&h, all.data, all.len, &f) == 0) {
		r->redacted += redact_whole(c->b->redact, r->answer.trailer.data,
					    r->answer.trailer.len);
		for (unsigned i = 0; i < h.field_n; i++)
			if (is_dropped(&h, h.field[i].name))
				r->answer.trailer.len = 0;
		buf_add(&c->client.out, r->answer.trailer.data,
			r->answer.trailer.len);
	}
	buf_add_str(&c->client.out, "\r\n");
}

static void finish(struct conn *c)
{
	struct request *r = c->req;
	bool whole = r->holds || http_body_done(&r->from);
	bool close = r->to_close || !whole;
	if (r->to_chunks)
		put_trailer(c);
	if (!r->keep_up || !whole || c->up.in.len || side_pending(&c->up))
		side_close(&c->up);
	request_free(c);
	conn_enter(c, close ? CONN_DRAIN : CONN_HEAD);
}

static void cut_off(struct conn *c, const char *why)
{
	answer_note(c, "failed", why);
	conn_close(c);
}

static bool receive_body(struct conn *c)
{
	struct request *r = c->req;
	struct buf *in = &c->up.in;
	bool any = false;
	int rc = http_body_done(&r->answer);
	while (rc == 0 && in->len && side_pending(&c->client) < SIDE_OUT_MAX) {
		struct bytes run;
		size_t used;
		rc = http_body_read(&r->answer, in->data, in->len, &used,
				    &run);
		r->down_bytes += run.n;
		if (!count(c, &c->b->down_bytes,
			   c->b->policy->limits.download_bytes, run.n))
			return true;
		put_body(c, run, false);
		buf_consume(in, used);
		any = true;
	}
	bool ended = rc == 0 && in->len == 0 && c->up.eof;
	if (ended && r->answer.framing == HTTP_TO_CLOSE)
		rc = 1;
	if (rc < 0 || (rc == 0 && in->len == 0 && c->up.broken) ||
	    (ended && rc == 0)) {
		cut_off(c, rc < 0 ? "the upstream's answer is malformed" :
			"the upstream ended in the middle of its answer");
		return true;
	}
	if (rc == 0)
		return any;
	put_body(c, (struct bytes){ NULL, 0 }, true);
	finish(c);
	return true;
}

bool exchange_step(struct conn *c)
{
	bool any = send_up(c);
	if (c->state != CONN_EXCHANGE)
		return true;
	if (!c->req->status)
		any |= receive_head(c);
	if (c->state == CONN_EXCHANGE && c->req->status)
		any |= receive_body(c);
	if (c->state == CONN_EXCHANGE && buf_failed(&c->client.out))
		conn_close(c);
	return any;
}

/* --- passthrough --- */

static bool carry(struct conn *c, struct side *from, struct side *to,
		  uint64_t *sum, uint64_t *all, int64_t limit)
{
	size_t n = from->in.len;
	if (n && side_pending(to) < SIDE_OUT_MAX) {
		if (!count(c, all, limit, n))
			return true;
		*sum += n;
		buf_add(&to->out, from->in.data, n);
		buf_consume(&from->in, n);
		return true;
	}
	return false;
}

/* The end of one side is the end for the other, once all has gone. */
static void pass_end(struct side *from, struct side *to, bool *said)
{
	if (from->eof && from->in.len == 0 && side_pending(to) == 0 && !*said) {
		side_shut(to);
		*said = true;
	}
}

bool tunnel_step(struct conn *c)
{
	struct request *r = c->req;
	const struct policy_limits *l = &c->b->policy->limits;
	bool any = carry(c, &c->client, &c->up, &r->up_bytes,
			 &c->b->up_bytes, l->upload_bytes);
	if (c->state == CONN_TUNNEL)
		any |= carry(c, &c->up, &c->client, &r->down_bytes,
			     &c->b->down_bytes, l->download_bytes);
	if (c->state != CONN_TUNNEL)
		return true;
	/* to_chunks and to_close have no other use in a tunnel */
	pass_end(&c->client, &c->up, &r->to_chunks);
	pass_end(&c->up, &c->client, &r->to_close);
	if (c->client.broken || c->up.broken || (r->to_chunks && r->to_close))
		conn_close(c);
	return any;
}
