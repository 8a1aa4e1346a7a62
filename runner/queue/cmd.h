/* SPDX-License-Identifier: MIT
 *
 * cmd: what the command line can be; each gives an exit code. */
#ifndef AIRLOX_QUEUE_CMD_H
#define AIRLOX_QUEUE_CMD_H

#include <stdbool.h>

#include "core/err.h"
#include "runner/args.h"
#include "runner/site.h"
#include "runner/queue/serve.h"

int cmd_serve(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_check(int argc, char **argv);

/* The flags that serve, join and check have in common. */
struct cmd_common {
	const char *job_user, *scratch, *cache, *disk_mb, *tasks, *policy;
	bool no_cgroups;
};
#define CMD_COMMON_FLAGS(c) \
	{ "--job-user", &(c)->job_user, NULL, "USER", \
	  "jobs run as USER (as root only; nobody)" }, \
	{ "--scratch", &(c)->scratch, NULL, "DIR", \
	  "directories of jobs while they run ($TMPDIR; as root /var/tmp)" }, \
	{ "--cache-dir", &(c)->cache, NULL, "DIR", \
	  "where packages are kept" }, \
	{ "--disk", &(c)->disk_mb, NULL, "MB", \
	  "what a job may write (twice what it may return, 1024 at least)" }, \
	{ "--tasks", &(c)->tasks, NULL, "N", \
	  "processes and threads of a job (256)" }, \
	{ "--policy", &(c)->policy, NULL, "FILE", \
	  "airlox-box(1)'s: what jobs reach where a session allows network" }, \
	{ "--no-cgroups", NULL, &(c)->no_cgroups, NULL, \
	  "limits by rlimits and a watchdog" }

/* A host that can sandbox, and the options. */
int cmd_open(const struct cmd_common *c, struct site *h,
	     struct serve_options *o, struct err *e);

#endif
