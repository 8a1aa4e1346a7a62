/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/policy/parts.h"

static const struct tree *find(const struct tree *map, const char *key)
{
	const struct tree *v = map->child;
	while (v && strcmp(v->key, key) != 0)
		v = v->next;
	return v;
}

static int read_path(void *at, const struct tree *v, struct err *e)
{
	return field_text(at, v, e) < 0 ? -1 :
	       part_check_path(*(char **)at, v, e);
}

static int read_scheme(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "bearer", "basic", "header",
					     "substitute", NULL };
	int i = fields_choose(v, words, e);
	if (i < 0)
		return -1;
	*(enum policy_scheme *)at = (enum policy_scheme)i;
	return 0;
}

static int read_surfaces(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "header", "query", "body", NULL };
	unsigned *to = at;
	if (v->type == TREE_TEXT) {
		int i = fields_choose(v, words, e);
		*to |= i < 0 ? 0 : 1u << i;
		return i < 0 ? -1 : 0;
	}
	for (const struct tree *c = v->child; c; c = c->next) {
		int i = fields_choose(c, words, e);
		if (i < 0)
			return -1;
		*to |= 1u << i;
	}
	return *to ? 0 : fields_refuse(v, e, "surfaces has no value");
}

static bool is_token(const char *s, const char *also)
{
	size_t n = 0;
	for (; s[n]; n++)
		if (!((s[n] >= 'a' && s[n] <= 'z') ||
		      (s[n] >= 'A' && s[n] <= 'Z') ||
		      (s[n] >= '0' && s[n] <= '9') || strchr(also, s[n])))
			return false;
	return n > 0 && n <= 256;
}

static int read_header(void *at, const struct tree *v, struct err *e)
{
	static const char *const ours[] = {
		"host", "content-length", "transfer-encoding", "connection",
		"upgrade", "te", "trailer", "expect", "accept-encoding",
		"range", NULL
	};
	if (field_text(at, v, e) < 0)
		return -1;
	if (!is_token(v->text, "-_"))
		return fields_refuse(v, e, "not a header's name");
	for (int i = 0; ours[i]; i++)
		if (!strcasecmp(ours[i], v->text))
			return fields_refuse(v, e, "%s carries no credential",
					     v->text);
	return 0;
}

static int read_placeholder(void *at, const struct tree *v, struct err *e)
{
	if (field_text(at, v, e) < 0)
		return -1;
	if (!is_token(v->text, "-_.") || strlen(v->text) < 8)
		return fields_refuse(v, e, "a placeholder is 8 or more "
				     "letters, digits, - _ and .");
	return 0;
}

static int read_env(void *at, const struct tree *v, struct err *e)
{
	if (field_text(at, v, e) < 0)
		return -1;
	return is_token(v->text, "_") && strchr("0123456789", v->text[0]) == 0 ?
	       0 : fields_refuse(v, e, "not a variable's name");
}

static int read_user(void *at, const struct tree *v, struct err *e)
{
	if (field_text(at, v, e) < 0)
		return -1;
	return strchr(v->text, ':') ?
	       fields_refuse(v, e, "a user has no colon") : 0;
}

/* "cmd:pass show api" is split at its spaces; in a list each word stands by
 * itself.  There is no shell and there are no quotes. */
static int split_command(struct policy_words *w, const struct tree *v,
			 struct err *e)
{
	cleanup_free char *all = strdup(w->word[0]);
	if (!all)
		return err_set(e, ERR_MEMORY, "out of memory");
	part_free_words(w);
	*w = (struct policy_words){ 0 };
	char *save = NULL;
	for (char *s = strtok_r(all, " ", &save); s;
	     s = strtok_r(NULL, " ", &save)) {
		struct tree one = { .type = TREE_TEXT, .line = v->line,
				    .text = s };
		struct tree list = { .type = TREE_LIST, .line = v->line,
				     .child = &one };
		if (field_list(w, &list, e) < 0)
			return -1;
	}
	return 0;
}

static int set_source(struct policy_credential *c, const struct tree *v,
		      struct err *e)
{
	static const char *const kinds[] = { "env:", "file:", "cmd:" };
	struct policy_words *w = &c->from;
	int kind = 0;
	while (kind < 3 && strncmp(w->word[0], kinds[kind],
				   strlen(kinds[kind])) != 0)
		kind++;
	if (kind == 3)
		return fields_refuse(v, e, "from must be env:NAME, file:PATH "
				     "or cmd:PROGRAM");
	c->source = (enum policy_source)kind;
	size_t skip = strlen(kinds[kind]);
	memmove(w->word[0], w->word[0] + skip, strlen(w->word[0] + skip) + 1);
	if (kind == POLICY_CMD && v->type == TREE_TEXT &&
	    split_command(w, v, e) < 0)
		return -1;
	if (w->n == 0 || !*w->word[0] || (w->n > 1 && kind != POLICY_CMD))
		return fields_refuse(v, e, "from names nothing");
	if (kind == POLICY_ENV && !is_token(w->word[0], "_"))
		return fields_refuse(v, e, "not a variable's name: %s",
				     w->word[0]);
	return 0;
}

static int read_from(void *at, const struct tree *v, struct err *e)
{
	struct policy_credential *c = at;
	return field_words(&c->from, v, e) < 0 ? -1 : set_source(c, v, e);
}

#define CRED(key, read, member) \
	{ key, read, offsetof(struct policy_credential, member) }
static const struct field credential_fields[] = {
	CRED("host", part_place, place),
	CRED("scheme", read_scheme, scheme),
	{ "from", read_from, 0 },
	CRED("path", read_path, path),
	CRED("header", read_header, header),
	CRED("user", read_user, user),
	CRED("placeholder", read_placeholder, placeholder),
	CRED("surfaces", read_surfaces, surfaces),
	CRED("env", read_env, env),
	CRED("plaintext", field_bool, plaintext),
	{ 0 }
};

/* What each scheme needs, and what only one of them has. */
static int check_scheme(struct policy_credential *c, const struct tree *v,
			struct err *e)
{
	const struct {
		const char *key;
		bool there;
		enum policy_scheme scheme;
		bool needed;
	} rows[] = {
		{ "header", c->header, POLICY_HEADER, true },
		{ "user", c->user, POLICY_BASIC, true },
		{ "placeholder", c->placeholder, POLICY_SUBSTITUTE, true },
		{ "surfaces", c->surfaces, POLICY_SUBSTITUTE, false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].there && c->scheme != rows[i].scheme)
			return fields_refuse(v, e, "%s is for the scheme %s",
					     rows[i].key, policy_scheme_word(
					     rows[i].scheme));
		if (!rows[i].there && rows[i].needed &&
		    c->scheme == rows[i].scheme)
			return fields_refuse(v, e, "the scheme %s needs a %s",
					     policy_scheme_word(c->scheme),
					     rows[i].key);
	}
	if (c->scheme == POLICY_SUBSTITUTE && !c->surfaces)
		c->surfaces = POLICY_IN_HEADER;
	return 0;
}

static int read_credential(struct policy *p, struct policy_credential *c,
			   const struct tree *v, struct err *e)
{
	static const char *const needed[] = { "host", "scheme", "from", NULL };
	if (fields_read(c, credential_fields, v, "a credential", e) < 0)
		return -1;
	for (int i = 0; needed[i]; i++)
		if (!find(v, needed[i]))
			return fields_refuse(v, e, "a credential needs %s",
					     needed[i]);
	for (size_t i = 0; c->placeholder && i + 1 < p->credential_n; i++)
		if (p->credential[i].placeholder &&
		    (strstr(p->credential[i].placeholder, c->placeholder) ||
		     strstr(c->placeholder, p->credential[i].placeholder)))
			return fields_refuse(v, e, "its placeholder is the "
					     "one of line %u, or a part of it",
					     p->credential[i].line);
	return check_scheme(c, v, e);
}

int part_credentials(void *at, const struct tree *v, struct err *e)
{
	struct policy *p = at;
	if (v->type != TREE_LIST)
		return fields_refuse(v, e, "credentials must be a list");
	for (const struct tree *c = v->child; c; c = c->next) {
		if (part_grow(&p->credential, p->credential_n,
			 POLICY_CREDENTIALS_MAX, sizeof *p->credential, c,
			 e) < 0)
			return -1;
		struct policy_credential *to = &p->credential[p->credential_n++];
		to->line = c->line;
		if (read_credential(p, to, c, e) < 0)
			return -1;
	}
	return 0;
}

/* Whether all that c means is below or at r. */
static bool covers(const struct policy_place *r, const struct policy_place *c)
{
	if (c->host.port && c->host.port != r->host.port)
		return false;
	if (host_same(&r->host, &c->host))
		return r->below == c->below;
	return r->below && policy_place_holds(r, &c->host, r->host.port);
}

/* A credential belongs to hosts that are allowed, and to each of them in the
 * same way; with no port of its own it takes the port of its rule. */
int part_join_credential(const struct policy *p, struct policy_credential *c,
			 struct err *e)
{
	const struct tree at = { .line = c->line };
	const char *name = c->place.host.name;
	bool found = false;
	for (size_t i = 0; i < p->rule_n; i++) {
		const struct policy_rule *r = &p->rule[i];
		if (!covers(&r->place, &c->place))
			continue;
		found = true;
		c->place.host.port = r->place.host.port;
		if (r->tls == POLICY_PASSTHROUGH)
			return fields_refuse(&at, e, "%s is passthrough by "
					     "line %u: nothing can be put in",
					     name, r->line);
		if (r->tls == POLICY_PLAIN && !c->plaintext)
			return fields_refuse(&at, e, "%s has no TLS by line "
					     "%u: say plaintext: true if the "
					     "credential may be readable",
					     name, r->line);
	}
	return found ? 0 :
	       fields_refuse(&at, e, "%s%s%s is not a host of allow",
			     c->place.below ? "*." : "", name,
			     c->place.host.port ? " with this port" : "");
}
