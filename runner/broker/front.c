/* SPDX-License-Identifier: MIT
 *
 * front: how the box's connections begin: CONNECT, a ClientHello, TLS. */
#include <string.h>

#include "runner/broker/conn.h"
#include "runner/broker/hello.h"

static bool same_as_authority(const struct conn *c, struct bytes host)
{
	struct host h;
	return host_parse(&h, host) == 0 && host_same(&h, &c->authority) &&
	       (h.port ? h.port : 443) == c->port;
}

/* The decision about methods and paths is made inside the tunnel; here only
 * whether there may be one. */
void front_connect(struct conn *c, const struct http_head *h)
{
	const struct policy_rule *r;
	if (host_parse(&c->authority, h->target) < 0 || !c->authority.port) {
		c->authority.name[0] = 0;
		answer_deny(c, 400, "CONNECT takes HOST:PORT");
		return;
	}
	c->port = c->authority.port;
	r = policy_find_host(c->b->policy, &c->authority, c->port);
	if (h->chunked || h->has_length)
		answer_deny(c, 400, "a CONNECT has no body");
	else if (h->host.p && !same_as_authority(c, h->host))
		answer_deny(c, 421, "CONNECT and Host name different hosts");
	else if (!r)
		answer_deny(c, 403, "this host and port are not in the "
			    "policy");
	else if (r->tls == POLICY_PLAIN)
		answer_deny(c, 403, "the policy allows this host without TLS "
			    "only: ask the proxy for its http:// address");
	else {
		c->tunnelled = true;
		buf_add_str(&c->client.out, "HTTP/1.1 200 Connection "
			    "established\r\n\r\n");
		request_free(c);
		conn_enter(c, CONN_HELLO);
	}
}

/* An alert instead of an answer: without a name there is no certificate. */
static void refuse_nameless(struct conn *c)
{
	static const uint8_t unrecognized_name[] = { 21, 3, 3, 0, 2, 2, 112 };
	answer_note(c, "denied", "TLS without a server name (SNI): nobody "
		    "knows which host is meant");
	buf_add(&c->client.out, unrecognized_name, sizeof unrecognized_name);
	conn_enter(c, CONN_DRAIN);
}

static void refuse_other(struct conn *c)
{
	if (c->client.in.len && c->client.in.data[0] >= 'A' &&
	    c->client.in.data[0] <= 'Z') {
		answer_deny(c, 403, "only TLS is carried in a tunnel; ask the "
			    "proxy for an http:// address without CONNECT");
		return;
	}
	answer_note(c, "denied", "what is not TLS is not carried");
	conn_close(c);
}

/* The name that the hello asks for, against the one of CONNECT. */
static void compare_names(struct conn *c, const struct host *sni, bool given)
{
	if (!c->tunnelled) {
		c->authority = *sni;
		c->port = 443;
	} else if (!given && c->authority.kind == HOST_NAME) {
		c->misdirected = "TLS without a server name (SNI) in a tunnel "
				 "to a name";
	} else if (given && !host_same(sni, &c->authority)) {
		c->misdirected = "CONNECT and TLS (SNI) name different hosts";
	}
}

static void begin_passthrough(struct conn *c, const struct policy_rule *r)
{
	c->req = calloc(1, sizeof *c->req);
	if (!c->req) {
		conn_close(c);
		return;
	}
	c->req->host = c->authority;
	c->req->rule = r;
	c->req->ask = (struct policy_ask){ &c->req->host, c->port, true,
					   { NULL, 0 }, { NULL, 0 } };
	c->req->n = c->b->egress.next++;
	c->req->began_ms = c->b->now_ms;
	answer_note(c, "allowed", r->reason ? r->reason : "passthrough");
	if (c->b->egress.failed)
		conn_close(c);
	else
		dial_begin(c);
}

static void begin_tls(struct conn *c, const struct host *name)
{
	struct buf *in = &c->client.in;
	c->client.tls = tls_accept(c->client.watch.fd, name->name,
				   name->kind != HOST_NAME, buf_bytes(in));
	buf_free(in);
	if (c->client.tls)
		conn_enter(c, CONN_SHAKE);
	else
		conn_close(c);
}

bool front_hello(struct conn *c)
{
	uint8_t space[256];
	struct bytes name;
	struct buf *in = &c->client.in;
	struct host sni = { 0 };
	int rc = in->len ? hello_read(in->data, in->len, space, &name) : 0;
	if (rc == 0) {
		if (c->client.eof || in->len > HELLO_MAX)
			conn_close(c);
		return false;
	}
	if (rc < 0) {
		refuse_other(c);
		return true;
	}
	bool given = name.n > 0;
	if (given && (host_parse(&sni, name) < 0 || sni.port))
		given = false;
	if (!given && !c->tunnelled) {
		refuse_nameless(c);
		return true;
	}
	compare_names(c, &sni, given);
	const struct policy_rule *r = policy_find_host(c->b->policy,
						       &c->authority, c->port);
	if (!c->misdirected && r && r->tls == POLICY_PASSTHROUGH)
		begin_passthrough(c, r);
	else
		begin_tls(c, given ? &sni : &c->authority);
	return true;
}

bool front_shake(struct conn *c)
{
	int rc = tls_handshake(c->client.tls);
	if (rc == 0)
		return false;
	if (rc < 0) {
		answer_note(c, "notice", tls_why(c->client.tls));
		conn_close(c);
		return true;
	}
	c->seen = 0;
	conn_enter(c, CONN_HEAD);
	return true;
}
