/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/sse.h"

#define SEQ_MAX ((UINT64_C(1) << 53) - 1)

struct feed {
	int (*on)(void *arg, const struct event *ev, struct err *e);
	void *arg;
	struct err *e;
};

static void event_forget(struct sse *s)
{
	buf_reset(&s->data);
	s->has_data = s->has_kind = s->has_seq = false;
	s->kind[0] = 0;
}

static int event_end(struct sse *s, const struct feed *f)
{
	int r = 0;
	if (s->has_data && s->has_kind && s->kind[0]) {
		struct event ev = { .has_seq = s->has_seq, .seq = s->seq,
				    .data = buf_bytes(&s->data) };
		memcpy(ev.kind, s->kind, sizeof ev.kind);
		r = f->on(f->arg, &ev, f->e);
	}
	event_forget(s);
	return r;
}

static void take_id(struct sse *s, struct bytes v)
{
	uint64_t n = 0;
	s->has_seq = false;
	if (v.n == 0 || v.n > 16 || (v.n > 1 && v.p[0] == '0'))
		return;
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return;
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	}
	if (n > SEQ_MAX)
		return;
	s->seq = n;
	s->has_seq = true;
}

/* A kind that does not fit is none that we know: the event is dropped. */
static void take_kind(struct sse *s, struct bytes v)
{
	s->has_kind = v.n <= SSE_KIND_MAX && !memchr(v.p, 0, v.n);
	if (!s->has_kind)
		return;
	memcpy(s->kind, v.p, v.n);
	s->kind[v.n] = 0;
}

static int take_data(struct sse *s, struct bytes v, const struct feed *f)
{
	if (s->data.len + v.n + 1 > SSE_LINE_MAX)
		return err_set(f->e, ERR_PROTO,
			       "the relay sent an event that is too large");
	if (s->has_data)
		buf_add_byte(&s->data, '\n');
	buf_add(&s->data, v.p, v.n);
	s->has_data = true;
	return 0;
}

static bool is_name(struct bytes name, const char *word)
{
	return bytes_eq(name, bytes_str(word));
}

static int line_end(struct sse *s, const struct feed *f)
{
	struct bytes line = buf_bytes(&s->line), name = line, value = { 0 };
	if (line.n == 0)
		return event_end(s, f);
	if (line.p[0] == ':') {
		const struct event comment = { .data = line };
		return f->on(f->arg, &comment, f->e);
	}
	const uint8_t *colon = memchr(line.p, ':', line.n);
	if (colon) {
		name.n = (size_t)(colon - line.p);
		value.p = colon + 1;
		value.n = line.n - name.n - 1;
		if (value.n && value.p[0] == ' ') {
			value.p++;
			value.n--;
		}
	} else {
		value.p = line.p + line.n;
	}
	if (is_name(name, "data"))
		return take_data(s, value, f);
	if (is_name(name, "event"))
		take_kind(s, value);
	else if (is_name(name, "id"))
		take_id(s, value);
	return 0;
}

/* The length of what comes before a line's end; n where it does not end. */
static size_t line_span(const uint8_t *p, size_t n)
{
	const uint8_t *lf = memchr(p, '\n', n);
	size_t m = lf ? (size_t)(lf - p) : n;
	const uint8_t *cr = memchr(p, '\r', m);
	return cr ? (size_t)(cr - p) : m;
}

/* A byte order mark may stand in front of everything. */
static void drop_mark(struct sse *s)
{
	static const uint8_t mark[3] = { 0xef, 0xbb, 0xbf };
	if (!s->started && s->line.len >= 3 && !memcmp(s->line.data, mark, 3))
		buf_consume(&s->line, 3);
	s->started = true;
}

int sse_feed(struct sse *s, const void *in, size_t n,
	     int (*on)(void *arg, const struct event *ev, struct err *e),
	     void *arg, struct err *e)
{
	const struct feed f = { on, arg, e };
	const uint8_t *p = in, *end = p + n;
	while (p < end) {
		if (s->skip_lf && *p == '\n') {
			s->skip_lf = false;
			p++;
			continue;
		}
		s->skip_lf = false;
		size_t m = line_span(p, (size_t)(end - p));
		if (s->line.len + m > SSE_LINE_MAX)
			return err_set(e, ERR_PROTO,
				       "the relay sent a line that is too long");
		buf_add(&s->line, p, m);
		p += m;
		if (p == end)
			break;
		s->skip_lf = *p++ == '\r';
		drop_mark(s);
		if (buf_failed(&s->line) || buf_failed(&s->data))
			return err_set(e, ERR_MEMORY, "out of memory");
		if (line_end(s, &f) < 0)
			return -1;
		buf_reset(&s->line);
	}
	return 0;
}

void sse_reset(struct sse *s)
{
	event_forget(s);
	buf_reset(&s->line);
	s->skip_lf = s->started = false;
}

void sse_free(struct sse *s)
{
	buf_free(&s->line);
	buf_free(&s->data);
}
