/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runner/policy/fields.h"

int fields_refuse(const struct tree *v, struct err *e, const char *fmt, ...)
{
	char why[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return err_set(e, ERR_POLICY, "line %u: %s", v->line, why);
}

static int refuse_key(const struct field *table, const struct tree *v,
		      const char *what, struct err *e)
{
	cleanup_buf struct buf known = { 0 };
	for (const struct field *f = table; f->key; f++)
		buf_addf(&known, "%s%s", f == table ? "" : " ", f->key);
	const char *all = buf_cstr(&known);
	return fields_refuse(v, e, "%s has no key %s; it has %s", what,
			     v->key, all ? all : "others");
}

int fields_read(void *to, const struct field *table, const struct tree *map,
		const char *what, struct err *e)
{
	if (map->type != TREE_MAP)
		return fields_refuse(map, e, "%s must be keys and values",
				     what);
	for (const struct tree *v = map->child; v; v = v->next) {
		const struct field *f = table;
		while (f->key && strcmp(f->key, v->key) != 0)
			f++;
		if (!f->key)
			return refuse_key(table, v, what, e);
		if (f->read((char *)to + f->offset, v, e) < 0)
			return -1;
	}
	return 0;
}

int field_text(void *at, const struct tree *v, struct err *e)
{
	char **to = at;
	if (v->type != TREE_TEXT || !*v->text)
		return fields_refuse(v, e, "%s must be a text",
				     v->key ? v->key : "it");
	*to = strdup(v->text);
	return *to ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}

static int add_word(struct policy_words *w, const struct tree *v,
		    struct err *e)
{
	if (w->n == POLICY_WORDS_MAX)
		return fields_refuse(v, e, "more than %u of them",
				     POLICY_WORDS_MAX);
	if (v->type != TREE_TEXT)
		return fields_refuse(v, e, "a list of texts");
	char **all = realloc(w->word, (w->n + 1) * sizeof *all);
	if (!all)
		return err_set(e, ERR_MEMORY, "out of memory");
	w->word = all;
	all[w->n] = strdup(v->text);
	return all[w->n] ? (w->n++, 0) :
	       err_set(e, ERR_MEMORY, "out of memory");
}

int field_list(void *at, const struct tree *v, struct err *e)
{
	if (v->type != TREE_LIST || !v->child)
		return fields_refuse(v, e, "%s must be a list",
				     v->key ? v->key : "it");
	for (const struct tree *c = v->child; c; c = c->next)
		if (add_word(at, c, e) < 0)
			return -1;
	return 0;
}

int field_words(void *at, const struct tree *v, struct err *e)
{
	if (v->type == TREE_LIST)
		return field_list(at, v, e);
	if (v->type != TREE_TEXT || !*v->text)
		return fields_refuse(v, e, "%s has no value",
				     v->key ? v->key : "it");
	return add_word(at, v, e);
}

int fields_choose(const struct tree *v, const char *const *words,
		  struct err *e)
{
	cleanup_buf struct buf all = { 0 };
	for (int i = 0; words[i]; i++) {
		if (v->type == TREE_TEXT && !strcmp(v->text, words[i]))
			return i;
		buf_addf(&all, "%s%s", i ? ", " : "", words[i]);
	}
	const char *s = buf_cstr(&all);
	return fields_refuse(v, e, "%s must be one of %s",
			     v->key ? v->key : "it", s ? s : "others");
}

int field_bool(void *at, const struct tree *v, struct err *e)
{
	static const char *const words[] = { "false", "true", NULL };
	int i = fields_choose(v, words, e);
	if (i < 0)
		return -1;
	*(bool *)at = i == 1;
	return 0;
}

/* A whole number and what is behind it. */
static const char *read_number(const char *s, int64_t *n)
{
	int64_t v = 0;
	const char *p = s;
	for (; *p >= '0' && *p <= '9' && p - s < 15; p++)
		v = v * 10 + (*p - '0');
	*n = v;
	if (p == s || v == 0)
		return NULL;
	while (*p == ' ')
		p++;
	return p;
}

struct unit { const char *word; int64_t factor; };

static int read_unit(int64_t *to, const struct tree *v,
		     const struct unit *units, const char *like,
		     struct err *e)
{
	int64_t n = 0;
	const char *rest = v->type == TREE_TEXT ? read_number(v->text, &n) :
						  NULL;
	for (const struct unit *u = units; rest && u->word; u++)
		if (!strcmp(u->word, rest) && n <= INT64_MAX / 4 / u->factor) {
			*to = n * u->factor;
			return 0;
		}
	return fields_refuse(v, e, "%s must be like %s",
			     v->key ? v->key : "it", like);
}

int field_count(void *at, const struct tree *v, struct err *e)
{
	static const struct unit units[] = { { "", 1 }, { 0 } };
	return read_unit(at, v, units, "100, and more than 0", e);
}

int field_bytes(void *at, const struct tree *v, struct err *e)
{
	static const struct unit units[] = {
		{ "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 },
		{ "KB", 1000 }, { "MB", 1000000 }, { "GB", 1000000000 },
		{ "B", 1 }, { 0 }
	};
	return read_unit(at, v, units, "64 KiB, 10 MB or 2 GiB", e);
}

int field_time_ms(void *at, const struct tree *v, struct err *e)
{
	static const struct unit units[] = {
		{ "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { 0 }
	};
	return read_unit(at, v, units, "90s, 30m or 2h", e);
}
