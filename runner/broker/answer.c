/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runner/broker/conn.h"
#include "runner/policy/show.h"

#define SHOWN_RULES 40u

static const char advice[] =
	"\nThis is a decision of whoever started this run, not a fault.  "
	"Please do not try\nto get around it by other hosts, addresses, "
	"proxies or encodings: say what you\nneed and why, and go on without "
	"it.  Each decision is in /run/airlox/egress.\n";

void answer_note(struct conn *c, const char *event, const char *why)
{
	const struct request *r = c->req;
	struct egress_line l = {
		.event = event, .why = why,
		.door = broker_door_word(c->door),
		.host = c->authority.name[0] ? &c->authority : NULL,
		.port = c->port, .tls = true,
	};
	if (r && r->host.name[0]) {
		l.host = &r->host;
		l.port = r->ask.port;
		l.tls = r->ask.tls;
	}
	if (r) {
		l.n = r->n;
		l.method = r->h.method;
		l.path = r->ask.path;
		l.line = r->rule ? r->rule->line : 0;
	}
	if (l.n == 0 && strcmp(event, "notice") != 0)
		l.n = c->b->egress.next++;
	egress_put(&c->b->egress, &l);
}

static void put_allowed(struct buf *out, const struct policy *p)
{
	buf_add_str(out, p->rule_n ? "\nAllowed are:\n" :
		    "\nNothing is allowed.\n");
	for (size_t i = 0; i < p->rule_n && i < SHOWN_RULES; i++) {
		buf_add_str(out, "  ");
		show_rule_line(out, &p->rule[i]);
		buf_add_byte(out, '\n');
	}
	if (p->rule_n > SHOWN_RULES)
		buf_addf(out, "  and %zu more\n", p->rule_n - SHOWN_RULES);
}

/* The answer is written and the connection drains.  An answer that has begun
 * cannot be taken back: it is cut off. */
static void send_answer(struct conn *c, int status, const char *phrase,
			const struct buf *body)
{
	struct buf *out = &c->client.out;
	bool head_only = c->req && http_is(c->req->h.method, "HEAD");
	side_close(&c->up);
	if (c->req && c->req->status) {
		conn_close(c);
		return;
	}
	buf_addf(out, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; "
		 "charset=utf-8\r\nContent-Length: %zu\r\n"
		 "Cache-Control: no-store\r\nConnection: close\r\n"
		 "X-Airlox-Box: %s\r\n%s\r\n", status, phrase, body->len,
		 status == 403 || status == 421 ? "denied" : "failed",
		 status == 407 ? "Proxy-Authenticate: Basic "
		 "realm=\"airlox-box\"\r\n" : "");
	if (!head_only)
		buf_add(out, body->data, body->len);
	if (c->req)
		c->req->status = status;
	conn_enter(c, CONN_DRAIN);
}

void answer_deny(struct conn *c, int status, const char *fmt, ...)
{
	char why[256];
	cleanup_buf struct buf body = { 0 };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	answer_note(c, "denied", why);
	buf_add_str(&body, "airlox-box: denied: ");
	if (c->req && c->req->host.name[0]) {
		host_put(&body, c->req->host.name, c->req->host.kind,
			 c->req->ask.port);
		buf_add_str(&body, ": ");
	} else if (c->authority.name[0]) {
		host_put(&body, c->authority.name, c->authority.kind, c->port);
		buf_add_str(&body, ": ");
	}
	buf_addf(&body, "%s\n", why);
	put_allowed(&body, c->b->policy);
	buf_add_str(&body, advice);
	send_answer(c, status, status == 403 ? "Denied by the policy of this "
		    "box, see /run/airlox/egress" : http_reason(status),
		    &body);
}

void answer_fail(struct conn *c, int status, const char *fmt, ...)
{
	char why[256];
	cleanup_buf struct buf body = { 0 };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	answer_note(c, "failed", why);
	buf_addf(&body, "airlox-box: %s\n", why);
	send_answer(c, status, http_reason(status), &body);
}

/* Sends what is left, says that it is all, and drops what still comes, so that
 * the answer is not lost to a reset. */
bool answer_drain(struct conn *c)
{
	struct side *s = &c->client;
	if (side_pending(s))
		return false;
	if (c->dropped == 0) {
		side_shut(s);
		c->dropped = 1;
	}
	c->dropped += s->in.len;
	buf_consume(&s->in, s->in.len);
	if (s->eof || s->broken || c->dropped > 256 * 1024)
		conn_close(c);
	return false;
}
