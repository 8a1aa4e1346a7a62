/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/buf.h"
#include "runner/sandbox/plan.h"

/* One process may map, and one file may be, more than all may use together, so
 * that the watchdog is the one that says so. */
#define SLACK_BYTES (UINT64_C(256) << 20)

static const char *const always[] = {
	"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net",
	"--unshare-uts", "--unshare-cgroup", "--disable-userns",
	"--uid", "1000", "--gid", "1000", "--cap-drop", "ALL",
	"--new-session", "--die-with-parent", "--clearenv", NULL
};

struct maker {
	struct plan *p;
	size_t cap;
	bool failed;
};

static void put(struct maker *m, const char *word)
{
	struct plan *p = m->p;
	if (m->failed)
		return;
	if (p->argc + 1 >= m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 128;
		char **v = realloc(p->argv, cap * sizeof *v);
		m->failed = !v;
		if (!v)
			return;
		p->argv = v;
		m->cap = cap;
	}
	p->argv[p->argc] = strdup(word);
	m->failed = !p->argv[p->argc];
	if (!m->failed)
		p->argv[++p->argc] = NULL;
}

static void put_all(struct maker *m, const char *const *words)
{
	for (; *words; words++)
		put(m, *words);
}

static void put3(struct maker *m, const char *a, const char *b, const char *c)
{
	put(m, a);
	put(m, b);
	put(m, c);
}

/* A flag whose value is a descriptor, which is in the plan from here on. */
static void put_fd(struct maker *m, const char *flag, enum plan_use use,
		   const char *data)
{
	struct plan *p = m->p;
	char number[12];
	if (p->n_fds == PLAN_FDS) {
		m->failed = true;
		return;
	}
	int at = PLAN_FD_FIRST + (int)p->n_fds;
	p->fds[p->n_fds++] = (struct plan_fd){ at, use, data };
	snprintf(number, sizeof number, "%d", at);
	put(m, flag);
	put(m, number);
}

static void put_tmpfs(struct maker *m, const struct plan_mount *at)
{
	char size[24];
	snprintf(size, sizeof size, "%" PRIu64, at->size_bytes);
	put3(m, "--perms", "0700", "--size");
	put3(m, size, "--tmpfs", at->to);
}

static void put_mount(struct maker *m, const struct plan_mount *at)
{
	switch (at->kind) {
	case PLAN_RO:
		return put3(m, "--ro-bind", at->from, at->to);
	case PLAN_RW:
		return put3(m, "--bind", at->from, at->to);
	case PLAN_DEV:
		return put3(m, "--dev-bind", at->from, at->to);
	case PLAN_MASK:
		return put3(m, "--ro-bind", "/dev/null", at->to);
	case PLAN_TMPFS:
		return put_tmpfs(m, at);
	case PLAN_DIR:
		put(m, "--dir");
		return put(m, at->to);
	case PLAN_LINK:
		return put3(m, "--symlink", at->from, at->to);
	case PLAN_FILE:
		put(m, "--perms");
		put(m, "0444");
		put_fd(m, "--file", PLAN_FD_DATA, at->from);
		return put(m, at->to);
	case PLAN_PROC:
		put(m, "--proc");
		return put(m, at->to);
	case PLAN_SEAL:
		put(m, "--remount-ro");
		return put(m, at->to);
	}
}

static void limit(struct plan *p, int resource, uint64_t value, bool inside)
{
	p->rlimits[p->n_rlimits++] =
		(struct plan_rlimit){ resource, value, inside };
}

static void put_rlimits(struct plan *p, const struct plan_limits *l)
{
	limit(p, RLIMIT_CORE, 0, false);
	limit(p, RLIMIT_MSGQUEUE, 0, false);
	limit(p, RLIMIT_MEMLOCK, 1 << 20, false);
	limit(p, RLIMIT_NICE, 0, false);
	limit(p, RLIMIT_RTPRIO, 0, false);
	if (l->files)
		limit(p, RLIMIT_NOFILE, l->files, false);
	if (l->disk_bytes)
		limit(p, RLIMIT_FSIZE, l->disk_bytes + SLACK_BYTES, true);
	/* Counted in the sandbox's own user namespace: Linux 5.14 on. */
	if (l->tasks)
		limit(p, RLIMIT_NPROC, l->tasks, true);
	if (l->by_rlimit && l->memory_bytes)
		limit(p, RLIMIT_DATA, l->memory_bytes + SLACK_BYTES, true);
}

int plan_make(struct plan *p, const struct plan_ask *ask, struct err *e)
{
	*p = (struct plan){ .limits = ask->limits };
	struct maker m = { .p = p };

	put(&m, "bwrap");
	put_all(&m, always);
	put3(&m, "--hostname", ask->host_name, "--chdir");
	put(&m, ask->work_dir);
	put_fd(&m, "--seccomp", PLAN_FD_SECCOMP, NULL);
	put_fd(&m, "--info-fd", PLAN_FD_INFO, NULL);
	put_fd(&m, "--block-fd", PLAN_FD_BLOCK, NULL);
	for (size_t i = 0; i < ask->n_mounts; i++)
		put_mount(&m, &ask->mounts[i]);
	put3(&m, "--remount-ro", "/", "--unsetenv");
	put(&m, "PWD");
	for (const char *const *v = ask->env; *v; v += 2)
		put3(&m, "--setenv", v[0], v[1]);
	put(&m, "--");
	put_all(&m, ask->command);
	put_rlimits(p, &ask->limits);
	return m.failed ? err_set(e, ERR_MEMORY, "no memory for a sandbox")
			: 0;
}

void plan_free(struct plan *p)
{
	for (size_t i = 0; i < p->argc; i++)
		free(p->argv[i]);
	free(p->argv);
	*p = (struct plan){ 0 };
}

size_t plan_base(struct plan_mount to[PLAN_BASE], const char *const *masks,
		 uint64_t tmp_bytes)
{
	static const struct plan_mount devices[] = {
		{ PLAN_TMPFS, NULL, "/dev", 64 << 10 },
		{ PLAN_DEV, "/dev/null", "/dev/null", 0 },
		{ PLAN_DEV, "/dev/zero", "/dev/zero", 0 },
		{ PLAN_DEV, "/dev/full", "/dev/full", 0 },
		{ PLAN_DEV, "/dev/random", "/dev/random", 0 },
		{ PLAN_DEV, "/dev/urandom", "/dev/urandom", 0 },
		{ PLAN_LINK, "/proc/self/fd", "/dev/fd", 0 },
		{ PLAN_LINK, "/proc/self/fd/0", "/dev/stdin", 0 },
		{ PLAN_LINK, "/proc/self/fd/1", "/dev/stdout", 0 },
		{ PLAN_LINK, "/proc/self/fd/2", "/dev/stderr", 0 },
		{ PLAN_DIR, NULL, "/dev/shm", 0 },
		{ PLAN_SEAL, NULL, "/dev", 0 },
	};
	size_t n = 0;
	to[n++] = (struct plan_mount){ PLAN_PROC, NULL, "/proc", 0 };
	for (; *masks && n < 20; masks++)
		to[n++] = (struct plan_mount){ PLAN_MASK, NULL, *masks, 0 };
	memcpy(to + n, devices, sizeof devices);
	n += sizeof devices / sizeof devices[0];
	to[n++] = (struct plan_mount){ PLAN_TMPFS, NULL, "/dev/shm",
				       tmp_bytes };
	to[n++] = (struct plan_mount){ PLAN_TMPFS, NULL, "/tmp", tmp_bytes };
	return n;
}
