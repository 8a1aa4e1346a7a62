/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "runner/queue/cmd.h"
#include "runner/queue/gate.h"
#include "runner/tell.h"

#define TASKS 256

static int number(const char *flag, const char *text, uint64_t min,
		  uint64_t max, uint64_t *to, struct err *e)
{
	char *end;
	if (!text)
		return 0;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || v < min || v > max)
		return err_set(e, ERR_USAGE, "%s: a number from %llu to %llu",
			       flag, (unsigned long long)min,
			       (unsigned long long)max);
	*to = v;
	return 0;
}

int cmd_open(const struct cmd_common *c, struct site *h,
	     struct serve_options *o, struct err *e)
{
	const struct site_options ho = { .job_user = c->job_user,
					 .scratch = c->scratch,
					 .no_cgroups = c->no_cgroups };
	uint64_t disk_mb = 0, tasks = TASKS;
	*h = (struct site){ .seccomp = -1 };
	if (number("--disk", c->disk_mb, 1, 1 << 20, &disk_mb, e) < 0 ||
	    number("--tasks", c->tasks, 4, 1 << 15, &tasks, e) < 0)
		return -1;
	*o = (struct serve_options){ .cache = c->cache,
				     .disk_bytes = disk_mb << 20,
				     .tasks = (uint32_t)tasks,
				     .policy = c->policy };
	if (c->policy && gate_check(c->policy, e) < 0)
		return -1;
	if (site_open(h, &ho, e) == 0 && site_try(h, e) == 0)
		return 0;
	site_close(h);
	return -1;
}

int cmd_serve(int argc, char **argv)
{
	struct cmd_common c = { 0 };
	const struct flag flags[] = { CMD_COMMON_FLAGS(&c), { 0 } };
	struct serve_options o;
	struct site h;
	struct err e = { 0 };
	bool help;
	int n;

	if (args_parse(flags, argc, argv, &n, &help, &e) < 0)
		return tell_fail(&e);
	if (help) {
		args_help("airlox-runner [FLAGS] DIR",
			  "Serves the queue of the mount DIR, until SIGTERM, "
			  "SIGINT, or its end.", flags);
		return 0;
	}
	if (n != 1) {
		err_set(&e, ERR_USAGE, "one DIR, please; see --help");
		return tell_fail(&e);
	}
	int stop = serve_signals(&e);
	if (stop < 0 || cmd_open(&c, &h, &o, &e) < 0)
		return tell_fail(&e);
	int r = serve(&h, &o, argv[0], stop, &e);
	site_close(&h);
	return r < 0 ? tell_fail(&e) : 0;
}
