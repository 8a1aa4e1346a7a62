/* SPDX-License-Identifier: MIT
 *
 * program: an agent of this machine in a box: its file, what interprets it,
 * the libraries, virtual environment or node_modules it is a part of, each
 * read-only under the name it has here.  What it needs beyond that is for
 * `files` of the policy. */
#ifndef RUNNER_BOX_PROGRAM_H
#define RUNNER_BOX_PROGRAM_H

#include "runner/box/room.h"

/* Adds to the room's mounts and PATH; *argv is what to run there, NULL-ended,
 * the room's.  A leading `env NAME=VALUE...` stays.  ERR_NOT_FOUND: there is
 * no such program. */
int program_place(struct room *r, const struct policy_words *agent,
		  const char *const **argv, struct err *e);

#endif
