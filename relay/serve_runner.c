/* SPDX-License-Identifier: MIT
 *
 * serve_runner: who runs jobs, who may, and that they live. */
#include <string.h>

#include "core/enc.h"
#include "core/json.h"
#include "relay/flat.h"
#include "relay/reply.h"
#include "relay/route.h"
#include "relay/duty.h"
#include "relay/stream.h"

void serve_runners(struct conn *c)
{
	struct state *st = c->loop->st;
	pthread_mutex_lock(&st->lock);
	uint32_t end = c->req->session->part_n;
	pthread_mutex_unlock(&st->lock);
	reply_listing(c, TEXT_RUNNERS, 0, end);
}

static void decide(struct conn *c, enum rec_type type)
{
	struct req *r = c->req;
	uint8_t pub[PRIM_PUB];
	cleanup_buf struct buf data = { 0 };
	if (enc_b64_fixed(pub, PRIM_PUB, bytes_str(r->id)) < 0) {
		reply_error(c, 404, "not_found", "no such runner");
		return;
	}
	buf_add_str(&data, "{\"participant_pub\":");
	json_put_b64(&data, pub, PRIM_PUB);
	buf_add_byte(&data, '}');
	struct intent *it = intent_new(r->session, type, loop_wall_ms(),
				       (struct bytes){ pub, PRIM_PUB },
				       buf_bytes(&data));
	if (it) {
		it->by = r->by;
		memcpy(it->key, pub, PRIM_PUB);
	}
	route_commit(c, it);
}

void serve_approve(struct conn *c) { decide(c, REC_APPROVED); }
void serve_reject(struct conn *c) { decide(c, REC_REJECTED); }

/* {"job":ID} or {"job":null} */
static int read_beat(struct bytes body, char id[ITEM_ID + 1], struct err *e)
{
	struct flat f;
	if (flat_parse(&f, body, "the heartbeat", e) < 0)
		return -1;
	const struct flat_field *job = flat_get(&f, "job", FLAT_STRING);
	if (f.n != 1 || (!job && !flat_get(&f, "job", FLAT_NULL)) ||
	    (job && !item_is_id(job->str)))
		return err_set(e, ERR_INVALID, "a heartbeat names its job, or "
			       "null");
	memset(id, 0, ITEM_ID + 1);
	if (job)
		memcpy(id, job->str.p, ITEM_ID);
	return 0;
}

void serve_heartbeat(struct conn *c)
{
	struct state *st = c->loop->st;
	char id[ITEM_ID + 1];
	struct err e;
	if (read_beat(buf_bytes(&c->req->body), id, &e) < 0) {
		reply_err(c, &e);
		return;
	}
	pthread_mutex_lock(&st->lock);
	bool here = !c->req->by->gone && c->req->by->runner;
	if (here)
		duty_beat(c->req->session, c->req->by, id, loop_mono_ms());
	pthread_mutex_unlock(&st->lock);
	if (here)
		reply_json(c, 200, bytes_str("{}"));
	else
		reply_error(c, 401, "unauthorized", "this participant is not "
			    "in the session any more");
}

void serve_away(struct conn *c)
{
	struct state *st = c->loop->st;
	pthread_mutex_lock(&st->lock);
	if (c->req->by->runner)
		duty_away(c->req->by);
	pthread_mutex_unlock(&st->lock);
	reply_empty(c);
}

void serve_duty(struct conn *c)
{
	c->duty = true;
	c->told[0] = 0;
	c->told_end = false;
	stream_begin(c, 0);
}
