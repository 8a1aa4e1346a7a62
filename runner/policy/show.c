/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "runner/policy/show.h"

void show_place(struct buf *out, const struct policy_place *p)
{
	if (p->below)
		buf_add_str(out, "*.");
	host_put(out, p->host.name, p->host.kind, p->host.port);
}

static void put_words(struct buf *out, const struct policy_words *w,
		      const char *none)
{
	for (size_t i = 0; i < w->n; i++)
		buf_addf(out, " %s", w->word[i]);
	if (w->n == 0 && *none)
		buf_addf(out, " %s", none);
}

void show_rule_line(struct buf *out, const struct policy_rule *r)
{
	show_place(out, &r->place);
	if (r->tls == POLICY_PASSTHROUGH) {
		buf_add_str(out, " anything (passthrough)");
		return;
	}
	put_words(out, &r->methods, "any method,");
	put_words(out, &r->paths, "any path");
	if (r->tls == POLICY_PLAIN)
		buf_add_str(out, " (http://)");
}

void show_source(struct buf *out, const struct policy_credential *c)
{
	static const char *const kinds[] = { "env", "file", "cmd" };
	buf_addf(out, "%s:%s", kinds[c->source], c->from.word[0]);
}

static void put_surfaces(struct buf *out, unsigned surfaces)
{
	static const char *const words[] = { "header", "query", "body" };
	for (int i = 0; i < 3; i++)
		if (surfaces & 1u << i)
			buf_addf(out, " %s", words[i]);
}

static void put_credential(struct buf *out, const struct policy_credential *c)
{
	show_place(out, &c->place);
	buf_addf(out, " %s %s", c->path ? c->path : "any path",
		 policy_scheme_word(c->scheme));
	if (c->header)
		buf_addf(out, " %s", c->header);
	if (c->user)
		buf_addf(out, " as %s", c->user);
	if (c->placeholder) {
		buf_addf(out, " for %s in", c->placeholder);
		put_surfaces(out, c->surfaces);
	}
	buf_add_str(out, " from ");
	show_source(out, c);
	if (c->env)
		buf_addf(out, ", %s in the box", c->env);
	if (c->plaintext)
		buf_add_str(out, ", also without TLS");
}

static void put_limits(struct buf *out, const struct policy_limits *l)
{
	const struct { const char *what; int64_t n; const char *unit; } rows[] = {
		{ "time", l->time_ms / 1000, "s" },
		{ "memory", l->memory_bytes, "bytes" },
		{ "processes", l->processes, "" },
		{ "disk", l->disk_bytes, "bytes" },
		{ "output", l->output_bytes, "bytes" },
		{ "connections", l->connections, "at once" },
		{ "requests", l->requests, "a minute" },
		{ "upload", l->upload_bytes, "bytes" },
		{ "download", l->download_bytes, "bytes" },
	};
	bool first = true;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].n == 0)
			continue;
		buf_addf(out, "%s  %s: %lld %s\n", first ? "\nlimits\n" : "",
			 rows[i].what, (long long)rows[i].n, rows[i].unit);
		first = false;
	}
}

void show_rules(struct buf *out, const struct policy *p)
{
	static const char *const modes[] = { "read", "write", "copy" };
	static const char *const sessions[] = { "none", "read", "write" };
	buf_add_str(out, p->rule_n ? "allow, in order\n" : "allow nothing\n");
	for (size_t i = 0; i < p->rule_n; i++) {
		const struct policy_rule *r = &p->rule[i];
		buf_addf(out, "  %zu. ", i + 1);
		show_rule_line(out, r);
		buf_addf(out, "%s%s\n", r->reason ? ": " : "",
			 r->reason ? r->reason : "");
	}
	buf_add_str(out, "all else is denied\n");
	for (size_t i = 0; i < p->credential_n; i++) {
		buf_addf(out, "%s  %zu. ", i ? "" : "\ncredentials\n", i + 1);
		put_credential(out, &p->credential[i]);
		buf_add_byte(out, '\n');
	}
	for (size_t i = 0; i < p->file_n; i++)
		buf_addf(out, "%s  %s at %s: %s\n", i ? "" : "\nfiles\n",
			 p->file[i].path, p->file[i].at,
			 modes[p->file[i].mode]);
	put_limits(out, &p->limits);
	if (p->session != POLICY_NONE)
		buf_addf(out, "\nsession: %s%s\n", sessions[p->session],
			 p->session_owner ? ", an owner's as well" : "");
	if (p->agent.n) {
		buf_add_str(out, "\nagent:");
		put_words(out, &p->agent, "");
		buf_add_byte(out, '\n');
	}
}

/* --- JSON: members in byte order --- */

static void json_text(struct buf *out, const char *key, const char *s)
{
	json_put_key(out, key);
	if (s)
		json_put_string(out, bytes_str(s));
	else
		buf_add_str(out, "null");
}

static void json_words(struct buf *out, const char *key,
		       const struct policy_words *w)
{
	json_put_key(out, key);
	buf_add_byte(out, '[');
	for (size_t i = 0; i < w->n; i++) {
		json_put_sep(out);
		json_put_string(out, bytes_str(w->word[i]));
	}
	buf_add_byte(out, ']');
}

static void json_place(struct buf *out, const struct policy_place *p)
{
	cleanup_buf struct buf s = { 0 };
	show_place(&s, p);
	json_text(out, "host", buf_cstr(&s));
}

static void json_rule(struct buf *out, const struct policy_rule *r)
{
	json_put_sep(out);
	buf_add_byte(out, '{');
	json_place(out, &r->place);
	json_put_key(out, "line");
	json_put_int(out, r->line);
	json_words(out, "methods", &r->methods);
	json_words(out, "paths", &r->paths);
	json_text(out, "reason", r->reason);
	json_text(out, "tls", policy_tls_word(r->tls));
	buf_add_byte(out, '}');
}

static void json_credential(struct buf *out, const struct policy_credential *c)
{
	cleanup_buf struct buf from = { 0 };
	show_source(&from, c);
	json_put_sep(out);
	buf_add_byte(out, '{');
	json_text(out, "env", c->env);
	json_text(out, "from", buf_cstr(&from));
	json_text(out, "header", c->header);
	json_place(out, &c->place);
	json_put_key(out, "line");
	json_put_int(out, c->line);
	json_text(out, "path", c->path);
	json_text(out, "placeholder", c->placeholder);
	json_put_key(out, "plaintext");
	buf_add_str(out, c->plaintext ? "true" : "false");
	json_text(out, "scheme", policy_scheme_word(c->scheme));
	json_text(out, "user", c->user);
	buf_add_byte(out, '}');
}

/* The lines of a text as an array. */
static void json_lines(struct buf *out, const char *key, const struct buf *text)
{
	json_put_key(out, key);
	buf_add_byte(out, '[');
	for (size_t at = 0; at < text->len;) {
		const uint8_t *lf = memchr(text->data + at, '\n',
					   text->len - at);
		size_t end = lf ? (size_t)(lf - text->data) : text->len;
		json_put_sep(out);
		json_put_string(out, (struct bytes){ text->data + at,
						     end - at });
		at = end + 1;
	}
	buf_add_byte(out, ']');
}

void show_json(struct buf *out, const struct policy *p)
{
	cleanup_buf struct buf missing = { 0 }, risks = { 0 };
	show_missing(&missing, p);
	show_risks(&risks, p);
	buf_add_byte(out, '{');
	json_put_key(out, "allow");
	buf_add_byte(out, '[');
	for (size_t i = 0; i < p->rule_n; i++)
		json_rule(out, &p->rule[i]);
	buf_add_byte(out, ']');
	json_put_key(out, "credentials");
	buf_add_byte(out, '[');
	for (size_t i = 0; i < p->credential_n; i++)
		json_credential(out, &p->credential[i]);
	buf_add_byte(out, ']');
	json_lines(out, "missing", &missing);
	json_lines(out, "risks", &risks);
	json_text(out, "unmatched", "deny");
	buf_add_byte(out, '}');
}
