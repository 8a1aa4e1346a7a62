/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "core/cert.h"
#include "core/host/file.h"
#include "core/host/wire.h"
#include "core/json.h"

#define SMALL_MAX (64 * 1024)		/* answers of a few fields */
#define FRAME_SMALL (64 * 1024)
#define MANIFEST_ANSWER_MAX (4 * MANIFEST_MAX)
#define STREAM_STALL_MS 45000
#define STREAM_FIRST_MS 20000	/* the relay says something at once */
#define STREAM_HELD_MS 3000	/* a stream that was held back before */
#define EVENTS_MAX ((uint64_t)64 << 20)
#define AUDIT_MAX ((uint64_t)1 << 32)

struct wire {
	struct rest *rest;
	char *sid;
	int connect_ms, stall_ms, total_ms;
	char word[32];
	int64_t retry_after_ms;
	bool held;		/* the last stream gave nothing */
	bool apart;
};

struct wire *wire_new(const char *base_url, const char *session_id,
		      const char *token, struct clock *clock, struct err *e)
{
	struct wire *w = calloc(1, sizeof *w);
	if (!w || !(w->sid = strdup(session_id))) {
		wire_free(w);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	w->rest = rest_new(base_url, clock, e);
	if (!w->rest || wire_set_token(w, token, e) < 0) {
		wire_free(w);
		return NULL;
	}
	w->retry_after_ms = -1;
	return w;
}

void wire_free(struct wire *w)
{
	if (!w)
		return;
	rest_free(w->rest);
	free(w->sid);
	free(w);
}

int wire_set_token(struct wire *w, const char *token, struct err *e)
{
	return rest_set_token(w->rest, token, e);
}

void wire_set_patience(struct wire *w, int connect_ms, int stall_ms)
{
	w->connect_ms = connect_ms;
	w->stall_ms = stall_ms;
}

void wire_set_apart(struct wire *w, bool apart) { w->apart = apart; }
void wire_set_total(struct wire *w, int total_ms) { w->total_ms = total_ms; }
void wire_abort(struct wire *w) { rest_abort(w->rest); }
void wire_resume(struct wire *w) { rest_resume(w->rest); }
struct rest *wire_rest(struct wire *w) { return w->rest; }
const char *wire_word(const struct wire *w) { return w->word; }
int64_t wire_retry_after_ms(const struct wire *w) { return w->retry_after_ms; }

void wire_path(const struct wire *w, struct buf *out, const char *tail)
{
	buf_addf(out, "/v1/sessions/%s%s", w->sid, tail);
}

static int call(struct wire *w, struct rest_call *c, struct err *e)
{
	if (!c->connect_ms)
		c->connect_ms = w->connect_ms;
	if (!c->stall_ms)
		c->stall_ms = w->stall_ms;
	c->total_ms = w->total_ms;
	int r = rest_do(w->rest, c, e);
	memcpy(w->word, c->word, sizeof w->word);
	w->retry_after_ms = c->retry_after_ms;
	return r;
}

int wire_call(struct wire *w, struct rest_call *c, const char *tail,
	      struct err *e)
{
	cleanup_buf struct buf path = { 0 };
	wire_path(w, &path, tail);
	c->path = buf_cstr(&path);
	if (!c->path)
		return err_set(e, ERR_MEMORY, "out of memory");
	return call(w, c, e);
}

static int post_empty(struct wire *w, const char *tail, struct err *e)
{
	struct rest_call c = { .method = "POST" };
	return wire_call(w, &c, tail, e);
}

/* "/items/{id}what"; an id is checked here too: it becomes part of a URL. */
static int item_tail(char tail[64], const char *id, const char *what,
		     struct err *e)
{
	if (!item_is_id(bytes_str(id)))
		return err_set(e, ERR_INVALID, "that is no item id");
	snprintf(tail, 64, "/items/%s%s", id, what);
	return 0;
}

/* --- session --- */

int wire_health(struct wire *w, struct err *e)
{
	struct rest_call c = { .method = "GET", .path = "/v1/health" };
	return call(w, &c, e);
}

int wire_create(struct wire *w, struct bytes signed_manifest, struct err *e)
{
	struct rest_call c = { .method = "POST", .path = "/v1/sessions",
			       .type = "application/json",
			       .body = signed_manifest };
	return call(w, &c, e);
}

/* The string of that name in a JSON object, at most max bytes. */
static int take_string(struct buf *out, struct buf *answer, const char *name,
		       size_t max, struct err *e)
{
	cJSON *doc = cJSON_ParseWithLength((const char *)answer->data,
					   answer->len);
	const char *s = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(doc, name));
	size_t n = s ? strlen(s) : 0;
	if (n && n <= max)
		buf_add(out, s, n);
	cJSON_Delete(doc);
	if (n == 0 || n > max)
		return err_set(e, ERR_PROTO, "the relay's answer has no %s",
			       name);
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

int wire_manifest(struct wire *w, struct buf *signed_manifest, struct err *e)
{
	cleanup_buf struct buf answer = { 0 };
	struct rest_call c = { .method = "GET", .answer = &answer,
			       .answer_max = MANIFEST_ANSWER_MAX };
	if (wire_call(w, &c, "", e) < 0)
		return -1;
	return take_string(signed_manifest, &answer, "signed_manifest",
			   MANIFEST_MAX, e);
}

int wire_join(struct wire *w, struct bytes signed_join,
	      char token[REST_TOKEN_MAX + 1], struct err *e)
{
	cleanup_buf struct buf answer = { 0 }, text = { 0 };
	struct rest_call c = { .method = "POST", .type = "application/json",
			       .body = signed_join, .answer = &answer,
			       .answer_max = SMALL_MAX };
	if (wire_call(w, &c, "/participants", e) < 0 ||
	    take_string(&text, &answer, "token", REST_TOKEN_MAX, e) < 0)
		return -1;
	memcpy(token, text.data, text.len);
	token[text.len] = 0;
	return 0;
}

int wire_revoke(struct wire *w, enum role role, struct err *e)
{
	char tail[40];
	snprintf(tail, sizeof tail, "/roles/%s/revoke", role_word(role));
	return post_empty(w, tail, e);
}

int wire_leave(struct wire *w, struct err *e)
{
	return post_empty(w, "/leave", e);
}

int wire_close(struct wire *w, struct err *e)
{
	return post_empty(w, "/close", e);
}

int wire_audit(struct wire *w,
	       int (*take)(void *arg, const void *p, size_t n), void *arg,
	       struct err *e)
{
	struct rest_call c = { .method = "GET", .take = take,
			       .take_arg = arg, .answer_max = AUDIT_MAX };
	return wire_call(w, &c, "/audit.jsonl", e);
}

/* --- events --- */

struct listening {
	struct sse sse;
	int (*on)(void *arg, const struct event *ev, struct err *e);
	void *arg;
	uint64_t *delivered;
	struct err *e;
	bool failed;
};

static int hear_event(void *arg, const struct event *ev, struct err *e)
{
	struct listening *l = arg;
	if (ev->kind[0] && l->delivered)
		++*l->delivered;
	return l->on(l->arg, ev, e);
}

static int hear(void *arg, const void *p, size_t n)
{
	struct listening *l = arg;
	if (sse_feed(&l->sse, p, n, hear_event, l, l->e) == 0)
		return 0;
	l->failed = true;
	return -1;
}

static int listen_with(struct wire *w, struct rest_call *c,
		       struct listening *l, const char *tail, int64_t after,
		       struct err *e)
{
	struct err heard = { 0 };
	char last[48];
	l->e = &heard;
	c->method = "GET";
	c->header[0] = "Accept: text/event-stream";
	c->take = hear;
	c->take_arg = l;
	c->answer_max = UINT64_MAX;
	c->stall_ms = STREAM_STALL_MS;
	snprintf(last, sizeof last, "Last-Event-ID: %lld", (long long)after);
	c->header[1] = after >= 0 ? last : NULL;
	int r = wire_call(w, c, tail, e);
	c->header[1] = NULL;
	sse_free(&l->sse);
	if (l->failed && e)
		*e = heard;
	return r;
}

int wire_listen(struct wire *w, const char *tail, int64_t after,
		int (*on)(void *arg, const struct event *ev, struct err *e),
		void *arg, uint64_t *delivered, struct err *e)
{
	struct listening l = { .on = on, .arg = arg, .delivered = delivered };
	struct rest_call c = { 0 };
	return listen_with(w, &c, &l, tail, after, e);
}

/* A relay's stream says something at once.  Where nothing came through before
 * it was cut, or for long, something between us keeps it back. */
static bool was_held(const struct rest_call *c, int r, const struct err *e)
{
	return c->received == 0 &&
	       (r == 0 || (e->code == ERR_NET &&
			   (c->http == 0 || c->http == 200 ||
			    c->http == 504)));
}

int wire_stream(struct wire *w, int64_t after,
		int (*on)(void *arg, const struct event *ev, struct err *e),
		void *arg, uint64_t *delivered, struct err *e)
{
	struct listening l = { .on = on, .arg = arg, .delivered = delivered };
	struct rest_call c = { .first_ms = w->held ? STREAM_HELD_MS :
						     STREAM_FIRST_MS };
	struct err why = { 0 };
	uint64_t n;
	int r = listen_with(w, &c, &l, "/stream", after, &why);
	w->held = was_held(&c, r, &why) &&
		  wire_events(w, after, on, arg, &n, NULL) == 0;
	if (w->held) {
		*delivered += n;
		return 1;
	}
	if (r < 0 && e)
		*e = why;
	return r;
}

static int tell_event(const cJSON *item,
		      int (*on)(void *arg, const struct event *ev,
				struct err *e),
		      void *arg, struct err *e)
{
	const char *kind = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(item, "kind"));
	const cJSON *seq = cJSON_GetObjectItemCaseSensitive(item, "seq");
	struct event ev = { .has_seq = true };
	if (!kind || !*kind || strlen(kind) > SSE_KIND_MAX ||
	    !cJSON_IsNumber(seq) || !(seq->valuedouble >= 0) ||
	    seq->valuedouble > (double)JSON_INT_MAX)
		return 0;
	strcpy(ev.kind, kind);
	ev.seq = (uint64_t)seq->valuedouble;
	char *text = cJSON_PrintUnformatted(
		cJSON_GetObjectItemCaseSensitive(item, "data"));
	if (!text)
		return 0;
	ev.data = bytes_str(text);
	int r = on(arg, &ev, e);
	free(text);
	return r;
}

int wire_events(struct wire *w, int64_t after,
		int (*on)(void *arg, const struct event *ev, struct err *e),
		void *arg, uint64_t *count, struct err *e)
{
	cleanup_buf struct buf answer = { 0 };
	char tail[48] = "/events";
	struct rest_call c = { .method = "GET", .answer = &answer,
			       .answer_max = EVENTS_MAX };
	*count = 0;
	if (after >= 0)
		snprintf(tail, sizeof tail, "/events?after=%lld",
			 (long long)after);
	if (wire_call(w, &c, tail, e) < 0)
		return -1;
	cJSON *doc = cJSON_ParseWithLength((const char *)answer.data,
					   answer.len);
	const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(doc,
								 "events");
	int r = cJSON_IsArray(list) ? 0 :
		err_set(e, ERR_PROTO, "the relay's answer has no events");
	if (r == 0)
		cJSON_ArrayForEach(item, list) {
			++*count;
			if ((r = tell_event(item, on, arg, e)) < 0)
				break;
		}
	cJSON_Delete(doc);
	return r;
}

/* --- items --- */

struct frame {
	const struct wire_upload *u;
	uint8_t head[4];
	uint64_t at, total;
	struct err err;		/* of reading the blob */
};

/* Of a part that begins at `from` what is asked for and still to come. */
static size_t frame_part(struct frame *f, uint8_t *to, size_t n,
			 struct bytes part, uint64_t from)
{
	if (f->at < from || f->at >= from + part.n)
		return 0;
	size_t left = part.n - (size_t)(f->at - from);
	if (n > left)
		n = left;
	memcpy(to, part.p + (f->at - from), n);
	f->at += n;
	return n;
}

/* As much as there is room for: a small item leaves in one piece. */
static ssize_t frame_read(void *arg, void *to, size_t room)
{
	struct frame *f = arg;
	const struct wire_upload *u = f->u;
	struct bytes head = { f->head, sizeof f->head };
	size_t front = head.n + u->envelope.n;
	size_t n = frame_part(f, to, room, head, 0);
	n += frame_part(f, (uint8_t *)to + n, room - n, u->envelope, head.n);
	room -= n;
	if (room > f->total - f->at)
		room = (size_t)(f->total - f->at);
	if (!room)
		return (ssize_t)n;
	if (file_get_at(u->blob_fd, (uint8_t *)to + n, room, f->at - front,
			&f->err) < 0)
		return -1;
	f->at += room;
	if (u->moved)
		u->moved(u->moved_arg, f->at);
	return (ssize_t)(n + room);
}

static int frame_rewind(void *arg)
{
	struct frame *f = arg;
	f->at = 0;
	return 0;
}

static void frame_leaves(void *arg)
{
	const struct frame *f = arg;
	if (f->u->moved)
		f->u->moved(f->u->moved_arg, f->total);
}

/* A small one is put together here: it leaves with its request's head. */
static int frame_whole(struct frame *f, struct buf *out, struct err *e)
{
	uint8_t *to = buf_room(out, (size_t)f->total);
	size_t front = sizeof f->head + f->u->envelope.n;
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	memcpy(to, f->head, sizeof f->head);
	memcpy(to + sizeof f->head, f->u->envelope.p, f->u->envelope.n);
	out->len += (size_t)f->total;
	return f->u->blob_n ? file_get_at(f->u->blob_fd, to + front,
					  (size_t)f->u->blob_n, 0, e) : 0;
}

int wire_post_frame(struct wire *w, const char *tail,
		    const char *const header[2], const struct wire_upload *u,
		    struct buf *answer, struct err *e)
{
	uint32_t n = (uint32_t)u->envelope.n;
	struct frame f = { .u = u,
			   .head = { (uint8_t)(n >> 24), (uint8_t)(n >> 16),
				     (uint8_t)(n >> 8), (uint8_t)n } };
	f.total = sizeof f.head + u->envelope.n + u->blob_n;
	cleanup_buf struct buf whole = { 0 };
	struct rest_call c = {
		.method = "POST", .header = { header[0], header[1] },
		.answer = answer, .answer_max = SMALL_MAX,
		.leaves_arg = &f, .read_arg = &f, .body_n = f.total,
	};
	if (f.total > FRAME_SMALL || w->apart) {
		c.read = frame_read;
		c.rewind = frame_rewind;
	} else if (frame_whole(&f, &whole, e) < 0) {
		return -1;
	} else {
		c.leaves = frame_leaves;
		c.body = buf_bytes(&whole);
	}
	int r = wire_call(w, &c, tail, e);
	if (f.err.code && e)
		*e = f.err;
	return r;
}

int wire_post_item(struct wire *w, const struct wire_upload *u,
		   uint64_t *seq, struct err *e)
{
	cleanup_buf struct buf answer = { 0 };
	const char *const none[2] = { NULL, NULL };
	if (wire_post_frame(w, "/items", none, u, &answer, e) < 0)
		return -1;
	cJSON *doc = cJSON_ParseWithLength((const char *)answer.data,
					   answer.len);
	double v = -1;
	const cJSON *at = cJSON_GetObjectItemCaseSensitive(doc, "seq");
	if (cJSON_IsNumber(at))
		v = at->valuedouble;
	cJSON_Delete(doc);
	/* A sign-in page or a proxy says 200 as well.  If it was the relay, the
	 * next try is answered as a duplicate. */
	if (v < 0 || v > (double)JSON_INT_MAX)
		return err_set(e, ERR_NET, "what answered was not the relay: "
			       "no number for the item");
	*seq = (uint64_t)v;
	return 0;
}

int wire_blob_get(struct wire *w, const char *item_id, uint64_t n,
		  int (*take)(void *arg, const void *p, size_t n), void *arg,
		  struct err *e)
{
	char tail[64];
	struct rest_call c = { .method = "GET", .take = take,
			       .take_arg = arg, .answer_max = n };
	if (item_tail(tail, item_id, "/blob", e) < 0)
		return -1;
	if (wire_call(w, &c, tail, e) < 0) {
		/* of more than n bytes: that is a word about this item */
		if (e && e->code == ERR_PROTO && c.http >= 200 && c.http < 300)
			e->code = ERR_INVALID;
		return -1;
	}
	if (c.received != n)
		return err_set(e, ERR_INVALID, "the relay's blob is too short");
	return 0;
}

struct upload_fd {
	int fd;
	uint64_t at, n;
	struct err err;
};

static ssize_t fd_read(void *arg, void *to, size_t n)
{
	struct upload_fd *f = arg;
	if (n > f->n - f->at)
		n = (size_t)(f->n - f->at);
	if (file_get_at(f->fd, to, n, f->at, &f->err) < 0)
		return -1;
	f->at += n;
	return (ssize_t)n;
}

static int fd_rewind(void *arg)
{
	struct upload_fd *f = arg;
	f->at = 0;
	return 0;
}

int wire_blob_put(struct wire *w, const char *item_id, int fd, uint64_t n,
		  struct err *e)
{
	char tail[64];
	struct upload_fd f = { .fd = fd, .n = n };
	struct rest_call c = { .method = "PUT", .read = fd_read,
			       .rewind = fd_rewind, .read_arg = &f,
			       .body_n = n };
	if (item_tail(tail, item_id, "/blob", e) < 0)
		return -1;
	int r = wire_call(w, &c, tail, e);
	if (f.err.code && e)
		*e = f.err;
	return r;
}

int wire_ack(struct wire *w, const char *item_id, struct err *e)
{
	char tail[64];
	if (item_tail(tail, item_id, "/ack", e) < 0)
		return -1;
	return post_empty(w, tail, e);
}

int wire_want(struct wire *w, const char *item_id, struct err *e)
{
	char tail[64];
	if (item_tail(tail, item_id, "/want", e) < 0)
		return -1;
	if (post_empty(w, tail, e) == 0)
		return 0;
	if (!strcmp(w->word, "present") && e)
		e->code = ERR_EXISTS;
	return -1;
}
