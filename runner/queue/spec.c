/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "runner/queue/spec.h"
#include "runner/runtime/python.h"

struct taker {
	const struct json *doc;
	struct err *e;
	bool bad;
};

static const struct json *member(const struct json *o, const char *key)
{
	for (const struct json *m = o->child; m; m = m->next)
		if (bytes_eq(m->key, bytes_str(key)))
			return m;
	return NULL;
}

static void fail(struct taker *t, const char *key)
{
	if (!t->bad)
		err_set(t->e, ERR_INVALID, "spec.json has no valid %s", key);
	t->bad = true;
}

static int64_t take_int(struct taker *t, const char *key, int64_t min,
			int64_t max)
{
	const struct json *v = member(t->doc, key);
	if (v && v->type == JSON_INT && v->num >= min && v->num <= max)
		return v->num;
	fail(t, key);
	return min;
}

static bool take_bool(struct taker *t, const char *key)
{
	const struct json *v = member(t->doc, key);
	if (v && v->type == JSON_BOOL)
		return v->num;
	fail(t, key);
	return false;
}

static bool is_plain(struct bytes s)
{
	return s.n && !memchr(s.p, 0, s.n) && !memchr(s.p, '/', s.n) &&
	       s.p[0] != '.';
}

static void take_text(struct taker *t, const char *key, char *to, size_t cap)
{
	const struct json *v = member(t->doc, key);
	if (!v || v->type != JSON_STRING || !is_plain(v->str) ||
	    v->str.n >= cap) {
		fail(t, key);
		return;
	}
	memcpy(to, v->str.p, v->str.n);
	to[v->str.n] = 0;
}

/* Lowercase letters, digits and single dashes inside. */
static bool is_package(struct bytes s)
{
	bool edge = true;
	if (!s.n || s.n > 100)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];
		bool dash = c == '-';
		if (!dash && !(c >= 'a' && c <= 'z') &&
		    !(c >= '0' && c <= '9'))
			return false;
		if (dash && edge)
			return false;
		edge = dash;
	}
	return !edge;
}

static void take_names(struct taker *t, const char *key, struct spec_names *to)
{
	const struct json *v = member(t->doc, key);
	if (!v || v->type != JSON_ARRAY || v->count > SPEC_PACKAGES) {
		fail(t, key);
		return;
	}
	to->v = calloc(v->count + 1, sizeof *to->v);
	for (v = v->child; v && to->v; v = v->next) {
		if (v->type != JSON_STRING || !is_package(v->str)) {
			fail(t, key);
			return;
		}
		char *name = strndup((const char *)v->str.p, v->str.n);
		if (!name)
			break;
		to->v[to->n++] = name;
	}
	if (!to->v || v)
		fail(t, key);
}

static void take_all(struct taker *t, struct spec *s)
{
	take_text(t, "entry", s->entry, sizeof s->entry);
	take_text(t, "runtime", s->runtime, sizeof s->runtime);
	if (!t->bad && !python_is_name(s->runtime))
		fail(t, "runtime");
	s->timeout_s = (uint32_t)take_int(t, "timeout_s", 1, 3600);
	s->memory_mb = (uint32_t)take_int(t, "memory_mb", 32, 65536);
	s->network = take_bool(t, "network");
	s->return_out = take_bool(t, "return_out");
	s->out_max_bytes =
		(uint64_t)take_int(t, "out_max_bytes", 0, JSON_INT_MAX);
	s->out_max_files =
		(uint64_t)take_int(t, "out_max_files", 0, 1000000);
	take_names(t, "requirements", &s->requirements);
	take_names(t, "packages", &s->packages);
}

int spec_parse(struct spec *s, struct bytes text, struct err *e)
{
	*s = (struct spec){ 0 };
	if (text.n && text.p[text.n - 1] == '\n')
		text.n--;
	struct json *doc = json_parse(text, e);
	if (!doc)
		return err_prefix(e, "spec.json");
	struct taker t = { .doc = doc, .e = e };
	if (doc->type == JSON_OBJECT)
		take_all(&t, s);
	else
		fail(&t, "object");
	json_free(doc);
	return t.bad ? -1 : 0;
}

static void free_names(struct spec_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct spec_names){ 0 };
}

void spec_free(struct spec *s)
{
	free_names(&s->requirements);
	free_names(&s->packages);
}
