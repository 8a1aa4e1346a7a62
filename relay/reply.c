/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "relay/access.h"
#include "relay/reply.h"
#include "relay/duty.h"
#include "relay/tell.h"

#define SKIP_MAX (64u * 1024)
#define PIECE (64u * 1024)

/* A refused body that is not here yet: skipped where it is short and its
 * length known, else the connection ends with this answer. */
static void settle_body(struct conn *c)
{
	struct req *r = c->req;
	if (c->state == CONN_HEAD || !r) {
		if (c->state == CONN_HEAD)
			c->close = true;
		return;
	}
	if (c->state != CONN_BODY)
		return;
	if (r->has_length && r->left <= SKIP_MAX && !r->expect)
		c->skip = r->left;
	else
		c->close = true;
}

static void put_number(struct buf *b, uint64_t v)
{
	char text[20];
	size_t n = sizeof text;
	do
		text[--n] = (char)('0' + v % 10);
	while (v /= 10);
	buf_add(b, text + n, sizeof text - n);
}

/* Of every answer, so without printf. */
static void put_field(struct buf *b, const char *name, const char *value)
{
	buf_add_str(b, name);
	buf_add_str(b, value);
	buf_add(b, "\r\n", 2);
}

static void put_length(struct buf *b, uint64_t n)
{
	buf_add_str(b, "Content-Length: ");
	put_number(b, n);
	buf_add(b, "\r\n\r\n", 4);
}

static void head(struct conn *c, int status, const char *type)
{
	struct buf *b = &c->out;
	struct metrics *m = &c->loop->st->metrics;
	uint32_t retry_s = c->req && c->req->retry_s ? c->req->retry_s : 1;
	METRIC_ADD(m->answers[status / 100 % 6], 1);
	if (status == 429)
		METRIC_ADD(m->limited, 1);
	access_note(c, status);
	buf_add_str(b, "HTTP/1.1 ");
	put_number(b, (unsigned)status);
	put_field(b, " ", http_reason(status));
	put_field(b, "Date: ", c->loop->date);
	if (type)
		put_field(b, "Content-Type: ", type);
	buf_add_str(b, "Cache-Control: no-store\r\n");
	if (c->close)
		buf_add_str(b, "Connection: close\r\n");
	if (status == 401)
		buf_add_str(b, "WWW-Authenticate: Bearer\r\n");
	if (status == 429 || status == 503)
		buf_addf(b, "Retry-After: %u\r\n", retry_s);
	if (status == 405 && c->req && c->req->allow)
		buf_addf(b, "Allow: %s\r\n", c->req->allow);
}

static void finish(struct conn *c)
{
	c->state = CONN_SEND;
	c->deadline_ms = c->loop->now_ms + STALL_MS;
}

static void send_body(struct conn *c, int status, const char *type,
		      struct bytes body)
{
	settle_body(c);
	head(c, status, type);
	put_length(&c->out, body.n);
	buf_add(&c->out, body.p, body.n);
	finish(c);
}

void reply_json(struct conn *c, int status, struct bytes json)
{
	send_body(c, status, "application/json", json);
}

void reply_text(struct conn *c, const char *type, struct bytes body)
{
	send_body(c, 200, type, body);
}

void reply_empty(struct conn *c)
{
	settle_body(c);
	head(c, 204, NULL);
	buf_add_str(&c->out, "\r\n");
	finish(c);
}

void reply_error(struct conn *c, int status, const char *code,
		 const char *message)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "{\"error\":");
	json_put_string(&b, bytes_str(code));
	buf_add_str(&b, ",\"message\":");
	json_put_string(&b, bytes_str(message));
	buf_add_byte(&b, '}');
	reply_json(c, status, buf_bytes(&b));
}

void reply_later(struct conn *c, int64_t wait_ms, const char *message)
{
	c->req->retry_s = (uint32_t)((wait_ms + 999) / 1000);
	reply_error(c, 429, "rate_limited", message);
}

void reply_err(struct conn *c, const struct err *e)
{
	if (e->code == ERR_SYS || e->code == ERR_MEMORY || e->code == ERR_FULL)
		tell("%s", e->why);
	const char *why = e->code == ERR_SYS ? "the relay failed here" :
			  e->code == ERR_FULL ? "the relay's disk is full; "
						"try again later" : e->why;
	reply_error(c, err_http(e->code), err_http_code(e->code), why);
}

void reply_file(struct conn *c, int fd, int64_t at, uint64_t n)
{
	head(c, 200, "application/octet-stream");
	put_length(&c->out, n);
	c->file = fd;
	c->file_at = at;
	c->file_left = n;
	finish(c);
}

static void piece(struct conn *c, const struct buf *b)
{
	if (!c->req->http10)
		buf_addf(&c->out, "%zx\r\n", b->len);
	buf_add(&c->out, b->data, b->len);
	if (!c->req->http10)
		buf_add_str(&c->out, "\r\n");
}

void reply_listing(struct conn *c, enum text_kind text, uint32_t first,
		   uint32_t end)
{
	bool lines = text == TEXT_AUDIT;
	c->close |= c->req->http10;
	settle_body(c);
	head(c, 200, lines ? "application/jsonl" : "application/json");
	if (!c->req->http10)
		buf_add_str(&c->out, "Transfer-Encoding: chunked\r\n");
	buf_add_str(&c->out, "\r\n");
	c->req->listing = true;
	c->req->text = text;
	c->req->next = first;
	c->req->end = end;
	finish(c);
	if (!lines) {
		cleanup_buf struct buf b = { 0 };
		buf_add_str(&b, text == TEXT_EVENTS ? "{\"events\":[" :
						      "{\"runners\":[");
		piece(c, &b);
	}
}

int reply_listing_more(struct conn *c)
{
	struct req *r = c->req;
	struct state *st = c->loop->st;
	cleanup_buf struct buf b = { 0 };
	struct err e;
	pthread_mutex_lock(&st->lock);
	int rc = r->text == TEXT_RUNNERS ?
		 duty_text(st, r, PIECE, &b, &e) :
		 state_text(st, r->session, r->text, &r->next, r->end, PIECE,
			    &b, &e);
	pthread_mutex_unlock(&st->lock);
	if (rc < 0)
		return -1;	/* the break tells that it is not all */
	bool last = r->next >= r->end;
	if (last && r->text != TEXT_AUDIT)
		buf_add_str(&b, "]}");
	if (b.len)
		piece(c, &b);
	if (last && !r->http10)
		buf_add_str(&c->out, "0\r\n\r\n");
	r->listing = !last;
	return buf_failed(&c->out) ? -1 : 0;
}

void reply_stream_head(struct conn *c)
{
	c->close = true;
	head(c, 200, "text/event-stream");
	buf_add_str(&c->out, "X-Accel-Buffering: no\r\n\r\n:\n\n");
}

void reply_continue(struct conn *c)
{
	if (c->req->expect)
		buf_add_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	c->req->expect = false;
}
