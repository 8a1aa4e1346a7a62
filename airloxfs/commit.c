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

static bool held_elsewhere(struct mount *m, const struct outgoing *f,
			   const struct node *n,
			   const struct proc_flusher *flusher, pid_t tid)
{
	struct proc_flusher opener;
	(void)m;
	proc_look(&opener, f->opener);
	if (flusher->exiting || !flusher->alive || !opener.alive)
		return proc_anyone_holds(geteuid(), n->ino);
	return proc_holds(tid, n->ino) ||
	       (flusher->tgid != f->opener && proc_holds(f->opener, n->ino));
}

enum commit commit_decide(struct mount *m, struct outgoing *f,
			  const struct node *n, pid_t tid)
{
	struct proc_flusher flusher;
	if (!f->dirty || f->temporary || !vault_size(f->vault) ||
	    out_is_draft_name(n->name))
		return COMMIT_NOT;
	if (f->write_errno)
		return COMMIT_FAILED;
	proc_look(&flusher, tid);
	if (flusher.signal && is_writer(f, flusher.tgid)) {
		f->poisoned = true;
		snprintf(f->error, sizeof f->error, "its writer was killed by "
			 "signal %d: write it anew, or echo 'send %s' > ctl",
			 flusher.signal, n->name);
		return COMMIT_NOT;
	}
	if (f->poisoned || held_elsewhere(m, f, n, &flusher, tid))
		return COMMIT_NOT;
	return COMMIT_NOW;
}
