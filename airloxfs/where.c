/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "airloxfs/where.h"
#include "core/buf.h"
#include "core/enc.h"

#define OUR_TYPE "fuse.airloxfs"
#define NO_FUSE "; without FUSE, `airloxfs send`, `items` and `watch` work"

/* A dead mount answers no stat: the name is resolved as far as its parent. */
char *where_path(const char *dir, struct err *e)
{
	char *path = realpath(dir, NULL);
	if (path)
		return path;
	if (errno != ENOTCONN) {
		err_set(e, ERR_MOUNTPOINT, "%s: %s; make an empty directory "
			"first: mkdir -p", dir, strerror(errno));
		return NULL;
	}
	char *copy = strdup(dir);
	size_t n = copy ? strlen(copy) : 0;
	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = 0;
	char *slash = copy ? strrchr(copy, '/') : NULL;
	char *parent = NULL;
	if (slash) {
		*slash = 0;
		parent = realpath(*copy ? copy : "/", NULL);
	} else if (copy) {
		parent = realpath(".", NULL);
	}
	struct buf b = { 0 };
	if (parent)
		buf_addf(&b, "%s/%s", strcmp(parent, "/") ? parent : "",
			 slash ? slash + 1 : copy);
	path = parent ? buf_steal(&b) : NULL;
	free(parent);
	free(copy);
	if (!path)
		err_set(e, ERR_MOUNTPOINT, "%s cannot be resolved", dir);
	return path;
}

/* The type and source of the topmost mount on path; false: there is none. */
static bool mount_on(const char *path, char type[64], char source[128])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	while (f && getline(&line, &cap, f) > 0) {
		char *at = NULL, *dash = strstr(line, " - ");
		char *save, *field = strtok_r(line, " ", &save);
		for (int i = 0; field && i < 4; i++)
			at = field = strtok_r(NULL, " ", &save);
		if (!at || !dash)
			continue;
		enc_unoctal(at);
		if (strcmp(at, path) != 0)
			continue;
		found = sscanf(dash + 3, "%63s %127s", type, source) == 2;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

static bool is_empty(const char *path)
{
	DIR *d = opendir(path);
	bool empty = d != NULL;
	for (struct dirent *ent; empty && (ent = readdir(d));)
		empty = !strcmp(ent->d_name, ".") || !strcmp(ent->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

/* What stat says may be remembered from when it lived; this is asked anew. */
static bool is_dead(const char *path)
{
	char pid[32];
	return getxattr(path, "user.airlox.pid", pid, sizeof pid) < 0 &&
		errno == ENOTCONN;
}

int where_look(const char *path, enum where_kind *kind, struct err *e)
{
	char type[64] = "", source[128] = "";
	struct stat st;
	bool mounted = mount_on(path, type, source);
	bool ours = mounted && !strcmp(type, OUR_TYPE);
	if (stat(path, &st) < 0) {
		if (errno == ENOTCONN && ours) {
			*kind = WHERE_DEAD;
			return 0;
		}
		return err_set(e, ERR_MOUNTPOINT, "%s is a mount of %s (%s) "
			       "that does not answer; unmount that first", path,
			       *source ? source : "another program", type);
	}
	*kind = !ours ? WHERE_FREE : is_dead(path) ? WHERE_DEAD : WHERE_OURS;
	if (ours)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_MOUNTPOINT, "%s is no directory", path);
	if (!is_empty(path))
		return err_set(e, ERR_MOUNTPOINT, "%s is not empty%s%s: choose "
			       "an empty directory", path, mounted
			       ? ", it is a mount of " : "",
			       mounted ? source : "");
	return 0;
}

static int run_umount(const char *path, const char *flags)
{
	char *argv[] = { "fusermount3", (char *)flags, "--", (char *)path,
			 NULL };
	char *env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
			"/usr/bin:/sbin:/bin", NULL };
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int status = -1;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &fa, NULL, argv, env) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	posix_spawn_file_actions_destroy(&fa);
	return status == 0 ? 0 : -1;
}

/* 1: no longer dead. */
static int wait_alive(const char *path, int tries, struct err *e)
{
	enum where_kind kind = WHERE_DEAD;
	for (int i = 0; i < tries; i++) {
		struct timespec t = { .tv_nsec = 20000000 };
		if (where_look(path, &kind, e) < 0)
			return -1;
		if (kind != WHERE_DEAD)
			return 1;
		nanosleep(&t, NULL);
	}
	return 0;
}

/* The fusermount3 that auto_unmount left beside the dead daemon is about to
 * take the mount away; if we were faster, it would take away our new one.  So
 * it gets its time first. */
int where_clear(const char *path, struct err *e)
{
	int rc = wait_alive(path, 50, e);
	if (rc == 0) {
		if (run_umount(path, "-u") < 0)
			run_umount(path, "-uz");
		rc = wait_alive(path, 50, e);
	}
	if (rc)
		return rc < 0 ? -1 : 0;
	return err_set(e, ERR_MOUNTPOINT, "%s is a dead mount that cannot be "
		       "taken away: fusermount3 -uz %s", path, path);
}

/* fusermount3 -o ...,auto_unmount,... -- PATH */
static bool is_unmounter(const char *pid, const char *path)
{
	char name[300], text[8192];
	snprintf(name, sizeof name, "/proc/%s/cmdline", pid);
	cleanup_fd int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	const char *last = "";
	bool waits = false, is = strstr(text, "fusermount3") != NULL;
	for (const char *at = text; at < text + n; at += strlen(at) + 1) {
		waits |= strstr(at, "auto_unmount") != NULL;
		last = at;
	}
	return is && waits && strcmp(last, path) == 0;
}

void where_settle(const char *path)
{
	for (int i = 0; i < 100; i++) {
		DIR *all = opendir("/proc");
		bool found = false;
		struct dirent *de;
		while (all && !found && (de = readdir(all)))
			if (de->d_name[0] >= '1' && de->d_name[0] <= '9')
				found = is_unmounter(de->d_name, path);
		if (all)
			closedir(all);
		if (!found)
			return;
		struct timespec t = { .tv_nsec = 20000000 };
		nanosleep(&t, NULL);
	}
}

static bool in_path(const char *name)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin",
					    "/bin", "/usr/sbin", "/sbin" };
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		char path[64];
		snprintf(path, sizeof path, "%s/%s", dirs[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

int where_fuse(struct err *e)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(e, ERR_NO_FUSE, "/dev/fuse is not open to this "
			       "user: chmod 0666 /dev/fuse (as root)" NO_FUSE);
	if (fd < 0)
		return err_set(e, ERR_NO_FUSE, "there is no /dev/fuse: "
			       "modprobe fuse (as root), or give the container "
			       "--device /dev/fuse" NO_FUSE);
	close(fd);
	if (!in_path("fusermount3"))
		return err_set(e, ERR_NO_FUSE, "fusermount3 is not installed: "
			       "apt-get install fuse3" NO_FUSE);
	return 0;
}
