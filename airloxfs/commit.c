/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "airloxfs/commit.h"
#include "airloxfs/proc.h"

static bool is_writer(const struct outgoing *f, pid_t process)
{
	if (process == f->opener)
		return true;
	for (int i = 0; i < OUT_WRITERS; i++)
		if (f->writers[i] == process)
			return true;
	return false;
}

void commit_wrote(struct outgoing *f, pid_t tid)
{
	/* most writes come from one thread: look it up once */
	if (f->writers[0] == tid)
		return;
	pid_t process = proc_tgid(tid);
	int i = 0;
	while (i < OUT_WRITERS - 1 && f->writers[i] &&
	       f->writers[i] != process)
		i++;
	memmove(f->writers + 1, f->writers, (size_t)i * sizeof *f->writers);
	f->writers[0] = process;
}

static bool held_elsewhere(const struct outgoing *f, uint64_t ino,
			   const struct proc_flusher *flusher, pid_t tid)
{
	bool other = flusher->tgid != f->opener;
	if (flusher->exiting || !flusher->alive ||
	    (other && !proc_is_alive(f->opener)))
		return proc_anyone_holds(geteuid(), ino);
	return proc_holds(tid, ino) || (other && proc_holds(f->opener, ino));
}

enum commit commit_decide(struct outgoing *f, uint64_t ino, const char *name,
			  pid_t tid)
{
	struct proc_flusher flusher;
	struct err e;
	if (!f->dirty || f->temporary || !vault_size(f->vault) ||
	    out_is_draft_name(name))
		return COMMIT_NOT;
	if (f->write_errno)
		return COMMIT_FAILED;
	proc_look(&flusher, tid);
	if (flusher.signal && is_writer(f, flusher.tgid)) {
		f->poisoned = f->header_stale = true;
		err_set(&e, ERR_SYS, "its writer was killed by signal %d: "
			"write it anew, or echo 'send %s' > ctl",
			flusher.signal, name);
		snprintf(f->error, sizeof f->error, "%s", e.why);
		return COMMIT_NOT;
	}
	if (f->poisoned || held_elsewhere(f, ino, &flusher, tid))
		return COMMIT_NOT;
	return COMMIT_NOW;
}
