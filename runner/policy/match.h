/* SPDX-License-Identifier: MIT
 *
 * match: what a policy says to a request.  Pure: the same question has the
 * same answer in the broker and in `airlox-box check --url`. */
#ifndef RUNNER_POLICY_MATCH_H
#define RUNNER_POLICY_MATCH_H

#include "runner/policy/policy.h"

struct policy_ask {
	const struct host *host;	/* its port is not looked at */
	uint16_t port;
	bool tls;
	struct bytes method;
	struct bytes path;	/* as it was written, without the query */
};

struct policy_answer {
	bool allowed;
	const struct policy_rule *rule;	/* that allowed, or came nearest */
	char why[160];
};

bool policy_place_holds(const struct policy_place *p, const struct host *h,
			uint16_t port);

/* The first rule that has this host and port at all, or NULL. */
const struct policy_rule *policy_find_host(const struct policy *p,
					   const struct host *h,
					   uint16_t port);
/* The whole question. */
void policy_decide(const struct policy *p, const struct policy_ask *ask,
		   struct policy_answer *a);

/* Whether the credential is one of this host, and of this path. */
bool policy_credential_holds(const struct policy_credential *c,
			     const struct policy_ask *ask);
/* Whether any credential is one of this host, whatever the path. */
bool policy_has_credential(const struct policy *p, const struct host *h,
			   uint16_t port);

/* Whether a path can be read in one way only, and its plain form in *plain
 * (percent decoded).  False for dot segments, encoded slashes and the like,
 * which servers see in different ways. */
bool policy_path_is_plain(struct bytes path, struct buf *plain);

#endif
