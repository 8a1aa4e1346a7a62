/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clear.h"
#include "core/json.h"
#include "runner/broker/egress.h"
#include "runner/put.h"

#define PATH_SHOWN 512u
#define LATE_MAX 16384u

/* What is as it would be escaped: most of what is written here. */
static bool is_plain(struct bytes s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 0x20 || s.p[i] > 0x7e || s.p[i] == '"' ||
		    s.p[i] == '\\')
			return false;
	return true;
}

static void put_text(struct buf *b, const char *key, struct bytes s)
{
	cleanup_buf struct buf clean = { 0 };
	if (s.n == 0)
		return;
	json_put_key(b, key);
	if (is_plain(s)) {
		buf_add_byte(b, '"');
		buf_add(b, s.p, s.n);
		buf_add_byte(b, '"');
		return;
	}
	clear_escape(&clean, s);
	json_put_string(b, buf_bytes(&clean));
	b->failed |= clean.failed;
}

static void put_int(struct buf *b, const char *key, uint64_t v)
{
	if (v == 0)
		return;
	char digits[24];
	size_t at = sizeof digits;
	for (; v; v /= 10)
		digits[--at] = (char)('0' + v % 10);
	json_put_key(b, key);
	buf_add(b, digits + at, sizeof digits - at);
}

/* The words of a second are made once. */
static void put_time(struct egress *g)
{
	struct timespec ts;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (ts.tv_sec != g->second || !g->words[0]) {
		g->second = ts.tv_sec;
		gmtime_r(&ts.tv_sec, &tm);
		strftime(g->words, sizeof g->words, "\"%Y-%m-%dT%H:%M:%S.000Z\"",
			 &tm);
	}
	char *dot = strchr(g->words, '.');
	long ms = ts.tv_nsec / 1000000;
	if (dot) {
		dot[1] = (char)('0' + ms / 100);
		dot[2] = (char)('0' + ms / 10 % 10);
		dot[3] = (char)('0' + ms % 10);
	}
	json_put_key(&g->late, "t");
	buf_add_str(&g->late, g->words);
}

int egress_put(struct egress *g, const struct egress_line *l)
{
	struct buf *b = &g->late;
	struct bytes path = l->path;
	bool end = !strcmp(l->event, "end");
	size_t from = b->len;
	if (path.n > PATH_SHOWN)
		path.n = PATH_SHOWN;
	buf_add_byte(b, '{');
	put_text(b, "address", bytes_str(l->address ? l->address : ""));
	put_text(b, "decision", bytes_str(l->event));
	put_text(b, "door", bytes_str(l->door ? l->door : ""));
	put_int(b, "down", l->down_bytes);
	put_text(b, "host", bytes_str(l->host ? l->host->name : ""));
	put_int(b, "line", l->line);
	put_text(b, "method", l->method);
	put_int(b, "ms", (uint64_t)l->ms);
	put_int(b, "n", l->n);
	put_text(b, "path", path);
	put_int(b, "port", l->host ? l->port : 0);
	put_text(b, "reason", bytes_str(l->why ? l->why : ""));
	put_int(b, "redacted", l->redacted);
	put_int(b, "status", (uint64_t)l->status);
	put_int(b, "swapped", l->swapped);
	put_time(g);
	if (l->host && !end) {
		json_put_key(b, "tls");
		buf_add_str(b, l->tls ? "true" : "false");
	}
	put_int(b, "up", l->up_bytes);
	buf_add_str(b, "}\n");
	if (!buf_failed(b))
		redact_whole(g->redact, b->data + from, b->len - from);
	return end && b->len < LATE_MAX && !buf_failed(b) ? 0 :
	       egress_flush(g);
}

int egress_flush(struct egress *g)
{
	struct bytes all = buf_bytes(&g->late);
	if (buf_failed(&g->late) || put_whole(g->fd, all) < 0 ||
	    (g->copy >= 0 && put_whole(g->copy, all) < 0))
		g->failed = true;
	if (g->failed)
		buf_free(&g->late);
	g->late.len = 0;
	return g->failed ? -1 : 0;
}
