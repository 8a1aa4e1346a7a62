/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/policy/parts.h"

const char *policy_tls_word(enum policy_tls t)
{
	static const char *const words[] = { "intercept", "passthrough",
					     "none" };
	return words[t];
}

const char *policy_scheme_word(enum policy_scheme s)
{
	static const char *const words[] = { "bearer", "basic", "header",
					     "substitute" };
	return words[s];
}

void part_free_words(struct policy_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->word[i]);
	free(w->word);
}

static void free_rule(struct policy_rule *r)
{
	part_free_words(&r->methods);
	part_free_words(&r->paths);
	free(r->reason);
}

static void free_credential(struct policy_credential *c)
{
	free(c->path);
	free(c->header);
	free(c->user);
	free(c->placeholder);
	free(c->env);
	part_free_words(&c->from);
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->rule_n; i++)
		free_rule(&p->rule[i]);
	for (size_t i = 0; i < p->credential_n; i++)
		free_credential(&p->credential[i]);
	for (size_t i = 0; i < p->file_n; i++) {
		free(p->file[i].path);
		free(p->file[i].at);
	}
	free(p->rule);
	free(p->credential);
	free(p->file);
	part_free_words(&p->agent);
	free(p);
}

int part_grow(void *array, size_t n, size_t max, size_t size,
	      const struct tree *v, struct err *e)
{
	void **at = array;
	if (n == max)
		return fields_refuse(v, e, "more than %zu of them", max);
	char *all = realloc(*at, (n + 1) * size);
	if (!all)
		return err_set(e, ERR_MEMORY, "out of memory");
	memset(all + n * size, 0, size);
	*at = all;
	return 0;
}

static int read_mode(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "read", "write", "copy", NULL };
	int i = fields_choose(v, words, e);
	if (i < 0)
		return -1;
	*(enum policy_mode *)at = (enum policy_mode)i;
	return 0;
}

static int read_at(void *at, const struct tree *v, struct err *e)
{
	if (field_text(at, v, e) < 0)
		return -1;
	const char *s = v->text;
	if (s[0] != '/' || !s[1] || strstr(s, "//") || strstr(s, "/.") ||
	    s[strlen(s) - 1] == '/')
		return fields_refuse(v, e, "at must be a path like /work");
	return 0;
}

static const struct field file_fields[] = {
	{ "path", field_text, offsetof(struct policy_file, path) },
	{ "at", read_at, offsetof(struct policy_file, at) },
	{ "mode", read_mode, offsetof(struct policy_file, mode) },
	{ 0 }
};

static int read_files(void *at, const struct tree *v, struct err *e)
{
	struct policy *p = at;
	if (v->type != TREE_LIST)
		return fields_refuse(v, e, "files must be a list");
	for (const struct tree *c = v->child; c; c = c->next) {
		if (part_grow(&p->file, p->file_n, POLICY_WORDS_MAX,
			 sizeof *p->file, c, e) < 0)
			return -1;
		struct policy_file *f = &p->file[p->file_n++];
		f->line = c->line;
		if (fields_read(f, file_fields, c, "a file", e) < 0)
			return -1;
		if (!f->path || !f->at)
			return fields_refuse(c, e, "a file needs path and at");
		for (size_t i = 0; i + 1 < p->file_n; i++)
			if (!strcmp(p->file[i].at, f->at))
				return fields_refuse(c, e, "%s is taken by "
						     "line %u", f->at,
						     p->file[i].line);
	}
	return 0;
}

#define LIMIT(key, read, member) \
	{ key, read, offsetof(struct policy_limits, member) }
static const struct field limit_fields[] = {
	LIMIT("time", field_time_ms, time_ms),
	LIMIT("memory", field_bytes, memory_bytes),
	LIMIT("processes", field_count, processes),
	LIMIT("disk", field_bytes, disk_bytes),
	LIMIT("output", field_bytes, output_bytes),
	LIMIT("connections", field_count, connections),
	LIMIT("requests_per_minute", field_count, requests),
	LIMIT("upload", field_bytes, upload_bytes),
	LIMIT("download", field_bytes, download_bytes),
	{ 0 }
};

static int read_limits(void *at, const struct tree *v, struct err *e)
{
	return fields_read(at, limit_fields, v, "limits", e);
}

static int read_session(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "none", "read", "write", NULL };
	int i = fields_choose(v, words, e);
	if (i < 0)
		return -1;
	*(enum policy_session *)at = (enum policy_session)i;
	return 0;
}

/* It is what happens anyway: a policy may say it, and nothing else. */
static int read_unmatched(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "deny", NULL };
	(void)at;
	return fields_choose(v, words, e) < 0 ? -1 : 0;
}

static const struct field policy_fields[] = {
	{ "allow", part_allow, 0 },
	{ "credentials", part_credentials, 0 },
	{ "files", read_files, 0 },
	{ "limits", read_limits, offsetof(struct policy, limits) },
	{ "agent", field_list, offsetof(struct policy, agent) },
	{ "session", read_session, offsetof(struct policy, session) },
	{ "session_owner", field_bool,
	  offsetof(struct policy, session_owner) },
	{ "unmatched", read_unmatched, 0 },
	{ 0 }
};

static int read_tree(struct policy *p, const struct tree *t, struct err *e)
{
	if (fields_read(p, policy_fields, t, "a policy", e) < 0)
		return -1;
	for (size_t i = 0; i < p->credential_n; i++)
		if (part_join_credential(p, &p->credential[i], e) < 0)
			return -1;
	return 0;
}

struct policy *policy_read(struct bytes text, struct err *e)
{
	struct tree *t = tree_read(text, e);
	struct policy *p = t ? calloc(1, sizeof *p) : NULL;
	if (t && !p)
		err_set(e, ERR_MEMORY, "out of memory");
	if (p && read_tree(p, t, e) < 0) {
		policy_free(p);
		p = NULL;
	}
	tree_free(t);
	return p;
}
