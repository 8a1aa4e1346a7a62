/* SPDX-License-Identifier: MIT */
#include "runner/box/begin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"

/* Its directory under its real name: nothing that becomes a link meanwhile is
 * on the way to it. */
static void resolve(char record[PATH_MAX])
{
	cleanup_buf struct buf b = { 0 };
	char *slash = strrchr(record, '/'), real[PATH_MAX];
	*slash = 0;
	bool there = realpath(*record ? record : "/", real);
	*slash = '/';
	if (!there)
		return;
	buf_addf(&b, "%s%s", real[1] ? real : "", slash);
	const char *s = buf_cstr(&b);
	if (s && b.len < PATH_MAX)
		strcpy(record, s);
}

/* Where the record will be, wherever who finishes it is then; one that is too
 * long for that is "". */
static void name_record(struct rundir *d, const struct flags *o)
{
	cleanup_buf struct buf b = { 0 };
	char here[PATH_MAX];
	if (o->no_record)
		return;
	if (!o->record || *o->record != '/')
		buf_addf(&b, "%s/", getcwd(here, sizeof here) ? here : "");
	if (o->record)
		buf_add_str(&b, o->record);
	else
		buf_addf(&b, "airlox-%s.html", d->run);
	const char *s = buf_cstr(&b);
	if (!s || strlen(s) >= sizeof d->record)
		return;
	strcpy(d->record, s);
	resolve(d->record);
}

static void name_command(struct rundir *d, char *const *command)
{
	cleanup_buf struct buf b = { 0 };
	for (; *command && b.len < sizeof d->command; command++) {
		buf_add_str(&b, b.len ? " " : "");
		buf_add_str(&b, *command);
	}
	const char *s = buf_cstr(&b);
	snprintf(d->command, sizeof d->command, "%s", s ? s : "");
}

int begin_run(struct rundir *d, const struct flags *o, int *journal,
	      struct err *e)
{
	if (rundir_make(d, e) < 0)
		return -1;
	snprintf(d->policy, sizeof d->policy, "%s", o->policy);
	name_command(d, o->command);
	name_record(d, o);
	*journal = openat(d->dir, RUNDIR_EGRESS, O_WRONLY | O_CREAT | O_EXCL |
			  O_APPEND | O_CLOEXEC, 0600);
	if (*journal < 0)
		return err_sys(e, "cannot write in the state directory");
	return rundir_put(d, e);
}
