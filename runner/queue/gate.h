/* SPDX-License-Identifier: MIT
 *
 * gate: the way out of a job of a session that lets its jobs on the network:
 * the broker of airlox-box, as a process, with a policy; never the network
 * itself.  The runner links none of it and reads no policy: it starts
 * airlox-box, which is beside it or in PATH. */
#ifndef AIRLOX_QUEUE_GATE_H
#define AIRLOX_QUEUE_GATE_H

#include "core/buf.h"
#include "core/err.h"
#include "runner/box/doors.h"
#include "runner/queue/verdict.h"

#define GATE_MOUNTS 2
#define GATE_ENV 21		/* with its end */
#define GATE_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

struct gate {
	pid_t broker;		/* -1: there is none */
	int account;		/* what it decides, JSON lines */
	struct doors doors;	/* for box_ask's prepare */
	struct buf ca;
	char proxy[96];
};

/* What `airlox-box check` finds wrong with the policy is said on stderr.
 * ERR_POLICY. */
int gate_check(const char *policy, struct err *e);
/* 0 once it is ready.  ERR_POLICY: with the broker's sentence. */
int gate_open(struct gate *g, const char *policy, struct err *e);
/* What a program finds it by: names and values, borrowed from g. */
void gate_env(const struct gate *g, const char *env[GATE_ENV]);
/* After the job: closes it, and names what was denied. */
void gate_close(struct gate *g, struct verdict *v);

#endif
