/* SPDX-License-Identifier: MIT
 *
 * plan: what a sandbox is made of, as data.
 *
 * plan_make turns mounts, a command, its environment and its limits into a
 * bubblewrap command line, the descriptors it needs at fixed numbers, and the
 * resource limits.  It touches nothing; box.c executes it.  What is common to
 * every sandbox is here and nowhere else: all namespaces unshared, nested user
 * namespaces forbidden, no network, no capability, a new session, an
 * environment from nothing, a root that is read-only in the end.
 *
 * Source: bwrap(1) of 0.8.0, the oldest that has --disable-userns. */
#ifndef AIRLOX_SANDBOX_PLAN_H
#define AIRLOX_SANDBOX_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum plan_kind {
	PLAN_RO,	/* `from` of the host, read-only at `to` */
	PLAN_RW,	/* the same, writable */
	PLAN_DEV,	/* a device node of the host */
	PLAN_MASK,	/* /dev/null over `to`, which must be there */
	PLAN_TMPFS,	/* empty, at most size_bytes */
	PLAN_DIR,	/* an empty directory of the root */
	PLAN_LINK,	/* a symlink `to` that points at `from` */
	PLAN_FILE,	/* a file of the root whose content is `from` */
	PLAN_PROC,	/* /proc of the sandbox's own pid namespace */
	PLAN_SEAL	/* nothing more is written on the mount `to` */
};

/* In this order they are made; strings are borrowed. */
struct plan_mount {
	enum plan_kind kind;
	const char *from;
	const char *to;
	uint64_t size_bytes;	/* PLAN_TMPFS */
};

/* 0 means no such limit. */
struct plan_limits {
	uint32_t timeout_ms;	/* wall clock */
	uint64_t memory_bytes;	/* of all processes, tmpfs included */
	uint64_t disk_bytes;	/* what it may add to its directories */
	uint32_t tasks;		/* processes and threads */
	uint32_t files;		/* descriptors, each process */
	uint32_t entries;	/* files and directories in its directories */
	bool by_rlimit;		/* no cgroup holds memory: rlimits must */
};

struct plan_ask {
	const struct plan_mount *mounts;
	size_t n_mounts;
	const char *const *env;		/* name, value, ..., NULL */
	const char *const *command;	/* argv, NULL-terminated */
	const char *work_dir;		/* within the sandbox */
	const char *host_name;
	struct plan_limits limits;
};

enum plan_use {
	PLAN_FD_SECCOMP,	/* the filter, from seccomp.h */
	PLAN_FD_INFO,		/* bubblewrap says the pid of its child */
	PLAN_FD_BLOCK,		/* the sandbox starts when this is written */
	PLAN_FD_DATA		/* a file with `data` */
};

#define PLAN_FD_FIRST 3
#define PLAN_FDS 12
struct plan_fd {
	int at;			/* its number in bubblewrap */
	enum plan_use use;
	const char *data;	/* borrowed from the ask */
};

/* A limit that would hinder bubblewrap itself, or would count what is not of
 * the sandbox, is set when bubblewrap is ready: inside. */
#define PLAN_RLIMITS 10
struct plan_rlimit {
	int resource;		/* RLIMIT_... */
	uint64_t value;
	bool inside;
};

struct plan {
	char **argv;		/* argv[0] is "bwrap"; NULL-terminated */
	size_t argc;
	struct plan_fd fds[PLAN_FDS];
	size_t n_fds;
	struct plan_rlimit rlimits[PLAN_RLIMITS];
	size_t n_rlimits;
	struct plan_limits limits;
};

/* Memory: ERR_MEMORY; too many files: ERR_INVALID.  p is to be freed, also
 * after a failure. */
int plan_make(struct plan *p, const struct plan_ask *ask, struct err *e);
void plan_free(struct plan *p);

/* /proc without what tells of the host, /dev with five devices, /tmp and
 * /dev/shm of tmp_bytes each; gives how many of `to` (at least PLAN_BASE)
 * were filled.  masks: names that exist in /proc, NULL-terminated. */
#define PLAN_BASE 40
size_t plan_base(struct plan_mount to[PLAN_BASE], const char *const *masks,
		 uint64_t tmp_bytes);

#endif
