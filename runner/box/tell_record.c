/* SPDX-License-Identifier: MIT */
#include "runner/box/tell_record.h"

#include <stdio.h>

#include "core/clear.h"

#define LONG_BYTES 32768u

static void put(struct buf *b, const char *key, struct bytes s)
{
	cleanup_buf struct buf cut = { 0 };
	if (s.n == 0)
		return;
	if (s.n > LONG_BYTES) {
		size_t n = clear_cut(s, LONG_BYTES);
		buf_add(&cut, s.p, n);
		buf_addf(&cut, " [%zu bytes more]", s.n - n);
		s = buf_bytes(&cut);
	}
	json_put_key_string(b, key, s);
	b->failed |= cut.failed;
}

static void add(struct account *a, struct buf *b)
{
	buf_add_byte(b, '}');
	if (!buf_failed(b))
		account_part(a, PART_TOOL, buf_bytes(b));
}

void tell_call(struct account *a, const struct acp_call *c)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_byte(&b, '{');
	put(&b, "call", c->id);
	put(&b, "content", c->content);
	put(&b, "input", c->is_new ? c->input : (struct bytes){ 0 });
	put(&b, "kind", c->kind);
	put(&b, "name", c->name);
	json_put_key_bool(&b, "new", c->is_new);
	put(&b, "output", c->output);
	put(&b, "places", c->places);
	put(&b, "status", c->status);
	put(&b, "title", c->title);
	add(a, &b);
}

void tell_served(struct account *a, struct bytes method, struct bytes about)
{
	cleanup_buf struct buf b = { 0 }, title = { 0 };
	buf_add_byte(&b, '{');
	put(&b, "about", about);
	put(&b, "request", method);
	buf_add(&title, method.p, method.n);
	buf_add_byte(&title, ' ');
	buf_add(&title, about.p, about.n);
	put(&b, "title", buf_bytes(&title));
	add(a, &b);
}

void tell_question(struct account *a, unsigned tag, const struct acp_call *c,
		   unsigned offers)
{
	cleanup_buf struct buf b = { 0 }, words = { 0 }, title = { 0 };
	for (int i = 0; i < ACP_CHOICES; i++)
		if (offers & 1u << i)
			buf_addf(&words, "%s%s", words.len ? " " : "",
				 acp_choice_word((enum acp_choice)i));
	buf_addf(&title, "may it? ");
	buf_add(&title, c->title.p, c->title.n);
	buf_add_byte(&b, '{');
	json_put_key_int(&b, "ask", tag);
	put(&b, "call", c->id);
	put(&b, "input", c->input);
	put(&b, "kind", c->kind);
	put(&b, "offers", buf_bytes(&words));
	put(&b, "title", buf_bytes(&title));
	add(a, &b);
}

void tell_answer(struct account *a, unsigned tag, const char *answer,
		 const char *by)
{
	cleanup_buf struct buf b = { 0 };
	char title[160];
	snprintf(title, sizeof title, "%s, by %s", answer, by);
	buf_add_byte(&b, '{');
	put(&b, "answer", bytes_str(answer));
	json_put_key_int(&b, "ask", tag);
	put(&b, "by", bytes_str(by));
	put(&b, "title", bytes_str(title));
	add(a, &b);
}
