/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "runner/policy/match.h"

bool policy_place_holds(const struct policy_place *p, const struct host *h,
			uint16_t port)
{
	if (p->host.port != port || p->host.kind != h->kind)
		return false;
	if (!p->below)
		return !strcmp(p->host.name, h->name);
	size_t n = strlen(h->name), m = strlen(p->host.name);
	return n > m + 1 && h->name[n - m - 1] == '.' &&
	       !strcmp(h->name + n - m, p->host.name);
}

const struct policy_rule *policy_find_host(const struct policy *p,
					   const struct host *h,
					   uint16_t port)
{
	for (size_t i = 0; i < p->rule_n; i++)
		if (policy_place_holds(&p->rule[i].place, h, port))
			return &p->rule[i];
	return NULL;
}

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

/* "..", also as Tomcat writes it: "..;x". */
static bool is_dots(const uint8_t *p, size_t n)
{
	size_t dots = 0;
	while (dots < n && p[dots] == '.')
		dots++;
	return dots && dots < 3 && (dots == n || p[dots] == ';');
}

static bool has_dot_segment(struct bytes s)
{
	size_t from = 0;
	for (size_t i = 0; i <= s.n; i++) {
		if (i < s.n && s.p[i] != '/' && s.p[i] != '\\')
			continue;
		if (is_dots(s.p + from, i - from))
			return true;
		from = i + 1;
	}
	return false;
}

bool policy_path_is_plain(struct bytes path, struct buf *plain)
{
	for (size_t i = 0; i < path.n; i++) {
		uint8_t c = path.p[i];
		if (c == '%') {
			if (i + 2 >= path.n || hex_value(path.p[i + 1]) < 0 ||
			    hex_value(path.p[i + 2]) < 0)
				return false;
			c = (uint8_t)(hex_value(path.p[i + 1]) << 4 |
				      hex_value(path.p[i + 2]));
			/* encoded twice, or a separator in disguise */
			if (c == '%' || c == '/' || c == '\\' || c < 0x20)
				return false;
			i += 2;
		} else if (c == '\\' || (c == '/' && i &&
					 path.p[i - 1] == '/')) {
			return false;
		}
		buf_add_byte(plain, c);
	}
	/* a dot or slash of more bytes than it needs is no UTF-8 */
	return !buf_failed(plain) && clear_utf8(buf_bytes(plain)) &&
	       !has_dot_segment(buf_bytes(plain));
}

static bool path_holds(const char *pattern, struct bytes path)
{
	size_t n = strlen(pattern);
	if (n && pattern[n - 1] == '*')
		return path.n >= n - 1 && !memcmp(path.p, pattern, n - 1);
	return path.n == n && !memcmp(path.p, pattern, n);
}

/* As it was written and as it is read: a server may take either. */
static bool path_holds_plain(const char *pattern, struct bytes path)
{
	cleanup_buf struct buf plain = { 0 };
	return policy_path_is_plain(path, &plain) &&
	       path_holds(pattern, path) &&
	       path_holds(pattern, buf_bytes(&plain));
}

static bool any_path(const struct policy_words *w, struct bytes path)
{
	for (size_t i = 0; i < w->n; i++)
		if (path_holds_plain(w->word[i], path))
			return true;
	return w->n == 0;
}

static bool any_method(const struct policy_words *w, struct bytes method)
{
	for (size_t i = 0; i < w->n; i++)
		if (bytes_eq(bytes_str(w->word[i]), method))
			return true;
	return w->n == 0;
}

static void say(struct policy_answer *a, const char *why)
{
	snprintf(a->why, sizeof a->why, "%s", why);
}

/* The rule's host and port fit: does the rest? */
static bool rule_holds(const struct policy_rule *r,
		       const struct policy_ask *ask, struct policy_answer *a)
{
	a->rule = r;
	if (r->tls == POLICY_PLAIN && ask->tls)
		say(a, "the policy allows this host without TLS only");
	else if (r->tls != POLICY_PLAIN && !ask->tls)
		say(a, "the policy allows this host with TLS only");
	else if (!any_method(&r->methods, ask->method))
		say(a, "this method is not in the policy for this host");
	else if (!any_path(&r->paths, ask->path))
		say(a, "this path is not in the policy for this host");
	else
		return true;
	return false;
}

void policy_decide(const struct policy *p, const struct policy_ask *ask,
		   struct policy_answer *a)
{
	*a = (struct policy_answer){ 0 };
	say(a, "this host is not in the policy");
	if (bytes_eq(ask->method, bytes_str("TRACE")) ||
	    bytes_eq(ask->method, bytes_str("CONNECT"))) {
		say(a, "this method is never let through");
		return;
	}
	for (size_t i = 0; i < p->rule_n; i++) {
		const struct policy_rule *r = &p->rule[i];
		if (!policy_place_holds(&r->place, ask->host, ask->port)) {
			if (!a->rule && policy_place_holds(&r->place, ask->host,
						r->place.host.port))
				say(a, "this port is not in the policy for "
				    "this host");
			continue;
		}
		if (rule_holds(r, ask, a)) {
			a->allowed = true;
			say(a, r->reason ? r->reason : "");
			return;
		}
	}
}

bool policy_credential_holds(const struct policy_credential *c,
			     const struct policy_ask *ask)
{
	return policy_place_holds(&c->place, ask->host, ask->port) &&
	       (!c->path || path_holds_plain(c->path, ask->path));
}

bool policy_has_credential(const struct policy *p, const struct host *h,
			   uint16_t port)
{
	for (size_t i = 0; i < p->credential_n; i++)
		if (policy_place_holds(&p->credential[i].place, h, port))
			return true;
	return false;
}
