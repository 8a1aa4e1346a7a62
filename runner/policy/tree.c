/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <yaml.h>

#include "core/clear.h"
#include "runner/policy/tree.h"

struct reading {
	yaml_parser_t *parser;
	struct err *e;
	unsigned nodes;
};

static int refuse(struct err *e, size_t line, const char *why)
{
	return err_set(e, ERR_POLICY, "line %zu: %s", line, why);
}

void tree_free(struct tree *t)
{
	while (t) {
		struct tree *next = t->next;
		tree_free(t->child);
		free(t->key);
		free(t->text);
		free(t);
		t = next;
	}
}

/* What libyaml would take, or say in words that lead nowhere. */
static int check_bytes(struct bytes in, struct err *e)
{
	size_t line = 1, at = 0;
	bool indent = true;
	if (in.n > TREE_BYTES_MAX)
		return refuse(e, 1, "the policy is larger than 256 KiB");
	while (at < in.n) {
		uint32_t c = clear_next(in, &at);
		if (c == UINT32_MAX)
			return refuse(e, line, "not UTF-8");
		if (c == '\t')
			return refuse(e, line, indent ?
				      "a tab; indent with spaces" :
				      "a tab; write spaces");
		if ((c < 0x20 && c != '\n' && c != '\r') ||
		    (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
		    c == 0xfeff)
			return refuse(e, line, "a control character");
		if (c == '\n') {
			line++;
			indent = true;
		} else if (c != ' ') {
			indent = false;
		}
	}
	return 0;
}

static int next_event(struct reading *r, yaml_event_t *ev)
{
	if (yaml_parser_parse(r->parser, ev))
		return 0;
	const yaml_parser_t *p = r->parser;
	return err_set(r->e, ERR_POLICY, "line %zu: not YAML: %s",
		       p->problem_mark.line + 1,
		       p->problem ? p->problem : "out of memory");
}

static struct tree *new_node(struct reading *r, const yaml_event_t *ev,
			     enum tree_type type)
{
	if (++r->nodes > TREE_NODES_MAX) {
		refuse(r->e, ev->start_mark.line + 1, "too many values");
		return NULL;
	}
	struct tree *t = calloc(1, sizeof *t);
	if (!t) {
		err_set(r->e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	t->type = type;
	t->line = (unsigned)ev->start_mark.line + 1;
	return t;
}

static char *copy_text(struct reading *r, const yaml_event_t *ev)
{
	const char *s = (const char *)ev->data.scalar.value;
	size_t n = ev->data.scalar.length;
	if (ev->data.scalar.anchor || ev->data.scalar.tag) {
		refuse(r->e, ev->start_mark.line + 1,
		       "no anchors, aliases or tags in a policy");
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)s[i] < 0x20 || s[i] == 0x7f) {
			refuse(r->e, ev->start_mark.line + 1,
			       "a text is one line without control characters");
			return NULL;
		}
	char *copy = strdup(s);
	if (!copy)
		err_set(r->e, ERR_MEMORY, "out of memory");
	return copy;
}

static struct tree *read_node(struct reading *r, const yaml_event_t *ev,
			      unsigned depth);

static int check_key(struct reading *r, const struct tree *map,
		     const char *key, size_t line)
{
	if (!*key)
		return refuse(r->e, line, "an empty key");
	for (const struct tree *c = map->child; c; c = c->next)
		if (!strcmp(c->key, key))
			return err_set(r->e, ERR_POLICY,
				       "line %zu: %s is given twice, first on "
				       "line %u", line, key, c->line);
	return 0;
}

/* One member: its key in *key, and its value's event in ev. */
static int read_key(struct reading *r, const struct tree *map,
		    yaml_event_t *ev, char **key)
{
	size_t line = ev->start_mark.line + 1;
	if (ev->type != YAML_SCALAR_EVENT)
		return refuse(r->e, line, "a key must be a plain word");
	*key = copy_text(r, ev);
	if (!*key || check_key(r, map, *key, line) < 0)
		return -1;
	yaml_event_delete(ev);
	memset(ev, 0, sizeof *ev);
	return next_event(r, ev);
}

static int read_children(struct reading *r, struct tree *t, unsigned depth)
{
	yaml_event_type_t end = t->type == TREE_MAP ? YAML_MAPPING_END_EVENT :
						      YAML_SEQUENCE_END_EVENT;
	struct tree **last = &t->child;
	if (depth >= TREE_DEPTH_MAX)
		return refuse(r->e, t->line, "nested too deep");
	for (;;) {
		yaml_event_t ev = { 0 };
		cleanup_free char *key = NULL;
		if (next_event(r, &ev) < 0)
			return -1;
		if (ev.type == end) {
			yaml_event_delete(&ev);
			return 0;
		}
		unsigned line = (unsigned)ev.start_mark.line + 1;
		struct tree *c = NULL;
		if (t->type != TREE_MAP || read_key(r, t, &ev, &key) == 0)
			c = read_node(r, &ev, depth + 1);
		yaml_event_delete(&ev);
		if (!c)
			return -1;
		if (t->type == TREE_MAP)
			c->line = line;
		c->key = key;
		key = NULL;
		*last = c;
		last = &c->next;
		t->count++;
	}
}

static struct tree *read_node(struct reading *r, const yaml_event_t *ev,
			      unsigned depth)
{
	bool map = ev->type == YAML_MAPPING_START_EVENT;
	struct tree *t = NULL;
	if (ev->type == YAML_SCALAR_EVENT) {
		t = new_node(r, ev, TREE_TEXT);
		if (t)
			t->text = copy_text(r, ev);
		if (t && t->text)
			return t;
	} else if ((map && !ev->data.mapping_start.anchor &&
		    !ev->data.mapping_start.tag) ||
		   (ev->type == YAML_SEQUENCE_START_EVENT &&
		    !ev->data.sequence_start.anchor &&
		    !ev->data.sequence_start.tag)) {
		t = new_node(r, ev, map ? TREE_MAP : TREE_LIST);
		if (t && read_children(r, t, depth) == 0)
			return t;
	} else {
		refuse(r->e, ev->start_mark.line + 1,
		       "no anchors, aliases or tags in a policy");
	}
	tree_free(t);
	return NULL;
}

/* The event after which the document's content comes. */
static int open_document(struct reading *r, yaml_event_t *ev)
{
	static const yaml_event_type_t want[] = {
		YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT
	};
	for (int i = 0; i < 2; i++) {
		if (next_event(r, ev) < 0)
			return -1;
		yaml_event_type_t got = ev->type;
		size_t line = ev->start_mark.line + 1;
		yaml_event_delete(ev);
		memset(ev, 0, sizeof *ev);
		if (got != want[i])
			return refuse(r->e, line, "the policy is empty");
	}
	return next_event(r, ev);
}

static int close_document(struct reading *r)
{
	static const yaml_event_type_t want[] = {
		YAML_DOCUMENT_END_EVENT, YAML_STREAM_END_EVENT
	};
	for (int i = 0; i < 2; i++) {
		yaml_event_t ev = { 0 };
		if (next_event(r, &ev) < 0)
			return -1;
		yaml_event_type_t got = ev.type;
		size_t line = ev.start_mark.line + 1;
		yaml_event_delete(&ev);
		if (got != want[i])
			return refuse(r->e, line, "a second document");
	}
	return 0;
}

static struct tree *read_document(struct reading *r)
{
	yaml_event_t ev = { 0 };
	struct tree *t = NULL;
	if (open_document(r, &ev) == 0)
		t = read_node(r, &ev, 0);
	yaml_event_delete(&ev);
	if (t && close_document(r) < 0) {
		tree_free(t);
		return NULL;
	}
	return t;
}

struct tree *tree_read(struct bytes in, struct err *e)
{
	yaml_parser_t parser;
	struct reading r = { &parser, e, 0 };
	if (check_bytes(in, e) < 0)
		return NULL;
	if (!yaml_parser_initialize(&parser)) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, in.p ? in.p :
				     (const unsigned char *)"", in.n);
	struct tree *t = read_document(&r);
	yaml_parser_delete(&parser);
	return t;
}
