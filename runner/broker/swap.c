/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/broker/swap.h"
#include "runner/broker/text.h"

enum form { RAW, PERCENT, JSON };

/* The i-th credential counts for this request. */
static bool holds(const struct swap *s, size_t i)
{
	const struct policy_credential *c = &s->policy->credential[i];
	return policy_credential_holds(c, s->ask) &&
	       (s->ask->tls || c->plaintext);
}

static bool is_set(const struct policy_credential *c)
{
	return c->scheme != POLICY_SUBSTITUTE;
}

static const char *header_of(const struct policy_credential *c)
{
	return c->scheme == POLICY_HEADER ? c->header : "Authorization";
}

/* Whether ours takes the place of the box's field of this name.  Where a
 * credential is set, no other of the box's goes along with it. */
static bool is_replaced(const struct swap *s, struct bytes name)
{
	for (size_t i = 0; i < s->policy->credential_n; i++) {
		const struct policy_credential *c = &s->policy->credential[i];
		if (!is_set(c) || !holds(s, i))
			continue;
		if (http_is(name, header_of(c)) ||
		    http_is(name, "authorization") || http_is(name, "cookie"))
			return true;
	}
	return false;
}

/* What is written by the broker itself, or may not go on at all. */
static bool is_ours(struct bytes name)
{
	static const char *const ours[] = { "host", "content-length", "expect",
					    "via", "forwarded", NULL };
	for (int i = 0; ours[i]; i++)
		if (http_is(name, ours[i]))
			return true;
	return false;
}

/* A part of the answer, or a compressed one, could hide what is looked for. */
static bool is_hiding(struct bytes name)
{
	return http_is(name, "accept-encoding") || http_is(name, "range") ||
	       http_is(name, "if-range");
}

static void add_form(struct buf *out, struct bytes secret, enum form form)
{
	if (form == PERCENT)
		text_percent(out, secret);
	else if (form == JSON)
		text_json(out, secret);
	else
		buf_add(out, secret.p, secret.n);
}

/* The placeholder of the credential that stands first in text, its index in
 * *which; NULL: none. */
static const uint8_t *find_first(const struct swap *s, struct bytes text,
				 unsigned surface, size_t *which)
{
	const uint8_t *first = NULL;
	for (size_t i = 0; i < s->policy->credential_n; i++) {
		const struct policy_credential *c = &s->policy->credential[i];
		if (is_set(c) || !(c->surfaces & surface) || !holds(s, i))
			continue;
		struct bytes word = bytes_str(c->placeholder);
		const uint8_t *at = text_find(text, word);
		if (at && (!first || at < first)) {
			first = at;
			*which = i;
		}
	}
	return first;
}

static void replace(struct buf *out, struct swap *s, struct bytes text,
		    unsigned surface, enum form form)
{
	for (;;) {
		size_t which = 0;
		const uint8_t *at = find_first(s, text, surface, &which);
		if (!at)
			break;
		size_t before = (size_t)(at - text.p);
		size_t n = before + strlen(s->policy->credential[which]
					   .placeholder);
		buf_add(out, text.p, before);
		add_form(out, secrets_get(s->secrets, which), form);
		s->swapped++;
		text.p += n;
		text.n -= n;
	}
	buf_add(out, text.p, text.n);
}

/* "Basic BASE64": user and password are looked into.  -1: it is not that. */
static int replace_basic(struct buf *out, struct swap *s, struct bytes v)
{
	cleanup_buf struct buf plain = { 0 }, swapped = { 0 };
	size_t before = s->swapped;
	if (v.n < 6 || !http_is((struct bytes){ v.p, 6 }, "basic "))
		return -1;
	v.p += 6, v.n -= 6;
	while (v.n && *v.p == ' ')
		v.p++, v.n--;
	if (text_from_base64(&plain, v) < 0)
		return -1;
	replace(&swapped, s, buf_bytes(&plain), POLICY_IN_HEADER, RAW);
	if (s->swapped == before)
		return -1;
	buf_add_str(out, "Basic ");
	text_base64(out, buf_bytes(&swapped));
	out->failed |= plain.failed || swapped.failed;
	return 0;
}

static void put_field(struct buf *out, struct swap *s,
		      const struct http_field *f)
{
	buf_add(out, f->name.p, f->name.n);
	buf_add_str(out, ": ");
	if (!http_is(f->name, "authorization") ||
	    replace_basic(out, s, f->value) < 0)
		replace(out, s, f->value, POLICY_IN_HEADER, RAW);
	buf_add_str(out, "\r\n");
}

static void put_credential(struct buf *out, const struct swap *s, size_t i)
{
	const struct policy_credential *c = &s->policy->credential[i];
	struct bytes secret = secrets_get(s->secrets, i);
	buf_addf(out, "%s: ", header_of(c));
	if (c->scheme == POLICY_BEARER)
		buf_add_str(out, "Bearer ");
	if (c->scheme == POLICY_BASIC) {
		cleanup_buf struct buf both = { 0 };
		buf_addf(&both, "%s:", c->user);
		buf_add(&both, secret.p, secret.n);
		buf_add_str(out, "Basic ");
		text_base64(out, buf_bytes(&both));
		out->failed |= both.failed;
	} else {
		buf_add(out, secret.p, secret.n);
	}
	buf_add_str(out, "\r\n");
}

/* Of several for one header the first in the policy is set. */
static bool set_before(const struct swap *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_set(&s->policy->credential[i]) && holds(s, i) &&
		    http_is(bytes_str(header_of(&s->policy->credential[i])),
			    header_of(&s->policy->credential[n])))
			return true;
	return false;
}

static void put_host(struct buf *out, const struct policy_ask *ask)
{
	bool usual = ask->port == (ask->tls ? 443 : 80);
	buf_add_str(out, "Host: ");
	if (!usual)
		host_put(out, ask->host->name, ask->host->kind, ask->port);
	else
		buf_addf(out, ask->host->kind == HOST_V6 ? "[%s]" : "%s",
			 ask->host->name);
	buf_add_str(out, "\r\n");
}

void swap_head(struct buf *out, struct swap *s, const struct http_head *h)
{
	bool searched = policy_has_credential(s->policy, s->ask->host,
					      s->ask->port);
	buf_add(out, h->method.p, h->method.n);
	buf_add_byte(out, ' ');
	buf_add(out, s->ask->path.p, s->ask->path.n);
	replace(out, s, s->query, POLICY_IN_QUERY, PERCENT);
	buf_add_str(out, " HTTP/1.1\r\n");
	put_host(out, s->ask);
	for (unsigned i = 0; i < h->field_n; i++) {
		const struct http_field *f = &h->field[i];
		if (is_ours(f->name) || http_is_hop(h, f->name) ||
		    is_replaced(s, f->name) ||
		    (searched && is_hiding(f->name)))
			continue;
		put_field(out, s, f);
	}
	if (searched)
		buf_add_str(out, "Accept-Encoding: identity\r\n");
	for (size_t i = 0; i < s->policy->credential_n; i++)
		if (is_set(&s->policy->credential[i]) && holds(s, i) &&
		    !set_before(s, i))
			put_credential(out, s, i);
}

bool swap_wants_body(const struct swap *s, const struct http_head *h)
{
	if (http_request_framing(h) == HTTP_NONE ||
	    (h->content_encoding.n &&
	     !http_is(h->content_encoding, "identity")))
		return false;
	for (size_t i = 0; i < s->policy->credential_n; i++)
		if (s->policy->credential[i].surfaces & POLICY_IN_BODY &&
		    holds(s, i))
			return true;
	return false;
}

static enum form form_of(struct bytes type)
{
	static const char urlencoded[] = "application/x-www-form-urlencoded";
	size_t n = 0;
	while (n < type.n && type.p[n] != ';' && type.p[n] != ' ')
		n++;
	type.n = n;
	if (http_is(type, urlencoded))
		return PERCENT;
	if (http_is(type, "application/json") ||
	    (n > 5 && http_is((struct bytes){ type.p + n - 5, 5 }, "+json")))
		return JSON;
	return RAW;
}

void swap_body(struct buf *out, struct swap *s, const struct http_head *h,
	       struct bytes body)
{
	replace(out, s, body, POLICY_IN_BODY, form_of(h->content_type));
}

/* What may stand in this surface of this request is no stray. */
static bool in_place(const struct swap *s, size_t i, unsigned surface)
{
	return s->policy->credential[i].surfaces & surface && holds(s, i);
}

const struct policy_credential *
swap_stray(const struct swap *s, const struct http_head *h)
{
	for (size_t i = 0; i < s->policy->credential_n; i++) {
		const struct policy_credential *c = &s->policy->credential[i];
		if (is_set(c))
			continue;
		struct bytes word = bytes_str(c->placeholder);
		if (text_find(s->ask->path, word) ||
		    (text_find(s->query, word) &&
		     !in_place(s, i, POLICY_IN_QUERY)))
			return c;
		for (unsigned k = 0; k < h->field_n; k++)
			if (text_find(h->field[k].value, word) &&
			    !in_place(s, i, POLICY_IN_HEADER))
				return c;
	}
	return NULL;
}
