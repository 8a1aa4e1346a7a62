/* SPDX-License-Identifier: MIT
 *
 * launch: a box with a broker as its only way out, from a policy to the
 * record: `airlox-box run POLICY -- COMMAND...`, and whatever else drives what
 * is in one. */
#ifndef RUNNER_BOX_LAUNCH_H
#define RUNNER_BOX_LAUNCH_H

#include <limits.h>
#include <signal.h>

#include "runner/box/account.h"
#include "runner/box/doors.h"
#include "runner/box/files.h"
#include "runner/box/flags.h"
#include "runner/box/room.h"
#include "runner/box/rundir.h"
#include "runner/box/way.h"

struct launch_use;

struct launch {
	struct flags o;
	struct policy *policy;
	struct buf text;	/* the policy's */
	struct site site;
	struct scratch scratch;
	struct way way;
	struct room room;
	struct plan plan;
	struct box box;
	struct doors doors;
	struct account account;
	struct session session;
	struct files files;
	struct rundir run;
	int egress, journal;	/* the box's copy of the account, and ours */
	int64_t said_bytes;
	char egress_path[PATH_MAX + 64];
	bool has_site, has_scratch, has_box;
	bool keeps_run;		/* its record could not be written: for reap */
	const struct launch_use *use;
	const char *const *inner;	/* what is run, where it is not the
					 * command line's */
};

/* What differs: how the box is furnished, and who hears what it says. */
struct launch_use {
	bool talks;		/* its standard input is box.in, not empty */
	/* More of the room, and `inner`; NULL: nothing. */
	int (*furnish)(struct launch *l, struct err *e);
	/* From the start to the end of the box; box_ended is its to call. */
	void (*drive)(struct launch *l, struct box_end *end);
	int (*verdict)(struct launch *l, const struct box_end *end);
};

#define LAUNCH_INIT { .egress = -1, .journal = -1, \
	.run = { .runs = -1, .dir = -1, .lock = -1 }, \
	.session = { .clerk = -1, .from = -1 }, \
	.account = { .egress = -1, .place = -1 }, .box = { .keeper = -1 }, \
	.way = { .broker = -1, .control = -1 } }

/* The signal that asked for the end, or 0. */
extern volatile sig_atomic_t launch_stop;
/* A box for l->o, driven by `use`; the exit code, or -1 with e filled.
 * launch_clean_up in any case. */
int launch_box(struct launch *l, const struct launch_use *use, struct err *e);
void launch_clean_up(struct launch *l);
/* The exit code of an end, said where a person should know more. */
int launch_verdict(const struct box_end *end);
/* As much of n as the policy's output has left. */
size_t launch_within_output(struct launch *l, size_t n);

int launch_main(int argc, char **argv);	/* exit code */

#endif
