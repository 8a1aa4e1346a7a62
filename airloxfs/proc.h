/* SPDX-License-Identifier: MIT
 *
 * proc: what /proc says of the program that flushes a file: does anybody
 * still hold it open, and was its writer killed?  (The commit rule,
 * docs/DESIGN.md.)  Nothing here touches the mount: descriptors are known by
 * the `ino:` line of their fdinfo, never by stat. */
#ifndef AIRLOXFS_PROC_H
#define AIRLOXFS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_flusher {
	bool alive;	/* /proc/TID could be read */
	bool exiting;	/* PF_EXITING: the flush comes from its end */
	int signal;	/* the signal it is dying of, or 0 */
	pid_t tgid;	/* the process of this thread; tid if unknown */
};

/* tid as FUSE gives it. */
void proc_look(struct proc_flusher *out, pid_t tid);
bool proc_is_alive(pid_t pid);
pid_t proc_tgid(pid_t tid);	/* tid itself if it cannot be told */

/* The pid namespace of a thread that is not in ours, as a number; else 0: what
 * a sandbox writes is told apart by it. */
uint64_t proc_pid_ns(pid_t tid);

/* Whether the process (or thread) has a descriptor open for writing whose
 * inode number is ino. */
bool proc_holds(pid_t pid, uint64_t ino);
/* The same for any process of this uid but our own. */
bool proc_anyone_holds(uid_t uid, uint64_t ino);

#endif
