/* SPDX-License-Identifier: MIT
 *
 * show: a policy in words: the rules in order, what is risky, what is missing.
 * Names of variables and files, never a value. */
#ifndef RUNNER_POLICY_SHOW_H
#define RUNNER_POLICY_SHOW_H

#include "runner/policy/match.h"

#define SHOW_SECRET_MIN 8u	/* bytes: shorter ones cannot be told from
				 * chance in an answer */
#define SHOW_SECRET_MAX 4096u

void show_rules(struct buf *out, const struct policy *p);
void show_json(struct buf *out, const struct policy *p);	/* an object */

/* "api.example.com:443 GET HEAD /v1/..." without a newline. */
void show_rule_line(struct buf *out, const struct policy_rule *r);
void show_place(struct buf *out, const struct policy_place *p);
/* "env:NAME", "file:PATH", "cmd:PROGRAM": never a value. */
void show_source(struct buf *out, const struct policy_credential *c);

/* One line each; gives how many. */
size_t show_risks(struct buf *out, const struct policy *p);
/* What a run would miss, one line each: variables, files, programs.  Nothing
 * is run, and no value is kept. */
size_t show_missing(struct buf *out, const struct policy *p);

/* What would happen to METHOD URL: lines, and whether it is allowed.  -1 with
 * e filled when the URL is none. */
int show_url(struct buf *out, const struct policy *p, const char *method,
	     const char *url, bool *allowed, struct err *e);

#endif
