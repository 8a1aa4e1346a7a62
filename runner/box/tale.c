/* SPDX-License-Identifier: MIT */
#include "runner/box/tale.h"

#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "core/json.h"

#define HASH_CHARS 65		/* and a space */
#define SHORT_BYTES 200

enum shade { DIM, BOLD, RED, YELLOW, NORMAL };

void tale_begin(struct tale *t)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
	bool err = isatty(STDERR_FILENO);
	*t = (struct tale){ .together = err && isatty(STDOUT_FILENO) };
	t->colour = err && term && strcmp(term, "dumb") != 0 &&
		    !(no && *no);
}

static const struct json *member(const struct json *data, const char *key)
{
	for (const struct json *v = data->child; v; v = v->next)
		if (bytes_eq(v->key, bytes_str(key)))
			return v;
	return NULL;
}

static struct bytes text_of(const struct json *data, const char *key)
{
	const struct json *v = member(data, key);
	return v && v->type == JSON_STRING ? v->str : bytes_str("");
}

/* --- printing --- */

static void end_line(struct tale *t)
{
	if (t->in_line)
		fputc('\n', t->together ? stderr : stdout);
	t->in_line = false;
}

/* One line on standard error. */
static void note(struct tale *t, enum shade shade, struct buf *b)
{
	static const char *const codes[] = { "\033[2m", "\033[1m", "\033[31m",
					     "\033[33m", "" };
	const char *s = buf_cstr(b);
	fflush(stdout);
	end_line(t);
	fprintf(stderr, "%s%s%s\n", t->colour ? codes[shade] : "", s ? s : "",
		t->colour ? "\033[0m" : "");
}

/* Escaped, on one line, not all of it where it is long. */
static void put(struct buf *b, struct bytes s)
{
	size_t n = s.n > SHORT_BYTES ? clear_cut(s, SHORT_BYTES) : s.n;
	clear_escape(b, (struct bytes){ s.p, n });
	if (n < s.n)
		buf_add_str(b, "...");
}

/* What the agent says, as it comes. */
static void say(struct tale *t, struct bytes s)
{
	while (s.n) {
		const uint8_t *lf = memchr(s.p, '\n', s.n);
		size_t n = lf ? (size_t)(lf - s.p) : s.n;
		cleanup_buf struct buf clean = { 0 };
		clear_escape(&clean, (struct bytes){ s.p, n });
		fwrite(clean.data ? clean.data : (const uint8_t *)"", 1,
		       clean.len, stdout);
		t->in_line = !lf;
		if (lf)
			putchar('\n');
		n += lf != NULL;
		s.p += n;
		s.n -= n;
	}
	fflush(stdout);
}

/* A line a line. */
static void say_lines(struct tale *t, const char *word, struct bytes s)
{
	while (s.n) {
		const uint8_t *lf = memchr(s.p, '\n', s.n);
		size_t n = lf ? (size_t)(lf - s.p) : s.n;
		cleanup_buf struct buf b = { 0 };
		buf_addf(&b, "%s", word);
		clear_escape(&b, (struct bytes){ s.p, n });
		note(t, DIM, &b);
		n += lf != NULL;
		s.p += n;
		s.n -= n;
	}
}

/* --- parts --- */

static void tell_text(struct tale *t, const struct json *data)
{
	struct bytes text = text_of(data, "text");
	struct bytes stream = text_of(data, "stream");
	if (bytes_eq(stream, bytes_str("agent")) ||
	    bytes_eq(stream, bytes_str("stdout")))
		say(t, text);
	else if (bytes_eq(stream, bytes_str("prompt")))
		say_lines(t, "> ", text);
	else if (bytes_eq(stream, bytes_str("thought")))
		say_lines(t, "~ ", text);
	else
		say_lines(t, bytes_eq(stream, bytes_str("plan")) ? "  " :
			  "! ", text);
}

static void tell_ask(struct tale *t, const struct json *ask,
		     const struct json *data)
{
	cleanup_buf struct buf b = { 0 };
	if (t->open_n < TALE_ASKS && ask->num > 0 && ask->num <= UINT32_MAX)
		t->open[t->open_n++] = (unsigned)ask->num;
	buf_addf(&b, "? %lld ", (long long)ask->num);
	put(&b, text_of(data, "kind"));
	buf_add_str(&b, ": ");
	put(&b, text_of(data, "title"));
	buf_add_byte(&b, ' ');
	clear_escape(&b, text_of(data, "input"));
	note(t, YELLOW, &b);
}

static void tell_answer(struct tale *t, const struct json *ask,
			const struct json *data)
{
	cleanup_buf struct buf b = { 0 };
	for (size_t i = 0; i < t->open_n; i++) {
		if (t->open[i] != ask->num)
			continue;
		memmove(&t->open[i], &t->open[i + 1],
			(--t->open_n - i) * sizeof t->open[0]);
		break;
	}
	buf_addf(&b, "= %lld ", (long long)ask->num);
	put(&b, text_of(data, "title"));
	note(t, YELLOW, &b);
}

static void tell_tool(struct tale *t, const struct json *data)
{
	const struct json *ask = member(data, "ask"), *is_new;
	struct bytes status = text_of(data, "status");
	cleanup_buf struct buf b = { 0 };
	if (ask && ask->type == JSON_INT) {
		if (member(data, "answer"))
			tell_answer(t, ask, data);
		else
			tell_ask(t, ask, data);
		return;
	}
	is_new = member(data, "new");
	if (is_new && !is_new->num && status.n == 0)
		return;		/* only its content went on */
	buf_add_str(&b, member(data, "request") ? "  - " : "* ");
	put(&b, text_of(data, "kind"));
	if (text_of(data, "kind").n)
		buf_add_str(&b, ": ");
	put(&b, text_of(data, "title"));
	if (status.n) {
		buf_add_str(&b, " (");
		put(&b, status);
		buf_add_byte(&b, ')');
	}
	note(t, DIM, &b);
}

static void tell_egress(struct tale *t, const struct json *data)
{
	cleanup_buf struct buf b = { 0 };
	if (!bytes_eq(text_of(data, "decision"), bytes_str("denied")))
		return;
	buf_add_str(&b, "denied: ");
	put(&b, text_of(data, "method"));
	buf_add_byte(&b, ' ');
	put(&b, text_of(data, "host"));
	put(&b, text_of(data, "path"));
	buf_add_str(&b, ": ");
	put(&b, text_of(data, "reason"));
	note(t, RED, &b);
}

static void tell_end(struct tale *t, const struct json *data)
{
	const struct json *code = member(data, "exit");
	t->over = true;
	t->exit = code && code->type == JSON_INT ? (int)(code->num & 255) : 1;
	end_line(t);
	fflush(stdout);
}

static void tell_part(struct tale *t, const struct json *doc)
{
	const struct json *data = member(doc, "data");
	struct bytes kind = text_of(doc, "kind");
	if (!data || data->type != JSON_OBJECT)
		return;
	if (bytes_eq(kind, bytes_str("text"))) {
		tell_text(t, data);
	} else if (bytes_eq(kind, bytes_str("tool"))) {
		tell_tool(t, data);
	} else if (bytes_eq(kind, bytes_str("egress"))) {
		tell_egress(t, data);
	} else if (bytes_eq(kind, bytes_str("notice"))) {
		cleanup_buf struct buf b = { 0 };
		buf_add_str(&b, "! ");
		put(&b, text_of(data, "text"));
		note(t, BOLD, &b);
	} else if (bytes_eq(kind, bytes_str("end"))) {
		tell_end(t, data);
	}
}

void tale_line(struct tale *t, struct bytes line)
{
	struct json *doc = line.n > HASH_CHARS ? json_parse((struct bytes){
		line.p + HASH_CHARS, line.n - HASH_CHARS }, NULL) : NULL;
	if (doc)
		tell_part(t, doc);
	json_free(doc);
}
