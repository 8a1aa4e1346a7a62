/* SPDX-License-Identifier: MIT
 *
 * upload: a blob coming in: with its envelope in front (POST items), or for
 * an envelope that is here (PUT blob).  The envelope is judged before a byte
 * of the blob is kept; a small blob goes into memory and then the log, a large
 * one into a file of its own, and is hashed on the way (digest.h); the
 * signature over both decides at the end. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "relay/check.h"
#include "relay/reply.h"
#include "relay/upload_parts.h"

#define GATHER ((size_t)16 * 1024)

void upload_free(struct conn *c)
{
	struct upload *u = c->req->upload;
	if (!u)
		return;
	if (u->fd >= 0) {
		state_discard(c->loop->st, &u->blob);
		digest_free(u->digest);		/* and fd with it */
	}
	if (u->booked)
		upload_unbook(c);
	if (u->has_env)
		envelope_free(&u->env);
	buf_free(&u->head);
	buf_free(&u->small);
	free(u->target);
	free(u);
	c->req->upload = NULL;
}

static struct upload *upload_new(struct conn *c, bool put)
{
	struct upload *u = calloc(1, sizeof *u);
	if (!u) {
		reply_error(c, 503, "unavailable", "out of memory");
		return NULL;
	}
	u->put = put;
	u->fd = -1;
	c->req->upload = u;
	return u;
}

/* Large blobs count from their first byte: who begins many and ends none
 * has no more of the disk than who ends them.  false: answered. */
static bool book(struct conn *c, struct upload *u)
{
	struct state *st = c->loop->st;
	struct session *s = c->req->session;
	uint64_t most = (uint64_t)st->limits.session_bytes;
	if (u->expected <= STORE_BLOB_MAX)
		return true;
	pthread_mutex_lock(&st->lock);
	bool fits = s->blob_bytes + s->coming + u->expected <= most;
	if (fits)
		s->coming += u->booked = u->expected;
	pthread_mutex_unlock(&st->lock);
	if (!fits)
		reply_error(c, 507, "disk_full", "this session is full until "
			    "its recipients have taken what is there");
	return fits;
}

void upload_unbook(struct conn *c)
{
	struct upload *u = c->req->upload;
	pthread_mutex_lock(&c->loop->st->lock);
	c->req->session->coming -= u->booked;
	pthread_mutex_unlock(&c->loop->st->lock);
	u->booked = 0;
}

/* The blob is about to come. */
static int begin_blob(struct conn *c, struct upload *u, struct err *e)
{
	u->in_blob = true;
	if (u->expected <= STORE_BLOB_MAX) {
		if (!buf_room(&u->small, u->expected))
			return err_set(e, ERR_MEMORY, "out of memory");
		return 0;
	}
	int fd;
	struct state *st = c->loop->st;
	if (blob_create(st->blobs, &u->blob, &fd, e) < 0)
		return -1;
	u->digest = digest_new(st->pool, fd);
	if (!u->digest) {
		close(fd);
		blob_remove(st->blobs, &u->blob);
		return err_set(e, ERR_MEMORY, "out of memory");
	}
	u->fd = fd;
	u->digest->loop = c->loop->index;
	u->digest->conn_fd = c->fd;
	u->digest->conn_gen = c->generation;
	return 0;
}

/* Too fast, or no room: said before a byte of the body is kept. */
static bool has_leave(struct conn *c, bool item)
{
	struct state *st = c->loop->st;
	int64_t wait_ms = 0;
	struct err e;
	if (st->low && !state_can_write(st, &e)) {
		reply_error(c, 507, "disk_full", e.why);
		return false;
	}
	pthread_mutex_lock(&st->lock);
	if (item)
		wait_ms = rate_take(&c->req->by->items, 1,
				    st->limits.items_minute, MINUTE_MS,
				    loop_wall_ms());
	pthread_mutex_unlock(&st->lock);
	if (wait_ms)
		reply_later(c, wait_ms, "too many items a minute");
	return !wait_ms;
}

void upload_post_begin(struct conn *c)
{
	struct req *r = c->req;
	uint64_t most = 4 + ENVELOPE_MAX + BLOB_OVERHEAD +
			(uint64_t)r->session->m.max_item_bytes;
	if (!has_leave(c, true))
		return;
	if (r->by->cert.role == ROLE_OBSERVER)
		reply_error(c, 403, "forbidden", "an observer may not post");
	else if (r->has_length && r->left > most)
		reply_error(c, 413, "too_large",
			    "larger than this session allows");
	else
		upload_new(c, false);
}

void upload_job_begin(struct conn *c)
{
	struct aim *t = calloc(1, sizeof *t);
	struct err e;
	int rc = !t ? err_set(&e, ERR_MEMORY, "out of memory") :
		 !c->req->target.p ?
		 err_set(&e, ERR_INVALID, "a job needs Airlox-Target") :
		 aim_parse(t, c->req->target, &e);
	if (rc < 0)
		reply_err(c, &e);
	else
		upload_post_begin(c);
	if (c->req->upload)
		c->req->upload->target = t;
	else
		free(t);
}

/* What is known of the item that is to be re-seeded; under the lock. */
static int find_evicted(struct conn *c, struct upload *u, const char **error,
			const char **message)
{
	struct item *it = state_item(c->req->session, c->req->id);
	*error = it ? "present" : "not_found";
	*message = it ? "the blob is here" : "no such item";
	if (!it || it->present)
		return it ? 409 : 404;
	memcpy(u->id, it->id, sizeof u->id);
	memcpy(u->want, it->sha256, HASH_SIZE);
	u->expected = it->blob_n;
	return 0;
}

void upload_put_begin(struct conn *c)
{
	const char *error, *message;
	struct err e;
	struct upload *u = has_leave(c, false) ? upload_new(c, true) : NULL;
	if (!u)
		return;
	pthread_mutex_lock(&c->loop->st->lock);
	int status = find_evicted(c, u, &error, &message);
	pthread_mutex_unlock(&c->loop->st->lock);
	if (status)
		reply_error(c, status, error, message);
	else if (c->req->has_length && c->req->left != u->expected)
		reply_error(c, 400, "bad_request",
			    "not the length that was signed");
	else if (book(c, u) && route_transfer(c, u->expected) &&
		 begin_blob(c, u, &e) < 0)
		reply_err(c, &e);
}

/* The envelope is complete: all that can be said without the blob.  rest is
 * what the body's length leaves for it. */
static void judge(struct conn *c, struct upload *u, uint64_t rest)
{
	struct req *r = c->req;
	struct state *st = c->loop->st;
	struct bytes env = { u->head.data + 4, u->head.len - 4 };
	const char *error, *message;
	struct err e;
	if (envelope_parse_from(&u->env, env, &r->by->cert, &e) < 0) {
		reply_err(c, &e);
		return;
	}
	u->has_env = true;
	if (item_check_header(&u->env.header, &r->by->cert, &r->session->m,
			      &e) < 0) {
		reply_err(c, &e);
		return;
	}
	if ((u->env.header.kind == ITEM_JOB) != (u->target != NULL)) {
		reply_error(c, 400, "bad_request", "a job is posted to jobs, "
			    "and nothing else is");
		return;
	}
	memcpy(u->id, u->env.header.id, sizeof u->id);
	u->expected = (uint64_t)u->env.header.size + BLOB_OVERHEAD;
	if (r->has_length && rest != u->expected) {
		reply_error(c, 400, "bad_request",
			    "the blob's length is not the header's size");
		return;
	}
	pthread_mutex_lock(&st->lock);
	int rc = check_new_id(r->session, u->id, r->by, NULL, u->env.sig,
			      &error, &message);
	pthread_mutex_unlock(&st->lock);
	if (rc < 0 && u->target && strcmp(error, "duplicate") == 0)
		serve_job_again(c, u->id);
	else if (rc < 0)
		reply_error(c, 409, error, message);
	else if (book(c, u) && route_transfer(c, u->expected) &&
		 begin_blob(c, u, &e) < 0)
		reply_err(c, &e);
}

/* The u32 and the envelope.  Gives how much of b it took. */
static size_t take_head(struct conn *c, struct upload *u, struct bytes b)
{
	size_t need = 4;
	if (u->head.len >= 4)
		need = 4 + (size_t)load_u32be(u->head.data);
	size_t n = need - u->head.len < b.n ? need - u->head.len : b.n;
	buf_add(&u->head, b.p, n);
	if (u->head.len < need)
		return n;
	uint32_t len = load_u32be(u->head.data);
	if (len > ENVELOPE_MAX)
		reply_error(c, 413, "too_large", "an envelope has at most "
			    "8 KiB");
	else if (len == 0)
		reply_error(c, 400, "bad_request", "no envelope");
	return n;
}

static int write_all(int fd, struct bytes b, struct err *e)
{
	while (b.n) {
		ssize_t n = write(fd, b.p, b.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot store the blob");
		b.p += n;
		b.n -= (size_t)n;
	}
	return 0;
}

/* A large one's next bytes.  Small runs are gathered: chunks of a byte each
 * are not a write each. */
static int store_run(struct conn *c, struct upload *u, struct bytes b,
		     struct err *e)
{
	if (c->loop->st->low && !state_can_write(c->loop->st, e))
		return -1;
	if (u->small.len || b.n < GATHER) {
		buf_add(&u->small, b.p, b.n);
		if (u->small.len < GATHER && u->have < u->expected)
			return 0;
		b = buf_bytes(&u->small);
	}
	if (buf_failed(&u->small))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (write_all(u->fd, b, e) < 0)
		return -1;
	digest_grow(u->digest, b.n);
	buf_reset(&u->small);
	return 0;
}

static void take_blob(struct conn *c, struct upload *u, struct bytes b)
{
	struct err e;
	if (b.n > u->expected - u->have) {
		reply_error(c, 400, "bad_request",
			    "the blob is longer than its header says");
		return;
	}
	u->have += b.n;
	if (u->fd < 0) {
		buf_add(&u->small, b.p, b.n);
		return;
	}
	if (store_run(c, u, b, &e) < 0)
		reply_err(c, &e);
}

void upload_data(struct conn *c, struct bytes b)
{
	struct upload *u = c->req->upload;
	while (!u->in_blob && b.n && c->state == CONN_BODY) {
		size_t n = take_head(c, u, b);
		b.p += n;
		b.n -= n;
		if (u->head.len > 4 && c->state == CONN_BODY &&
		    u->head.len == 4 + (size_t)load_u32be(u->head.data))
			judge(c, u, c->req->left + b.n);
	}
	if (b.n && c->state == CONN_BODY)
		take_blob(c, u, b);
}
