/* SPDX-License-Identifier: MIT
 *
 * serve_item: blobs out, and what receivers say of them. */
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "relay/task.h"
#include "relay/reply.h"
#include "relay/route.h"

/* The session key is one for all roles, so a runner is given only what it
 * needs: events, its jobs and their inputs, and what it posted itself. */
static bool may_fetch(const struct participant *p, const struct item *it)
{
	return p->cert.role != ROLE_RUNNER || it->author == p ||
	       (p->approved && it->kind == ITEM_EVENT) || task_needs(p, it);
}

static int open_blob(struct conn *c, struct buf *small, int *fd, uint64_t *n,
		     struct err *e)
{
	struct state *st = c->loop->st;
	struct item *it = state_item(c->req->session, c->req->id);
	*fd = -1;
	if (!it || c->req->session->closed)
		return err_set(e, ERR_NOT_FOUND, "no such item");
	if (!may_fetch(c->req->by, it))
		return err_set(e, ERR_FORBIDDEN,
			       "not a blob for this runner");
	if (!it->present)
		return err_set(e, ERR_GONE, "the blob has left the relay; "
			       "ask its holders with want");
	*n = it->blob_n;
	if (!it->file.name)
		return store_blob(st->store, &it->loc, small, e);
	*fd = blob_open(st->blobs, &it->file, e);
	return *fd < 0 ? -1 : 0;
}

void serve_blob(struct conn *c)
{
	cleanup_buf struct buf small = { 0 };
	struct state *st = c->loop->st;
	struct err e;
	uint64_t n = 0;
	int fd;
	pthread_mutex_lock(&st->lock);
	int rc = open_blob(c, &small, &fd, &n, &e);
	pthread_mutex_unlock(&st->lock);
	if (rc == 0 && !route_transfer(c, n)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (rc == 0)
		METRIC_ADD(st->metrics.bytes_out, n);
	if (rc < 0)
		reply_err(c, &e);
	else if (fd < 0)
		reply_text(c, "application/octet-stream", buf_bytes(&small));
	else
		reply_file(c, fd, BLOB_HEAD_N, n);
}

static struct intent *about_item(struct conn *c, enum rec_type type,
				 const char *who)
{
	struct req *r = c->req;
	cleanup_buf struct buf extra = { 0 }, data = { 0 };
	buf_add(&extra, r->id, ITEM_ID);
	buf_add(&extra, r->by->cert.pub, PRIM_PUB);
	bool before = strcmp(who, "item") < 0;
	buf_add_byte(&data, '{');
	if (!before)
		buf_addf(&data, "\"item\":\"%s\",", r->id);
	buf_addf(&data, "\"%s\":", who);
	json_put_b64(&data, r->by->cert.pub, PRIM_PUB);
	if (before)
		buf_addf(&data, ",\"item\":\"%s\"", r->id);
	buf_add_byte(&data, '}');
	struct intent *it = intent_new(r->session, type, loop_wall_ms(),
				       buf_bytes(&extra), buf_bytes(&data));
	if (it) {
		it->by = r->by;
		memcpy(it->key, r->id, ITEM_ID);
	}
	return it;
}

static bool known(struct conn *c, bool runner_too)
{
	struct state *st = c->loop->st;
	struct req *r = c->req;
	bool id_ok = item_is_id(bytes_str(r->id));
	pthread_mutex_lock(&st->lock);
	struct item *it = id_ok ? state_item(r->session, r->id) : NULL;
	bool may = it && (runner_too || may_fetch(r->by, it));
	pthread_mutex_unlock(&st->lock);
	if (!it)
		reply_error(c, 404, "not_found", "no such item");
	else if (!may)
		reply_error(c, 403, "forbidden", "not a blob for this runner");
	return may;
}

void serve_ack(struct conn *c)
{
	if (known(c, true))
		route_commit(c, about_item(c, REC_ACK, "participant_pub"));
}

void serve_want(struct conn *c)
{
	if (known(c, false))
		route_commit(c, about_item(c, REC_WANT, "by"));
}
