/* SPDX-License-Identifier: MIT */
#include "core/sse.h"
#include "tests/unit/tap.h"

struct log {
	char text[4096];
	int stop_at, n;
};

static int on(void *arg, const struct event *ev, struct err *e)
{
	struct log *l = arg;
	size_t at = strlen(l->text);
	char seq[24] = "-";
	if (ev->has_seq)
		snprintf(seq, sizeof seq, "%llu", (unsigned long long)ev->seq);
	snprintf(l->text + at, sizeof l->text - at, "[%s|%s|%.*s]", seq,
		 ev->kind, (int)ev->data.n, (const char *)ev->data.p);
	if (++l->n == l->stop_at)
		return err_set(e, ERR_VERB, "enough");
	return 0;
}

static void feed(const char *in, size_t step, const char *want,
		 const char *what)
{
	struct sse s = { 0 };
	struct log l = { .stop_at = -1 };
	struct err e;
	size_t n = strlen(in);
	for (size_t at = 0; at < n; at += step)
		if (sse_feed(&s, in + at, n - at < step ? n - at : step, on,
			     &l, &e) < 0)
			snprintf(l.text, sizeof l.text, "error");
	is_str(l.text, want, "%s, %zu at a time", what, step);
	sse_free(&s);
}

static void each_way(const char *in, const char *want, const char *what)
{
	feed(in, 1, want, what);
	feed(in, 3, want, what);
	feed(in, 4096, want, what);
}

static void limits(void)
{
	static char big[SSE_LINE_MAX + 100];
	struct sse s = { 0 };
	struct log l = { .stop_at = 1 };
	struct err e = { 0 };
	memset(big, 'a', sizeof big);
	ok(sse_feed(&s, big, sizeof big, on, &l, &e) < 0 &&
	   e.code == ERR_PROTO, "a line without end is refused");
	sse_reset(&s);
	int r = 0;
	for (int i = 0; r == 0 && i < 40; i++) {
		memcpy(big, "data:", 5);
		r = sse_feed(&s, big, 100000, on, &l, &e);
		if (r == 0)
			r = sse_feed(&s, "\n", 1, on, &l, &e);
	}
	ok(r < 0 && s.data.len <= SSE_LINE_MAX, "so is an event without end");
	sse_reset(&s);
	static const char two[] = "event:a\ndata:1\n\nevent:b\ndata:2\n\n";
	ok(sse_feed(&s, two, sizeof two - 1, on, &l, &e) < 0 &&
	   e.code == ERR_VERB && l.n == 1, "the listener may stop");
	sse_free(&s);
}

int main(void)
{
	each_way("id: 0\nevent: item\ndata: {}\n\n", "[0|item|{}]", "one event");
	each_way("\xef\xbb\xbf" "event:a\ndata:b\r\n\r\nid:3\revent:c\rdata:d\r\r",
		 "[-|a|b][3|c|d]", "every line end, and a mark in front");
	each_way("event: a\ndata: 1\ndata: 2\ndata\n\n", "[-|a|1\n2\n]",
		 "data of many lines");
	each_way(": hi\n\n:\n", "[-||: hi][-||:]", "comments are heard");
	each_way("id: 5\nevent: a\ndata: b\n\nevent: c\ndata: d\n\n",
		 "[5|a|b][-|c|d]", "an id is for one event only");
	each_way("data: no kind\n\nevent: no data\n\nid: 3\n\n", "",
		 "half events are dropped");
	each_way("event: a\ndata: cut", "", "an unfinished one is none");
	each_way("id: 9007199254740991\nevent: a\ndata: b\n\n"
		 "id: 9007199254740992\nevent: a\ndata: b\n\n",
		 "[9007199254740991|a|b][-|a|b]", "2^53-1 is the last id");
	each_way("id: -1\nevent: a\ndata: b\n\nid: 1x\nevent: a\ndata: b\n\n"
		 "id: 01\nevent: a\ndata: b\n\nid:\nevent: a\ndata: b\n\n",
		 "[-|a|b][-|a|b][-|a|b][-|a|b]", "what is no number is no id");
	each_way("event: 0123456789012345678901234567890123\ndata: b\n\n"
		 "event: a\ndata: b\nretry: 9\nfoo: bar\n\n", "[-|a|b]",
		 "unknown fields and endless kinds");
	limits();
	return done_testing();
}
