/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <dirent.h>

#include "core/buf.h"
#include "runner/sandbox/watch.h"

#define PIDS_MAX 4096
#define MANY_FILES 512		/* fewer descriptors are no matter */

static bool get(pid_t pid, const char *what, char *to, size_t cap)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, cap - 1);
	to[n > 0 ? n : 0] = 0;
	return n > 0;
}

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* A child belongs to the thread that made it. */
static void add_children(pid_t pid, pid_t *pids, size_t *n)
{
	char path[96], text[16 << 10];
	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	DIR *d = opendir(path);
	struct dirent *de;
	while (d && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "task/%.20s/children",
			 de->d_name);
		if (!get(pid, path, text, sizeof text))
			continue;
		for (char *p = text, *end; *n < PIDS_MAX; p = end) {
			long child = strtol(p, &end, 10);
			if (end == p)
				break;
			pids[(*n)++] = (pid_t)child;
		}
	}
	if (d)
		closedir(d);
}

static uint32_t count_entries(const char *path)
{
	uint32_t n = 0;
	DIR *d = opendir(path);
	struct dirent *de;
	while (d && (de = readdir(d)))
		n += de->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* From Linux 6.2 on that is the directory's size; before, it is 0, and they
 * are counted where there is room for many. */
static uint32_t files_of(pid_t pid, const char *status)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	if (stat(path, &st) < 0)
		return 0;
	if (st.st_size || field(status, "\nFDSize:") < MANY_FILES)
		return (uint32_t)st.st_size;
	return count_entries(path);
}

static void add_process(pid_t pid, bool with_memory, struct watch_use *use)
{
	char text[8192];
	if (!get(pid, "status", text, sizeof text))
		return;
	use->tasks += (uint32_t)field(text, "\nThreads:");
	if (with_memory)
		use->memory_bytes += (field(text, "\nRssAnon:") +
				      field(text, "\nRssShmem:") +
				      field(text, "\nVmSwap:")) << 10;
	uint32_t files = files_of(pid, text);
	if (files > use->files)
		use->files = files;
}

/* What forked processes still share is counted once: dear, so it is asked for
 * only where the cheap sum is over the limit. */
static uint64_t exact_memory(const pid_t *pids, size_t n)
{
	char text[8192];
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		if (get(pids[i], "smaps_rollup", text, sizeof text))
			sum += (field(text, "\nPss_Anon:") +
				field(text, "\nPss_Shmem:") +
				field(text, "\nSwapPss:")) << 10;
	return sum;
}

static uint64_t fs_used(pid_t pid, const char *where)
{
	char path[64];
	struct statvfs v;
	snprintf(path, sizeof path, "/proc/%ld/root%s", (long)pid, where);
	if (statvfs(path, &v) < 0)
		return 0;
	return (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
}

void watch_look(pid_t first, uint64_t limit_bytes, struct watch_use *use)
{
	static pid_t pids[PIDS_MAX];
	size_t n = 1;
	bool memory = limit_bytes != 0;

	*use = (struct watch_use){ 0 };
	pids[0] = first;
	for (size_t i = 0; i < n; i++)
		add_children(pids[i], pids, &n);
	for (size_t i = 0; i < n; i++)
		add_process(pids[i], memory, use);
	if (!memory)
		return;
	if (use->memory_bytes > limit_bytes) {
		uint64_t exact = exact_memory(pids, n);
		if (exact)	/* else the kernel does not tell */
			use->memory_bytes = exact;
	}
	/* Files there are memory too.  A mapped one is counted twice: the
	 * limit errs on this machine's side. */
	if (n > 1)
		use->memory_bytes += fs_used(pids[1], "/tmp") +
				     fs_used(pids[1], "/dev/shm");
}
