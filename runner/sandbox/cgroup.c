/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/buf.h"
#include "runner/sandbox/cgroup.h"

#define NAME "airlox-runner."
#define SELF "airlox-runner-self"
#define TRIES 200		/* 10 ms each */

static const char *const part_name[CGROUP_PARTS] = {
	[CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
};

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

/* --- files of a group ----------------------------------------------------- */

static int open_file(const char *dir, const char *name, int flags)
{
	char path[PATH_MAX + 256];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >=
	    (int)sizeof path)
		return -1;
	return open(path, flags | O_CLOEXEC);
}

static int put(const char *dir, const char *name, const char *text)
{
	cleanup_fd int fd = open_file(dir, name, O_WRONLY);
	size_t n = strlen(text);
	return fd >= 0 && write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

static int put_number(const char *dir, const char *name, uint64_t v)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, v);
	return put(dir, name, text);
}

static bool get(const char *dir, const char *name, char *to, size_t cap)
{
	cleanup_fd int fd = open_file(dir, name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, to, cap - 1);
	to[n > 0 ? n : 0] = 0;
	return n >= 0;
}

static uint64_t get_number(const char *dir, const char *name)
{
	char text[64];
	return get(dir, name, text, sizeof text) ? strtoull(text, NULL, 10)
						 : 0;
}

/* "key N" on a line of its own. */
static uint64_t get_value(const char *dir, const char *name, const char *key)
{
	char text[1024];
	size_t n = strlen(key);
	if (!get(dir, name, text, sizeof text))
		return 0;
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && line[n] == ' ')
			return strtoull(line + n, NULL, 10);
	}
	return 0;
}

/* --- where we are --------------------------------------------------------- */

static bool has_word(const char *list, const char *word, char sep)
{
	size_t n = strlen(word);
	for (const char *p = list; p && *p; p = strchr(p, sep)) {
		p += *p == sep;
		if (!strncmp(p, word, n) && (!p[n] || p[n] == sep ||
					     p[n] == '\n'))
			return true;
	}
	return false;
}

/* The mount point of a hierarchy; version 2 has no controller. */
static bool find_mount(const char *type, const char *controller,
		       char to[PATH_MAX])
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	while (f && !found && getline(&line, &cap, f) > 0) {
		char at[2048], kind[64], options[1024];
		if (sscanf(line, "%*s %2047s %63s %1023s", at, kind,
			   options) != 3)
			continue;
		found = !strcmp(kind, type) &&
			(!controller || has_word(options, controller, ','));
		if (found)
			snprintf(to, PATH_MAX, "%s", at);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Our own group in it: a line "N:list:/path" of /proc/self/cgroup. */
static bool find_own(const char *controller, char to[PATH_MAX])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	while (f && !found && getline(&line, &cap, f) > 0) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		found = controller ? has_word(list + 1, controller, ',')
				   : !list[1];
		if (found)
			snprintf(to, PATH_MAX, "%s", path);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool find_dir(const char *type, const char *controller,
		     char to[PATH_MAX])
{
	char mount[PATH_MAX], own[PATH_MAX];
	if (!find_mount(type, controller, mount) || !find_own(controller, own))
		return false;
	size_t n = strlen(mount);
	if (n + strlen(own) + 128 > PATH_MAX)
		return false;
	memcpy(to, mount, n + 1);
	if (strcmp(own, "/"))
		strcpy(to + n, own);
	return access(to, F_OK) == 0;
}

/* --- what this host offers ------------------------------------------------ */

/* True if a group made here has all these files, and its limit holds. */
static bool try_group(const char *dir, const char *file)
{
	char path[PATH_MAX + 64];
	snprintf(path, sizeof path, "%s/" NAME "%ld.try", dir, (long)getpid());
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return false;
	bool fine = put_number(path, file, 1 << 20) == 0;
	rmdir(path);
	return fine;
}

/* A group with processes in it cannot give controllers to groups below it,
 * unless it is the root: whoever is here moves one down. */
static bool open_v2(const char *dir)
{
	char self[PATH_MAX + 64], list[256];
	if (put(dir, "cgroup.subtree_control", "+memory +pids") == 0) {
		(void)put(dir, "cgroup.subtree_control", "+cpu");
		return true;
	}
	snprintf(self, sizeof self, "%s/" SELF, dir);
	if (mkdir(self, 0755) < 0 && errno != EEXIST)
		return false;
	if (put(self, "cgroup.procs", "0") < 0 ||
	    put(dir, "cgroup.subtree_control", "+memory +pids") < 0) {
		(void)put(dir, "cgroup.procs", "0");
		rmdir(self);
		return false;
	}
	(void)put(dir, "cgroup.subtree_control", "+cpu");
	return get(dir, "cgroup.subtree_control", list, sizeof list) &&
	       has_word(list, "memory", ' ');
}

static bool try_v2(const char *dir)
{
	char list[256];
	return get(dir, "cgroup.controllers", list, sizeof list) &&
	       has_word(list, "memory", ' ') && has_word(list, "pids", ' ') &&
	       open_v2(dir) && try_group(dir, "memory.max");
}

static bool find_v2(struct cgroup_host *h)
{
	char *dir = h->dir[CGROUP_MEMORY], *end;
	if (!find_dir("cgroup2", NULL, dir))
		return false;
	/* A runner that started before in this group moved us, too. */
	end = strrchr(dir, '/');
	if (end && !strcmp(end + 1, SELF))
		*end = 0;
	/* In a shell of root's, others are in our group: then at the top. */
	if (!try_v2(dir) &&
	    (geteuid() != 0 || !find_mount("cgroup2", NULL, dir) ||
	     !try_v2(dir)))
		return false;
	memcpy(h->dir[CGROUP_PIDS], dir, PATH_MAX);
	memcpy(h->dir[CGROUP_CPU], dir, PATH_MAX);
	h->kind = CGROUP_V2;
	return true;
}

static bool find_v1(struct cgroup_host *h)
{
	static const char *const files[CGROUP_PARTS] = {
		[CGROUP_MEMORY] = "memory.limit_in_bytes",
		[CGROUP_PIDS] = "pids.max", [CGROUP_CPU] = "cpu.shares",
	};
	for (int i = 0; i < CGROUP_PARTS; i++) {
		char *dir = h->dir[i];
		if (!find_dir("cgroup", part_name[i], dir) ||
		    !try_group(dir, files[i]))
			dir[0] = 0;
	}
	if (!h->dir[CGROUP_MEMORY][0])
		return false;
	h->kind = CGROUP_V1;
	return true;
}

void cgroup_find(struct cgroup_host *h)
{
	*h = (struct cgroup_host){ .kind = CGROUP_NONE };
	if (find_v2(h) || find_v1(h))
		return;
	bool mounted = h->dir[CGROUP_MEMORY][0] ||
		       access("/sys/fs/cgroup", F_OK) == 0;
	snprintf(h->why_not, sizeof h->why_not, "%s",
		 mounted ? "this user may not make a memory group in its own "
			   "group (a service with Delegate=yes may)"
			 : "no cgroup file system is mounted");
	memset(h->dir, 0, sizeof h->dir);
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
	g->enter[at] = open_file(g->dir[at], "cgroup.procs", O_WRONLY);
	return g->enter[at] < 0 ? -1 : at;
}

static int limit_v1(struct cgroup *g, const struct plan_limits *l, int cpu)
{
	const char *dir = g->dir[g->memory];
	if (l->memory_bytes &&
	    put_number(dir, "memory.limit_in_bytes", l->memory_bytes) < 0)
		return -1;
	/* Where swap is accounted, there is none of it. */
	if (l->memory_bytes)
		(void)put_number(dir, "memory.memsw.limit_in_bytes",
				 l->memory_bytes);
	if (g->pids >= 0 && l->tasks &&
	    put_number(g->dir[g->pids], "pids.max", l->tasks) < 0)
		return -1;
	if (cpu >= 0)
		(void)put(g->dir[cpu], "cpu.shares", "512");
	return 0;
}

static int limit_v2(struct cgroup *g, const struct plan_limits *l)
{
	const char *dir = g->dir[g->memory];
	if (l->memory_bytes &&
	    put_number(dir, "memory.max", l->memory_bytes) < 0)
		return -1;
	(void)put(dir, "memory.swap.max", "0");
	(void)put(dir, "memory.oom.group", "0");
	(void)put(dir, "cpu.weight", "50");
	if (l->tasks && put_number(dir, "pids.max", l->tasks) < 0)
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
		seen->peak_bytes = get_number(dir, "memory.peak");
		seen->memory_kills =
			get_value(dir, "memory.events", "oom_kill");
	} else {
		seen->peak_bytes =
			get_number(dir, "memory.max_usage_in_bytes");
		seen->memory_kills =
			get_value(dir, "memory.oom_control", "oom_kill");
	}
	if (g->pids >= 0)
		seen->task_refusals =
			get_value(g->dir[g->pids], "pids.events", "max");
}

/* --- the end of a group --------------------------------------------------- */

/* Signals each member; gives how many there were. */
static int kill_members(const char *dir)
{
	char text[4096];
	int n = 0;
	if (!get(dir, "cgroup.procs", text, sizeof text))
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
				(void)put(g->dir[i], "cgroup.kill", "1");
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

/* airlox-runner.PID.N of a PID that is no more */
static bool is_stale(const char *name)
{
	if (strncmp(name, NAME, sizeof NAME - 1))
		return false;
	char *end;
	long pid = strtol(name + sizeof NAME - 1, &end, 10);
	return pid > 1 && *end == '.' && kill((pid_t)pid, 0) < 0 &&
	       errno == ESRCH;
}

void cgroup_sweep(const struct cgroup_host *h)
{
	for (int i = 0; i < CGROUP_PARTS; i++) {
		if (!h->dir[i][0])
			continue;
		DIR *d = opendir(h->dir[i]);
		struct dirent *de;
		while (d && (de = readdir(d))) {
			struct cgroup g = { .kind = h->kind, .n = 1 };
			if (!is_stale(de->d_name) ||
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
