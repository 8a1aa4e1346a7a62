/* SPDX-License-Identifier: MIT
 *
 * upload_end: the body is complete: hash and signature decide, then it goes to
 * the disk and becomes a fact. */
#include <string.h>

#include "core/json.h"
#include "relay/pool.h"
#include "relay/reply.h"
#include "relay/task.h"
#include "relay/upload_parts.h"

/* The item of this session that a reference pins, or NULL. */
static const struct item *pinned(struct session *s, const struct item_ref *ref)
{
	const struct item *it = state_item(s, ref->id);
	return it && memcmp(it->sha256, ref->sha256, HASH_SIZE) == 0 ? it :
								       NULL;
}

/* What a job's runner will need, and which job a result is for: only from
 * the header can a relay know. */
static void add_refs(struct conn *c, struct buf *extra,
		     const struct item_header *h, char job_id[ITEM_ID + 1])
{
	struct session *s = c->req->session;
	cleanup_buf struct buf inputs = { 0 };
	pthread_mutex_lock(&c->loop->st->lock);
	for (size_t i = 0; i < h->ref_n; i++) {
		const struct item *it = pinned(s, &h->refs[i]);
		if (it && it->job && !job_id[0])
			memcpy(job_id, it->id, ITEM_ID);
		else if (it && it->kind == ITEM_FILE)
			buf_add(&inputs, it->id, ITEM_ID);
	}
	pthread_mutex_unlock(&c->loop->st->lock);
	if (h->kind == ITEM_JOB) {
		bool all = c->req->refs_complete || h->ref_n;
		buf_add_byte(extra, all ? (uint8_t)(inputs.len / ITEM_ID) :
					  FACT_ANY_INPUT);
		buf_add(extra, inputs.data, inputs.len);
	} else if (h->kind == ITEM_RESULT && job_id[0]) {
		buf_add(extra, job_id, ITEM_ID);
	}
}

static struct intent *post_intent(struct conn *c, struct upload *u,
				  const uint8_t sha256[HASH_SIZE])
{
	struct req *r = c->req;
	const struct item_header *h = &u->env.header;
	cleanup_buf struct buf extra = { 0 }, data = { 0 };
	char job_id[ITEM_ID + 1] = "";
	buf_add(&extra, u->id, ITEM_ID);
	buf_add(&extra, h->author, PRIM_PUB);
	buf_add_byte(&extra, (uint8_t)h->kind);
	buf_add(&extra, sha256, HASH_SIZE);
	buf_add(&extra, u->env.sig, FACT_SIG);
	fact_add_u64(&extra, u->expected);
	fact_add_u64(&extra, u->blob.name);
	add_refs(c, &extra, h, job_id);
	buf_add_str(&data, "{\"envelope\":");
	json_put_string(&data, (struct bytes){ u->head.data + 4,
					       u->head.len - 4 });
	buf_add_byte(&data, '}');
	struct intent *it = intent_new(r->session, REC_ITEM, loop_wall_ms(),
				       buf_bytes(&extra), buf_bytes(&data));
	if (!it)
		return NULL;
	memcpy(it->sig, u->env.sig, FACT_SIG);
	memcpy(it->job_id, job_id, sizeof job_id);
	it->kind = h->kind;
	it->target = u->target;
	u->target = NULL;
	return it;
}

static struct intent *put_intent(struct conn *c, struct upload *u)
{
	struct req *r = c->req;
	cleanup_buf struct buf extra = { 0 }, data = { 0 };
	buf_add(&extra, u->id, ITEM_ID);
	buf_add(&extra, r->by->cert.pub, PRIM_PUB);
	fact_add_u64(&extra, u->blob.name);
	buf_addf(&data, "{\"item\":\"%s\"}", u->id);
	return intent_new(r->session, REC_RESEEDED, loop_wall_ms(),
			  buf_bytes(&extra), buf_bytes(&data));
}

/* A large blob on its way through the pool, then to commit. */
struct sealing {
	struct loop *loop;
	struct intent *it;
	int fd;
};

static void seal(void *arg)
{
	struct sealing *s = arg;
	struct state *st = s->loop->st;
	struct err e;
	if (blob_seal(st->blobs, &s->it->file, s->fd, &e) == 0) {
		commit_queue(s->loop->commit, s->it);
	} else {
		blob_remove(st->blobs, &s->it->file);
		s->it->status = err_http(e.code);
		s->it->error = err_http_code(e.code);
		s->it->message = "the relay cannot store this now; try again "
				 "later";
		loop_post(s->loop->index, &s->it->mail);
	}
	free(s);
}

static void send_large(struct conn *c, struct upload *u, struct intent *it)
{
	struct sealing *s = c->loop->commit ? malloc(sizeof *s) : NULL;
	if (s)
		*s = (struct sealing){ c->loop, it, u->fd };
	it->file = u->blob;
	if (!s || pool_run(c->loop->st->pool, seal, s) < 0) {
		free(s);
		intent_free(it);
		reply_error(c, 503, "unavailable",
			    "the relay cannot take this now");
		return;
	}
	upload_unbook(c);
	digest_take(u->digest);
	digest_free(u->digest);
	u->digest = NULL;
	u->fd = -1;	/* now the pool's */
}

static int check_hash(struct upload *u, const uint8_t sha256[HASH_SIZE],
		      struct err *e)
{
	if (!u->put)
		return envelope_verify(&u->env, sha256, e);
	if (memcmp(u->want, sha256, HASH_SIZE) == 0)
		return 0;
	return err_set(e, ERR_SIGNATURE, "not the blob that was signed");
}

/* All of it is here, and this is its hash. */
static void decide(struct conn *c, const uint8_t sha256[HASH_SIZE])
{
	struct upload *u = c->req->upload;
	struct err e;
	if (check_hash(u, sha256, &e) < 0) {
		reply_err(c, &e);
		return;
	}
	struct intent *it = u->put ? put_intent(c, u) :
				     post_intent(c, u, sha256);
	if (!it) {
		reply_error(c, 503, "unavailable", "out of memory");
		return;
	}
	it->by = c->req->by;
	it->blob_n = u->expected;
	memcpy(it->sha256, sha256, HASH_SIZE);
	memcpy(it->key, u->id, ITEM_ID);
	it->loop = c->loop->index;
	it->fd = c->fd;
	it->gen = c->generation;
	if (u->fd >= 0) {
		send_large(c, u, it);
	} else {
		it->blob = u->small;
		u->small = (struct buf){ 0 };
		route_commit(c, it);
	}
}

void upload_end(struct conn *c)
{
	struct upload *u = c->req->upload;
	uint8_t sha256[HASH_SIZE];
	if (!u->in_blob || u->have != u->expected) {
		reply_error(c, 400, "bad_request",
			    "the blob is shorter than its header says");
	} else if (u->fd >= 0) {
		digest_end(u->digest);	/* and upload_hashed, after it */
	} else {
		hash_sha256(sha256, u->small.data, u->small.len);
		decide(c, sha256);
	}
}

void upload_hashed(struct conn *c, const struct digest *d)
{
	if (d->failed)
		reply_error(c, 503, "unavailable",
			    "the relay cannot take this now");
	else
		decide(c, d->sha256);
}
