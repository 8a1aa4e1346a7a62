/* SPDX-License-Identifier: MIT
 *
 * egress: the broker's account: a JSON line for each decision, before anything
 * of it happens, and one for how it ended.  It is a part of the record, and
 * the box may read it (canonical JSON, as the record's parts are): queries, header fields and bodies are not in it, and
 * whatever looks like a credential is overwritten. */
#ifndef RUNNER_BROKER_EGRESS_H
#define RUNNER_BROKER_EGRESS_H

#include <time.h>

#include "runner/broker/redact.h"
#include "runner/policy/match.h"

struct egress {
	int fd;
	int copy;		/* the run's own, which the box does not see;
				 * -1: there is none */
	const struct redact_set *redact;
	uint64_t next;		/* number of the next decision */
	struct buf late;	/* ends, which nobody waits for */
	time_t second;		/* that of words: the time as text */
	char words[40];
	bool failed;		/* a line could not be written: nothing is
				 * allowed any more */
};

struct egress_line {
	const char *event;	/* allowed, denied, failed, notice, end */
	uint64_t n;		/* which decision; 0: none */
	const char *door;	/* proxy, http, https; or NULL */
	const struct host *host;	/* or NULL */
	uint16_t port;
	bool tls;
	struct bytes method, path;
	const char *why;
	unsigned line;		/* of the policy, 0: none */
	/* an end */
	const char *address;
	int status;
	uint64_t up_bytes, down_bytes, swapped, redacted;
	int64_t ms;
};

/* 0, or -1: it could not be written.  An end is only kept, for the next line
 * or egress_flush, whichever comes first; all others are written. */
int egress_put(struct egress *g, const struct egress_line *l);
int egress_flush(struct egress *g);

#endif
