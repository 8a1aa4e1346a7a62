/* SPDX-License-Identifier: MIT
 *
 * runners: who can run a job (airloxfs(4), runners/).
 *
 * Who a runner is comes from its verified join, whether it is approved from
 * the owner's verified events; that it is there and what it does is the
 * relay's unsigned word, asked for by a thread: soon while a job waits or
 * something happened, else now and then.
 *
 * Guarded by the jobs room's lock, which the caller holds unless it says
 * otherwise. */
#ifndef AIRLOXFS_RUNNERS_H
#define AIRLOXFS_RUNNERS_H

#include "airloxfs/mount.h"
#include "core/host/approval.h"

struct runners;
struct jobs;

/* --- without the lock --- */
struct runners *runners_new(struct jobs *j, struct err *e);
int runners_start(struct runners *r, struct err *e);
void runners_stop(struct runners *r);
void runners_free(struct runners *r);
/* A participant whose role is runner; hidden: the helper shows it. */
void runners_add(struct runners *r, const struct participant *who,
		 bool hidden);
/* The owner's word on a runner: journalled, then done by the thread.  One that
 * was rejected cannot be approved: ERR_VERB. */
int runners_decide(struct runners *r, const uint8_t pub[PRIM_PUB],
		   bool approve, const char *reason, struct err *e);

/* --- with it --- */
/* A verified event, and its author's role; -1: memory. */
int runners_event(struct runners *r, const struct payload *event,
		  enum role author, struct err *e);
const struct approval_list *runners_list(const struct runners *r);
/* Whether one that the target names is approved, there and idle, by the
 * relay's last word. */
bool runners_idle(const struct runners *r, const struct target *t);
/* The relay said that this one has a job now, or has none any more. */
void runners_busy(struct runners *r, const uint8_t pub[PRIM_PUB],
		  const char *job);
/* How it is shown, added to out; nothing where it is not known. */
void runners_name(const struct runners *r, const uint8_t pub[PRIM_PUB],
		  struct buf *out);
/* Asks the relay soon; waiting: and again, for as long as a job waits. */
void runners_refresh(struct runners *r, bool waiting);
void runners_wake(struct runners *r);	/* a job is to be cancelled */

#endif
