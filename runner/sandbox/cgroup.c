/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/buf.h"
#include "runner/sandbox/cgroup.h"
#include "runner/sandbox/cgfile.h"

#define TRIES 200		/* 10 ms each */

const char *cgroup_word(enum cgroup_kind kind)
{
	switch (kind) {
	case CGROUP_NONE:
		break;
	case CGROUP_V1:
		return "cgroup v1";
	case CGROUP_V2:
		return "cgroup v2";
	}
	return "rlimits and a watchdog";
}

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };
	nanosleep(&t, NULL);
}

/* --- a group -------------------------------------------------------------- */

static int add_dir(struct cgroup *g, const char *parent, const char *name)
{
	for (int i = 0; i < g->n; i++) {	/* version 2: one for all */
		size_t n = strlen(parent);
		if (!strncmp(g->dir[i], parent, n) && g->dir[i][n] == '/')
			return i;
	}
	int at = g->n;
	if (snprintf(g->dir[at], PATH_MAX, "%s/%s", parent, name) >= PATH_MAX)
		return -1;
	/* One of that name is from a pid that was ours by chance. */
	if (mkdir(g->dir[at], 0755) < 0 &&
	    (errno != EEXIST || rmdir(g->dir[at]) < 0 ||
	     mkdir(g->dir[at], 0755) < 0))
		return -1;
	g->n++;
	g->enter[at] = cgfile_open(g->dir[at], "cgroup.procs", O_WRONLY);
	return g->enter[at] < 0 ? -1 : at;
}

static int limit_v1(struct cgroup *g, const struct plan_limits *l, int cpu)
{
	const char *dir = g->dir[g->memory];
	if (l->memory_bytes &&
	    cgfile_put_number(dir, "memory.limit_in_bytes",
			      l->memory_bytes) < 0)
		return -1;
	/* Where swap is accounted, there is none of it. */
	if (l->memory_bytes)
		(void)cgfile_put_number(dir, "memory.memsw.limit_in_bytes",
				 l->memory_bytes);
	if (g->pids >= 0 && l->tasks &&
	    cgfile_put_number(g->dir[g->pids], "pids.max", l->tasks) < 0)
		return -1;
	if (cpu >= 0)
		(void)cgfile_put(g->dir[cpu], "cpu.shares", "512");
	return 0;
}

static int limit_v2(struct cgroup *g, const struct plan_limits *l)
{
	const char *dir = g->dir[g->memory];
	if (l->memory_bytes &&
	    cgfile_put_number(dir, "memory.max", l->memory_bytes) < 0)
		return -1;
	(void)cgfile_put(dir, "memory.swap.max", "0");
	(void)cgfile_put(dir, "memory.oom.group", "0");
	(void)cgfile_put(dir, "cpu.weight", "50");
	if (l->tasks && cgfile_put_number(dir, "pids.max", l->tasks) < 0)
		return -1;
	return 0;
}

int cgroup_make(struct cgroup *g, const struct cgroup_host *h,
		const char *name, const struct plan_limits *limits,
		struct err *e)
{
	*g = (struct cgroup){ .kind = h->kind, .memory = -1, .pids = -1,
			      .enter = { -1, -1, -1 } };
	if (h->kind == CGROUP_NONE)
		return 0;
	int at[CGROUP_PARTS];
	bool fine = true;
	for (int i = 0; fine && i < CGROUP_PARTS; i++) {
		at[i] = h->dir[i][0] ? add_dir(g, h->dir[i], name) : -1;
		fine = !h->dir[i][0] || at[i] >= 0;
	}
	if (fine) {
		g->memory = at[CGROUP_MEMORY];
		g->pids = at[CGROUP_PIDS];
		fine = (h->kind == CGROUP_V2
				? limit_v2(g, limits)
				: limit_v1(g, limits, at[CGROUP_CPU])) == 0;
	}
	if (fine)
		return 0;
	err_sys(e, "cannot make the job's control group");
	cgroup_close(g);
	cgroup_remove(g);
	return -1;
}

int cgroup_enter(const struct cgroup *g)
{
	for (int i = 0; i < g->n; i++)
		if (write(g->enter[i], "0", 1) != 1)
			return -1;
	return 0;
}

void cgroup_close(struct cgroup *g)
{
	for (int i = 0; i < g->n; i++) {
		if (g->enter[i] >= 0)
			close(g->enter[i]);
		g->enter[i] = -1;
	}
}

void cgroup_look(const struct cgroup *g, struct cgroup_seen *seen)
{
	*seen = (struct cgroup_seen){ 0 };
	if (g->kind == CGROUP_NONE || g->memory < 0)
		return;
	const char *dir = g->dir[g->memory];
	if (g->kind == CGROUP_V2) {
		seen->peak_bytes = cgfile_number(dir, "memory.peak");
		seen->memory_kills =
			cgfile_value(dir, "memory.events", "oom_kill");
	} else {
		seen->peak_bytes =
			cgfile_number(dir, "memory.max_usage_in_bytes");
		seen->memory_kills =
			cgfile_value(dir, "memory.oom_control", "oom_kill");
	}
	if (g->pids >= 0)
		seen->task_refusals =
			cgfile_value(g->dir[g->pids], "pids.events", "max");
}

/* --- the end of a group --------------------------------------------------- */

/* Signals each member; gives how many there were. */
static int kill_members(const char *dir)
{
	char text[4096];
	int n = 0;
	if (!cgfile_get(dir, "cgroup.procs", text, sizeof text))
		return 0;
	char *line = text;
	while (*line) {
		char *end;
		long pid = strtol(line, &end, 10);
		if (end == line || *end != '\n')
			break;	/* cut: the next round has it */
		if (pid > 1)
			kill((pid_t)pid, SIGKILL);
		n++;
		line = end + 1;
	}
	return n;
}

bool cgroup_kill(const struct cgroup *g)
{
	for (int i = 0; i < g->n; i++) {
		int left = 1;
		for (int try = 0; left && try < TRIES; try++) {
			if (g->kind == CGROUP_V2)
				(void)cgfile_put(g->dir[i], "cgroup.kill", "1");
			left = kill_members(g->dir[i]);
			if (left)
				pause_ms(10);
		}
		if (left)
			return false;
	}
	return true;
}

static void remove_dir(const char *dir)
{
	for (int try = 0; try < TRIES && rmdir(dir) < 0 && errno == EBUSY;
	     try++)
		pause_ms(10);
}

void cgroup_remove(const struct cgroup *g)
{
	for (int i = 0; i < g->n; i++)
		remove_dir(g->dir[i]);
}

/* "airlox-runner.NS.", as far as it is the same for all of a namespace. */
static void put_prefix(char to[CGROUP_NAME_MAX])
{
	struct stat st;
	uint64_t ns = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
	snprintf(to, CGROUP_NAME_MAX, "airlox-runner.%llu.",
		 (unsigned long long)ns);
}

void cgroup_name(char to[CGROUP_NAME_MAX], const char *word)
{
	put_prefix(to);
	size_t n = strlen(to);
	snprintf(to + n, CGROUP_NAME_MAX - n, "%ld.%s", (long)getpid(), word);
}

/* Of this namespace, and of a PID that is no more. */
static bool is_stale(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);
	if (strncmp(name, prefix, n) != 0)
		return false;
	char *end;
	long pid = strtol(name + n, &end, 10);
	return pid > 1 && *end == '.' && kill((pid_t)pid, 0) < 0 &&
	       errno == ESRCH;
}

void cgroup_sweep(const struct cgroup_host *h)
{
	char prefix[CGROUP_NAME_MAX];
	put_prefix(prefix);
	for (int i = 0; i < CGROUP_PARTS; i++) {
		if (!h->dir[i][0])
			continue;
		DIR *d = opendir(h->dir[i]);
		struct dirent *de;
		while (d && (de = readdir(d))) {
			struct cgroup g = { .kind = h->kind, .n = 1 };
			if (!is_stale(de->d_name, prefix) ||
			    snprintf(g.dir[0], PATH_MAX, "%s/%s", h->dir[i],
				     de->d_name) >= PATH_MAX)
				continue;
			if (cgroup_kill(&g))
				cgroup_remove(&g);
		}
		if (d)
			closedir(d);
	}
}
