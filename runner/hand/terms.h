/* SPDX-License-Identifier: MIT
 *
 * terms: terminal/create and what follows: commands in the background, their
 * output kept to a limit, the oldest of it dropped. */
#ifndef RUNNER_HAND_TERMS_H
#define RUNNER_HAND_TERMS_H

#include <sys/types.h>

#include "runner/agent/wire.h"

#define TERMS_MAX 32
#define TERMS_WAITS 64
#define TERMS_BYTES (1u << 20)		/* kept, where it is not said */
#define TERMS_BYTES_MAX (4u << 20)

struct term {
	unsigned number;	/* 0: not in use */
	pid_t pid;		/* 0: it has ended */
	int out, status;
	struct buf text;
	size_t limit;
	bool truncated;
};

struct term_wait {
	unsigned number;	/* 0: not in use */
	char id[256];
	size_t id_n;
};

struct terms {
	struct term term[TERMS_MAX];
	struct term_wait wait[TERMS_WAITS];
	unsigned numbers;
};

/* method: "create", "output", "wait_for_exit", "kill", "release". */
void terms_serve(struct terms *t, struct bytes id, struct bytes method,
		 const struct wire *params);
/* What there is of one's output; false at its end. */
bool terms_read(struct term *t);
/* A child that has ended; false: it is none of these. */
bool terms_ended(struct terms *t, pid_t pid, int status);
void terms_kill_all(struct terms *t);

#endif
