/* SPDX-License-Identifier: MIT
 *
 * Which control groups this host has, and whether we may make some. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/sandbox/cgroup.h"
#include "runner/sandbox/cgfile.h"

#define SELF "airlox-runner-self"

static const char *const part_name[CGROUP_PARTS] = {
	[CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids",
	[CGROUP_CPU] = "cpu",
};

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
	char path[PATH_MAX + CGROUP_NAME_MAX], name[CGROUP_NAME_MAX];
	cgroup_name(name, "try");
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return false;
	bool fine = cgfile_put_number(path, file, 1 << 20) == 0;
	rmdir(path);
	return fine;
}

/* A group with processes in it cannot give controllers to groups below it,
 * unless it is the root: whoever is here moves one down. */
static bool open_v2(const char *dir)
{
	char self[PATH_MAX + 64], list[256];
	if (cgfile_put(dir, "cgroup.subtree_control", "+memory +pids") == 0) {
		(void)cgfile_put(dir, "cgroup.subtree_control", "+cpu");
		return true;
	}
	snprintf(self, sizeof self, "%s/" SELF, dir);
	if (mkdir(self, 0755) < 0 && errno != EEXIST)
		return false;
	if (cgfile_put(self, "cgroup.procs", "0") < 0 ||
	    cgfile_put(dir, "cgroup.subtree_control", "+memory +pids") < 0) {
		(void)cgfile_put(dir, "cgroup.procs", "0");
		rmdir(self);
		return false;
	}
	(void)cgfile_put(dir, "cgroup.subtree_control", "+cpu");
	return cgfile_get(dir, "cgroup.subtree_control", list, sizeof list) &&
	       has_word(list, "memory", ' ');
}

static bool try_v2(const char *dir)
{
	char list[256];
	return cgfile_get(dir, "cgroup.controllers", list, sizeof list) &&
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
