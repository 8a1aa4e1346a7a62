/* SPDX-License-Identifier: MIT
 *
 * serve: a mounted queue, served: jobs are taken one at a time, in the order
 * in which they appeared, until told to stop or the queue is gone.
 *
 * One thread.  It waits for three things: inotify on the queue and on the open
 * job, a descriptor of signals, and what the job's sandbox says. */
#ifndef AIRLOX_QUEUE_SERVE_H
#define AIRLOX_QUEUE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "runner/site.h"
#include "runner/runtime/python.h"

#define SERVE_PYTHONS 8

struct serve_options {
	const char *cache;	/* of packages; NULL: the default place */
	uint64_t disk_bytes;	/* what a job may write; 0: by its limits */
	uint32_t tasks;		/* processes and threads of a job */
	const char *policy;	/* what jobs on the network may reach, or NULL:
				 * they are refused */
};

struct server {
	struct site *host;
	const struct serve_options *options;
	int queue, ready, inotify;
	int stop;		/* signalfd: readable when told to stop */
	struct python pythons[SERVE_PYTHONS];
	size_t n_pythons;
	unsigned long jobs;	/* so far */
	char **seen;		/* names in the queue that were served */
	size_t n_seen;
	bool stopping, gone, over;
};

/* SIGTERM, SIGINT and SIGHUP as a descriptor; blocked from then on. */
int serve_signals(struct err *e);

/* Serves the queue/ in dir, or dir itself where it is one.  0 when told to
 * stop, and when the mount is gone.  ERR_MOUNTPOINT: no queue; ERR_LOCKED:
 * another runner serves it; ERR_NOT_FOUND: this host has not the Python that
 * the session's jobs want. */
int serve(struct site *h, const struct serve_options *o, const char *dir,
	  int stop, struct err *e);

/* job.c: one job, from its claim to its verb.  -1 only if the queue is gone. */
int job_serve(struct server *s, const char *name, struct err *e);
/* True, also from then on, once the server was told to stop. */
bool serve_stopped(struct server *s);

#endif
