/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/policy/parts.h"

int part_place(void *at, const struct tree *v, struct err *e)
{
	struct policy_place *to = at;
	if (v->type != TREE_TEXT)
		return fields_refuse(v, e, "host must be a name");
	struct bytes s = bytes_str(v->text);
	to->below = s.n > 2 && !memcmp(s.p, "*.", 2);
	if (to->below)
		s.p += 2, s.n -= 2;
	if (s.n && memchr(s.p, '*', s.n))
		return fields_refuse(v, e, "a * is only for all names below "
				     "one: *.example.com");
	if (s.n && memchr(s.p, '/', s.n))
		return fields_refuse(v, e, "a host is a name without scheme "
				     "and path: example.com");
	if (host_parse(&to->host, s) < 0)
		return fields_refuse(v, e, "not a host: %s", v->text);
	if (to->below && (to->host.kind != HOST_NAME ||
			  !strchr(to->host.name, '.')))
		return fields_refuse(v, e, "%s is too much; name a domain",
				     v->text);
	to->local = !to->below && host_is_local_word(&to->host);
	if (to->local && !to->host.port)
		return fields_refuse(v, e, "%s needs its port: %s:8080",
				     v->text, v->text);
	return 0;
}

static int read_tls(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "intercept", "passthrough",
					     "none", NULL };
	int i = fields_choose(v, words, e);
	if (i < 0)
		return -1;
	*(enum policy_tls *)at = (enum policy_tls)i;
	return 0;
}

static int read_methods(void *at, const struct tree *v, struct err *e)
{
	struct policy_words *w = at;
	if (field_words(w, v, e) < 0)
		return -1;
	for (size_t i = 0; i < w->n; i++) {
		const char *s = w->word[i];
		size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");
		if (n == 0 || s[n])
			return fields_refuse(v, e, "a method is in capitals: "
					     "GET");
		if (!strcmp(s, "TRACE") || !strcmp(s, "CONNECT"))
			return fields_refuse(v, e, "%s is never let through",
					     s);
	}
	return 0;
}

int part_check_path(const char *s, const struct tree *v, struct err *e)
{
	const char *star = strchr(s, '*');
	if (s[0] != '/' || (star && star[1]) || strpbrk(s, "?#%\\") ||
	    strstr(s, "/../") || strstr(s, "/./") || strstr(s, "//"))
		return fields_refuse(v, e, "a path is like /v1/me, or /v1/* "
				     "for all below");
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return fields_refuse(v, e, "a path is plain ASCII");
	return 0;
}

static int read_paths(void *at, const struct tree *v, struct err *e)
{
	struct policy_words *w = at;
	if (field_words(w, v, e) < 0)
		return -1;
	for (size_t i = 0; i < w->n; i++)
		if (part_check_path(w->word[i], v, e) < 0)
			return -1;
	return 0;
}

#define RULE(key, read, member) \
	{ key, read, offsetof(struct policy_rule, member) }
static const struct field rule_fields[] = {
	RULE("host", part_place, place),
	RULE("tls", read_tls, tls),
	RULE("method", read_methods, methods),
	RULE("path", read_paths, paths),
	RULE("reason", field_text, reason),
	{ 0 }
};

static bool same_place(const struct policy_place *a,
		       const struct policy_place *b)
{
	return a->below == b->below && a->host.port == b->host.port &&
	       host_same(&a->host, &b->host);
}

static int check_rule(const struct policy *p, const struct policy_rule *r,
		      const struct tree *v, struct err *e)
{
	bool narrow = r->methods.n || r->paths.n;
	if (r->tls == POLICY_PASSTHROUGH && narrow)
		return fields_refuse(v, e, "method and path cannot be seen "
				     "in passthrough");
	for (size_t i = 0; i + 1 < p->rule_n; i++) {
		const struct policy_rule *o = &p->rule[i];
		if (!same_place(&o->place, &r->place))
			continue;
		if (o->tls != r->tls)
			return fields_refuse(v, e, "%s has another tls on "
					     "line %u", r->place.host.name,
					     o->line);
		if (!narrow || !(o->methods.n || o->paths.n))
			return fields_refuse(v, e, "%s is allowed twice, "
					     "first on line %u",
					     r->place.host.name, o->line);
	}
	return 0;
}

static int read_rule(struct policy_rule *r, const struct tree *v,
		     struct err *e)
{
	if (v->type == TREE_TEXT)
		return part_place(&r->place, v, e);
	if (fields_read(r, rule_fields, v, "a rule of allow", e) < 0)
		return -1;
	return r->place.host.name[0] ? 0 :
	       fields_refuse(v, e, "a rule of allow needs a host");
}

int part_allow(void *at, const struct tree *v, struct err *e)
{
	struct policy *p = at;
	if (v->type != TREE_LIST)
		return fields_refuse(v, e, "allow must be a list");
	for (const struct tree *c = v->child; c; c = c->next) {
		if (part_grow(&p->rule, p->rule_n, POLICY_RULES_MAX,
			 sizeof *p->rule, c, e) < 0)
			return -1;
		struct policy_rule *r = &p->rule[p->rule_n++];
		r->line = c->line;
		if (read_rule(r, c, e) < 0)
			return -1;
		if (!r->place.host.port)
			r->place.host.port = r->tls == POLICY_PLAIN ? 80 : 443;
		if (check_rule(p, r, c, e) < 0)
			return -1;
	}
	return 0;
}
