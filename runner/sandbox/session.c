/* SPDX-License-Identifier: MIT */
#include "runner/sandbox/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/buf.h"

#define TRIES 200
#define PAUSE_NS 10000000L

/* The fields from the third on of /proc/PID/stat; false: there is no such
 * process, or nothing but its end is left. */
static bool read_stat(long pid, long long field[23])
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	char *s = strrchr(text, ')');	/* the name may hold anything */
	if (!s || s[1] != ' ')
		return false;
	field[3] = s[2];
	s += 3;
	for (int i = 4; i < 23; i++)
		field[i] = strtoll(s, &s, 10);
	return field[3] != 'Z' && field[3] != 'X';
}

int64_t session_born(pid_t pid)
{
	long long field[23] = { 0 };
	(void)read_stat(pid, field);
	return field[22];
}

/* Gives how many there were. */
static int kill_once(pid_t keeper)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int n = 0;
	while (d && (de = readdir(d))) {
		long long field[23];
		long pid = strtol(de->d_name, NULL, 10);
		if (pid <= 1 || !read_stat(pid, field) || field[6] != keeper)
			continue;
		n++;
		(void)kill((pid_t)pid, SIGKILL);
	}
	if (d)
		closedir(d);
	return n;
}

bool session_kill(pid_t keeper, int64_t born)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int64_t now = keeper > 1 ? session_born(keeper) : 0;
	if (keeper <= 1 || (now && born && now != born))
		return true;
	for (int i = 0; i < TRIES; i++) {
		if (kill_once(keeper) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}
