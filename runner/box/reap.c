/* SPDX-License-Identifier: MIT */
#include "runner/box/reap.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runner/box/account.h"
#include "runner/box/rundir.h"
#include "runner/box/say.h"
#include "runner/sandbox/cgroup.h"
#include "runner/sandbox/scratch.h"
#include "runner/sandbox/session.h"

#define END_MS 3000	/* processes end by themselves when their owner does */
#define POLL_MS 20

static const char help[] =
	"usage: airlox-box reap [--yes]\n\n"
	"Clears what killed command lines left, and finishes their "
	"records.\n\n"
	"  --yes     do it; without it, only say what would be done\n";

struct reaping {
	bool yes;
	size_t found;
	int r;			/* exit code */
};

/* Waits for one that is ending, and then does not wait any longer. */
static void end_process(const struct rundir_process *p)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	for (int ms = 0; ms < END_MS; ms += POLL_MS) {
		if (rundir_signal(p, 0, NULL) < 0)
			return;
		nanosleep(&pause, NULL);
	}
	(void)rundir_signal(p, SIGKILL, NULL);
}

static int finish_record(struct rundir *d, struct buf *name, struct err *e)
{
	struct account a = { .egress = -1, .place = -1 };
	const char *to = d->record[0] ? d->record : NULL;
	int rc = account_finish(&a, d, e);
	if (rc == 0)
		rc = account_write(&a, to, name, e);
	account_free(&a);
	return rc;
}

/* The directory that holds the box's; by its lock it is known to be left. */
static void clear_scratch(const struct rundir *d)
{
	char base[PATH_MAX];
	strcpy(base, d->scratch);
	char *slash = strrchr(base, '/');
	if (!slash)
		return;
	slash[slash == base] = 0;
	scratch_sweep(base);
}

static int clear_run(struct rundir *d, struct err *e)
{
	cleanup_buf struct buf name = { 0 };
	end_process(&d->keeper);
	(void)session_kill((pid_t)d->keeper.pid, d->keeper.born);
	end_process(&d->broker);
	clear_scratch(d);
	/* no chain: none was wanted, or it was killed before it had one */
	bool has = faccessat(d->dir, RUNDIR_RECORD, F_OK, 0) == 0;
	if (has && finish_record(d, &name, e) < 0) {
		rundir_close(d);	/* for the next time */
		return err_prefix(e, "run %s is kept: no record", d->run);
	}
	say_note("cleared run %s%s%s", d->run, has ? ", its record is " : "",
		 has ? buf_cstr(&name) : "");
	rundir_remove(d);
	return 0;
}

static int reap_run(void *arg, const char *run)
{
	struct reaping *r = arg;
	struct rundir d;
	struct err e = { 0 };
	int rc = rundir_open(&d, run, &e);
	if ((rc < 0 && e.code != ERR_INVALID) || rundir_take(&d, &e) < 0) {
		rundir_close(&d);	/* it is over, or it lives */
		return 0;
	}
	r->found++;
	if (!r->yes) {
		say_note("would clear run %s (%s)%s%s", run, d.command,
			 d.record[0] ? " and finish " : "", d.record);
		rundir_close(&d);
	} else if (clear_run(&d, &e) < 0) {
		r->r = say_fail(&e);
	}
	return 0;
}

/* A group is known to be left by its name: the owner's number is in it. */
static void clear_groups(void)
{
	struct cgroup_host h = { 0 };
	cgroup_find(&h);
	cgroup_sweep(&h);
}

int reap_main(int argc, char **argv)
{
	struct reaping r = { 0 };
	struct err e = { 0 };
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			say_text(bytes_str(help));
			return 0;
		}
		if (strcmp(argv[i], "--yes") != 0) {
			err_set(&e, ERR_USAGE, "reap takes no %s; see "
				"airlox-box reap --help", argv[i]);
			return say_fail(&e);
		}
		r.yes = true;
	}
	if (rundir_each(reap_run, &r, &e) < 0)
		return say_fail(&e);
	if (r.found && r.yes)
		clear_groups();
	if (!r.found)
		say_note("nothing is left");
	else if (!r.yes)
		say_note("airlox-box reap --yes does it");
	return r.r;
}
