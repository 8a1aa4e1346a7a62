/* SPDX-License-Identifier: MIT
 *
 * fence: which files of the host no box may be given, whatever its policy
 * says: what airlox-box keeps (state.h), and live mounts of sessions, of
 * which a box gets names alone (session.h). */
#ifndef RUNNER_BOX_FENCE_H
#define RUNNER_BOX_FENCE_H

#include "runner/policy/policy.h"

/* ERR_POLICY: a file of the policy is there, or above it. */
int fence_check(const struct policy *p, struct err *e);

#endif
