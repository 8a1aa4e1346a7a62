/* SPDX-License-Identifier: MIT */
#include "relay/flat.h"

/* What is left to read; `bad` stays once it is set. */
struct reader {
	struct bytes left;
	bool bad;
};

static void skip_space(struct reader *r)
{
	while (r->left.n && (*r->left.p == ' ' || *r->left.p == '\t' ||
			     *r->left.p == '\r' || *r->left.p == '\n')) {
		r->left.p++;
		r->left.n--;
	}
}

/* Whether c is next; then it is taken. */
static bool next_is(struct reader *r, char c)
{
	skip_space(r);
	if (!r->left.n || *r->left.p != (uint8_t)c)
		return false;
	r->left.p++;
	r->left.n--;
	return true;
}

static void need(struct reader *r, char c)
{
	if (!next_is(r, c))
		r->bad = true;
}

static struct bytes take_string(struct reader *r)
{
	need(r, '"');
	struct bytes s = { r->left.p, 0 };
	while (!r->bad && r->left.n && *r->left.p != '"') {
		uint8_t c = *r->left.p++;
		r->left.n--;
		s.n++;
		if (c < 0x20 || c >= 0x7f || c == '\\')
			r->bad = true;
	}
	if (!r->bad)
		need(r, '"');
	return s;
}

static void take_list(struct reader *r, struct flat_field *f)
{
	need(r, '[');
	if (next_is(r, ']'))
		return;
	do {
		if (f->list_n == FLAT_LIST) {
			r->bad = true;
			return;
		}
		f->list[f->list_n++] = take_string(r);
	} while (!r->bad && next_is(r, ','));
	need(r, ']');
}

static void take_null(struct reader *r)
{
	for (const char *c = "null"; *c && !r->bad; c++) {
		if (!r->left.n || *r->left.p != (uint8_t)*c) {
			r->bad = true;
			return;
		}
		r->left.p++;
		r->left.n--;
	}
}

static void take_value(struct reader *r, struct flat_field *f)
{
	skip_space(r);
	uint8_t c = r->left.n ? *r->left.p : 0;
	f->type = c == '"' ? FLAT_STRING : c == '[' ? FLAT_STRINGS : FLAT_NULL;
	if (f->type == FLAT_STRING)
		f->str = take_string(r);
	else if (f->type == FLAT_STRINGS)
		take_list(r, f);
	else
		take_null(r);
}

static void take_field(struct reader *r, struct flat *f)
{
	struct flat_field *to = &f->field[f->n];
	if (f->n == FLAT_FIELDS) {
		r->bad = true;
		return;
	}
	*to = (struct flat_field){ .name = take_string(r) };
	for (size_t i = 0; i < f->n; i++)
		if (bytes_eq(f->field[i].name, to->name))
			r->bad = true;
	need(r, ':');
	if (!r->bad)
		take_value(r, to);
	f->n++;
}

int flat_parse(struct flat *f, struct bytes in, const char *what,
	       struct err *e)
{
	struct reader r = { .left = in };
	f->n = 0;
	need(&r, '{');
	if (!r.bad && !next_is(&r, '}')) {
		do
			take_field(&r, f);
		while (!r.bad && next_is(&r, ','));
		need(&r, '}');
	}
	skip_space(&r);
	if (r.bad || r.left.n)
		return err_set(e, ERR_INVALID, "%s is malformed", what);
	return 0;
}

const struct flat_field *flat_get(const struct flat *f, const char *name,
				  enum flat_type type)
{
	for (size_t i = 0; i < f->n; i++)
		if (bytes_eq(f->field[i].name, bytes_str(name)) &&
		    f->field[i].type == type)
			return &f->field[i];
	return NULL;
}
