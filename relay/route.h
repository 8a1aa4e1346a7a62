/* SPDX-License-Identifier: MIT
 *
 * route: which request means what: one table of method, path, who may, and
 * the functions that serve it.
 *
 * begin() is called when the head is in, with session and participant looked
 * up; it may answer at once.  Then the body: text up to `cap` bytes is
 * collected in req.body, unless the route has a data() of its own.  end() is
 * called when the body is complete, and answers, or leaves an intent on its
 * way (state WAIT), whose return comes to done(). */
#ifndef RELAY_ROUTE_H
#define RELAY_ROUTE_H

#include "relay/conn.h"

#define WHO_ANYONE 0u		/* no token */
#define WHO_OWNER (1u << ROLE_OWNER)
#define WHO_SENDER (1u << ROLE_SENDER)
#define WHO_RUNNER (1u << ROLE_RUNNER)
#define WHO_OBSERVER (1u << ROLE_OBSERVER)
#define WHO_ALL 15u

struct digest;

struct route {
	enum http_method method;
	const char *path;	/* {sid}, {id}: one segment each */
	unsigned who;		/* by role; 0: no token is looked at */
	size_t cap;		/* of a collected body */
	void (*begin)(struct conn *c);			/* or NULL */
	void (*data)(struct conn *c, struct bytes b);	/* or NULL */
	void (*end)(struct conn *c);
	void (*done)(struct conn *c, struct intent *it); /* NULL: plain */
};

/* Finds the route, session and participant for a head, fills c->req, and
 * answers where that fails. */
void route_begin(struct conn *c, const struct http_head *h);

/* Sends the intent on its way for c, or answers when it is NULL. */
void route_commit(struct conn *c, struct intent *it);
/* Counts n bytes against the session's transfer; false: answered. */
bool route_transfer(struct conn *c, uint64_t n);
/* The plain answer to an intent that came back. */
void route_done(struct conn *c, struct intent *it);

/* serve_session.c */
void serve_health(struct conn *c);
void serve_limits(struct conn *c);
void serve_metrics(struct conn *c);
void serve_create(struct conn *c);
void serve_manifest(struct conn *c);
void serve_join(struct conn *c);
void serve_joined(struct conn *c, struct intent *it);
void serve_revoke(struct conn *c);
void serve_leave(struct conn *c);
void serve_close(struct conn *c);
/* serve_event.c */
void serve_events(struct conn *c);
void serve_stream(struct conn *c);
void serve_audit(struct conn *c);
/* serve_item.c */
void serve_blob(struct conn *c);
void serve_ack(struct conn *c);
void serve_want(struct conn *c);
/* serve_job.c */
void serve_job(struct conn *c);
void serve_job_posted(struct conn *c, struct intent *it);
void serve_job_again(struct conn *c, const char *id);	/* posted twice */
void serve_claim(struct conn *c);
void serve_claimed(struct conn *c, struct intent *it);
void serve_cancel(struct conn *c);
void serve_progress(struct conn *c);	/* serve_progress.c */
/* serve_runner.c */
void serve_runners(struct conn *c);
void serve_approve(struct conn *c);
void serve_reject(struct conn *c);
void serve_heartbeat(struct conn *c);
void serve_away(struct conn *c);
void serve_duty(struct conn *c);
/* upload.c */
void upload_post_begin(struct conn *c);
void upload_job_begin(struct conn *c);
void upload_put_begin(struct conn *c);
void upload_data(struct conn *c, struct bytes b);
void upload_end(struct conn *c);
void upload_hashed(struct conn *c, const struct digest *d);
void upload_free(struct conn *c);

#endif
