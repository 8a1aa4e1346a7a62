/* SPDX-License-Identifier: MIT
 *
 * plain: a record for a terminal: one line a thing, escaped;
 * texts of several lines below it. */
#ifndef RUNNER_RECORD_PLAIN_H
#define RUNNER_RECORD_PLAIN_H

#include "runner/record/proof.h"

/* Of a record that proof_check has passed. */
int plain_put(struct buf *out, const struct proof *p, struct err *e);

#endif
