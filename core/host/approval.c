/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/host/approval.h"
#include "core/host/draft.h"

#define GIVE_UP_MS 60000

static bool has(const uint8_t (*list)[PRIM_PUB], size_t n,
		const uint8_t pub[PRIM_PUB])
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(list[i], pub, PRIM_PUB) == 0)
			return true;
	return false;
}

/* 1 if it is new. */
static int add(uint8_t (**list)[PRIM_PUB], size_t *n,
	       const uint8_t pub[PRIM_PUB], struct err *e)
{
	if (has((const void *)*list, *n, pub))
		return 0;
	void *v = realloc(*list, (*n + 1) * PRIM_PUB);
	if (!v)
		return err_set(e, ERR_MEMORY, "out of memory");
	*list = v;
	memcpy((*list)[(*n)++], pub, PRIM_PUB);
	return 1;
}

int approval_hear(struct approval_list *l, const struct payload *event,
		  enum role author, struct err *e)
{
	if (author != ROLE_OWNER || event->kind != ITEM_EVENT)
		return 0;
	switch (event->u.event.event) {
	case EVENT_RUNNER_APPROVE:
		return add(&l->approved, &l->approved_n, event->u.event.pub,
			   e);
	case EVENT_RUNNER_REJECT:
		return add(&l->rejected, &l->rejected_n, event->u.event.pub,
			   e);
	case EVENT_JOB_CANCEL:
	case EVENT_SESSION_CLOSE:
		break;
	}
	return 0;
}

enum approval approval_of(const struct approval_list *l,
			  const uint8_t pub[PRIM_PUB])
{
	if (has((const void *)l->rejected, l->rejected_n, pub))
		return APPROVAL_REFUSED;
	return has((const void *)l->approved, l->approved_n, pub) ?
		APPROVAL_GIVEN : APPROVAL_NONE;
}

bool approval_stands(const struct approval_list *l, const struct manifest *m,
		     const uint8_t pub[PRIM_PUB])
{
	enum approval a = approval_of(l, pub);

	return a == APPROVAL_GIVEN ||
	       (a == APPROVAL_NONE && !m->job.approve_runners);
}

struct approvals approval_view(const struct approval_list *l,
			       const struct manifest *m)
{
	return (struct approvals){
		.approved = (const void *)l->approved,
		.approved_n = l->approved_n,
		.rejected = (const void *)l->rejected,
		.rejected_n = l->rejected_n,
		.asked = m->job.approve_runners,
	};
}

void approval_free(struct approval_list *l)
{
	free(l->approved);
	free(l->rejected);
	*l = (struct approval_list){ 0 };
}

/* --- the owner's acts --- */

static int may_act(const struct peer *p, struct err *e)
{
	if (p->invite.role != ROLE_OWNER)
		return err_set(e, ERR_ROLE, "only the owner approves and "
			       "rejects runners");
	if (p->manifest.mode != MODE_EXECUTE)
		return err_set(e, ERR_POLICY, "this session runs no jobs");
	return 0;
}

static int send_event(struct peer *p, struct wire *w, enum event_kind event,
		      const uint8_t pub[PRIM_PUB], const char *reason,
		      struct err *e)
{
	const struct draft_post how = { .wire = w, .give_up_ms = GIVE_UP_MS };
	struct sealed s = { .blob_fd = -1 };
	struct draft d;
	uint64_t seq;

	if (draft_event(&d, p, event, pub, reason, NULL, e) < 0)
		return -1;
	int r = draft_send(&d, p, &how, &s, &seq, e);
	draft_free(&d);
	sealed_free(&s);
	return r;
}

int approval_give(struct peer *p, struct wire *w,
		  const struct approval_list *l, const uint8_t pub[PRIM_PUB],
		  struct err *e)
{
	enum approval a = approval_of(l, pub);

	if (may_act(p, e) < 0)
		return -1;
	if (a == APPROVAL_REFUSED)
		return err_set(e, ERR_POLICY, "this runner was rejected, and "
			       "that is final; it may join again under a new "
			       "key");
	if (wire_runner_approve(w, pub, e) < 0)
		return -1;
	return a == APPROVAL_GIVEN ? 0 :
		send_event(p, w, EVENT_RUNNER_APPROVE, pub, NULL, e);
}

int approval_refuse(struct peer *p, struct wire *w,
		    const struct approval_list *l, const uint8_t pub[PRIM_PUB],
		    const char *reason, struct err *e)
{
	if (may_act(p, e) < 0)
		return -1;
	if (approval_of(l, pub) != APPROVAL_REFUSED &&
	    send_event(p, w, EVENT_RUNNER_REJECT, pub, reason, e) < 0)
		return -1;
	return wire_runner_reject(w, pub, e);
}
