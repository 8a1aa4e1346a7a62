/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "airloxfs/proc.h"
#include "core/buf.h"

#define PF_EXITING 4	/* field 9 of stat, proc(5) */

enum {
	FIELD_FLAGS = 9,
	FIELD_EXIT_CODE = 52
};

/* The start of a small file of /proc, NUL-terminated: its length, or -1. */
static ssize_t slurp(int dir, const char *name, char *to, size_t size)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, to, size - 1);
	to[n < 0 ? 0 : n] = 0;
	return n;
}

/* The value of a line "key:\tvalue", or NULL. */
static const char *value_of(const char *text, const char *key)
{
	size_t n = strlen(key);
	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, key, n) == 0)
			return text + n;
	}
	return NULL;
}

/* The kernel gives a pidfd to the first thread of a process only. */
static bool is_first_thread(pid_t tid)
{
	cleanup_fd int fd = (int)syscall(SYS_pidfd_open, tid, 0);
	return fd >= 0;
}

pid_t proc_tgid(pid_t tid)
{
	char path[40], text[1024];
	if (tid > 0 && is_first_thread(tid))
		return tid;	/* nearly always, and much cheaper */
	snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	if (slurp(AT_FDCWD, path, text, sizeof text) <= 0)
		return tid;
	const char *v = value_of(text, "Tgid:");
	long tgid = v ? strtol(v, NULL, 10) : 0;
	return tgid > 0 ? (pid_t)tgid : tid;
}

static uint64_t ns_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

uint64_t proc_pid_ns(pid_t tid)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)tid);
	uint64_t theirs = ns_of(path);
	return theirs == ns_of("/proc/self/ns/pid") ? 0 : theirs;
}

/* A program chooses its own name, blanks and parentheses too: fields are
 * counted from the last parenthesis, where the third begins. */
static void parse_stat(struct proc_flusher *out, const char *stat)
{
	const char *p = strrchr(stat, ')');
	unsigned long flags = 0, code = 0;

	for (int field = 3; p && field <= FIELD_EXIT_CODE; field++) {
		p = strchr(p + 1, ' ');
		if (p && field == FIELD_FLAGS)
			flags = strtoul(p, NULL, 10);
		else if (p && field == FIELD_EXIT_CODE)
			code = strtoul(p, NULL, 10);
	}
	out->exiting = flags & PF_EXITING;
	/* Of a process that lives on, the code tells of stops. */
	out->signal = out->exiting ? (int)(code & 0x7f) : 0;
}

void proc_look(struct proc_flusher *out, pid_t tid)
{
	char path[40], text[1024];

	*out = (struct proc_flusher){ .tgid = tid };
	snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
	if (slurp(AT_FDCWD, path, text, sizeof text) <= 0)
		return;
	out->alive = true;
	parse_stat(out, text);
	out->tgid = proc_tgid(tid);
}

bool proc_is_alive(pid_t pid)
{
	struct proc_flusher f;
	proc_look(&f, pid);
	return f.alive;
}

static bool fd_writes(int fdinfo, const char *fd, uint64_t ino)
{
	char text[1024];
	if (slurp(fdinfo, fd, text, sizeof text) <= 0)
		return false;
	const char *flags = value_of(text, "flags:");
	const char *node = value_of(text, "ino:");
	return flags && node && strtoull(node, NULL, 10) == ino &&
	       (strtoul(flags, NULL, 8) & O_ACCMODE) != O_RDONLY;
}

/* dir becomes the stream's. */
static bool any_writes(int dir, uint64_t ino)
{
	DIR *list = dir < 0 ? NULL : fdopendir(dir);
	if (!list) {
		if (dir >= 0)
			close(dir);
		return false;
	}
	bool held = false;
	struct dirent *de;
	while (!held && (de = readdir(list)))
		if (de->d_name[0] != '.')
			held = fd_writes(dir, de->d_name, ino);
	closedir(list);
	return held;
}

bool proc_holds(pid_t pid, uint64_t ino)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/fdinfo", (int)pid);
	return any_writes(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ino);
}

bool proc_anyone_holds(uid_t uid, uint64_t ino)
{
	DIR *all = opendir("/proc");
	if (!all)
		return false;
	bool held = false;
	struct dirent *de;
	while (!held && (de = readdir(all))) {
		struct stat st;
		long pid = strtol(de->d_name, NULL, 10);
		if (pid > 0 && pid != getpid() &&
		    fstatat(dirfd(all), de->d_name, &st, 0) == 0 &&
		    st.st_uid == uid)
			held = proc_holds((pid_t)pid, ino);
	}
	closedir(all);
	return held;
}
