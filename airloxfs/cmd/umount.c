/* SPDX-License-Identifier: MIT
 *
 * umount: tells the daemon to drain and go, and says what is left. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "airloxfs/cmd.h"
#include "airloxfs/guard.h"
#include "airloxfs/where.h"
#include "core/host/clock.h"
#include "core/host/tell.h"

#define GRACE_MS 15000		/* for the daemon to end */
#define ANSWER_MS 5000		/* and to answer what it is asked */

static bool read_attr(const char *path, const char *name, char *to,
		      size_t room)
{
	ssize_t n = getxattr(path, name, to, room - 1);
	to[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* No new opens from here on; what is queued drains, as long as it may. */
static void drain(const char *path, int64_t wait_ms)
{
	int64_t until = clock_mono_ms() + wait_ms;
	char queued[32];
	setxattr(path, "user.airlox.stop", "", 0, 0);
	while (clock_mono_ms() < until &&
	       read_attr(path, "user.airlox.queued", queued, sizeof queued) &&
	       strcmp(queued, "0") != 0) {
		struct timespec t = { .tv_nsec = 20000000 };
		nanosleep(&t, NULL);
	}
}

static int stop_daemon(const char *path, struct guard *g, struct err *e)
{
	char text[32];
	read_attr(path, "user.airlox.pid", text, sizeof text);
	long pid = strtol(text, NULL, 10);
	cleanup_fd int fd = pid > 1
		? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
	if (fd < 0)
		return err_set(e, ERR_MOUNTPOINT, "the daemon of %s cannot be "
			       "found: fusermount3 -u %s", path, path);
	if (sigqueue((pid_t)pid, SIGTERM, (union sigval){ 0 }) < 0)
		return err_sys(e, "cannot stop the daemon (process %ld)", pid);
	guard_end(g);		/* nothing touches the mount from here on */
	struct pollfd p = { fd, POLLIN, 0 };
	if (poll(&p, 1, GRACE_MS) > 0)
		return 0;
	return err_set(e, ERR_TIMEOUT, "the daemon (process %ld) is still at "
		       "work: look at %s/status", pid, path);
}

static int not_ours(const char *path, struct err *e)
{
	return err_set(e, ERR_MOUNTPOINT, "%s is not mounted by airloxfs",
		       path);
}

static int unmount(const char *path, int64_t wait_ms, struct guard *g,
		   struct err *e)
{
	enum where_kind kind;
	char unsent[8192];
	struct stat st;
	/* what makes it no place for a mount is no reason to name here */
	if (where_look(path, &kind, e) < 0)
		return stat(path, &st) < 0 ? -1 : not_ours(path, e);
	if (kind == WHERE_DEAD)
		return where_clear(path, e);
	if (kind != WHERE_OURS)
		return not_ours(path, e);
	drain(path, wait_ms);
	bool left = read_attr(path, "user.airlox.unsent", unsent,
			      sizeof unsent);
	if (stop_daemon(path, g, e) < 0)
		return -1;
	if (left)
		tell_warn("%s", unsent);
	return left ? err_exit(ERR_UNSENT) : 0;
}

int cmd_umount(struct setting *s, int argc, char **argv)
{
	(void)s;
	const char *wait = "10s";
	const struct flag flags[] = {
		{ "--wait", FLAG_TEXT, &wait, "TIME",
		  "how long to wait for what is queued (10s)" },
		{ 0 },
	};
	struct args a;
	struct err e;
	int64_t ms;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs umount DIR", "sends what is queued, then "
			     "unmounts; 75 where something is left");
	if (over >= 0)
		return over;
	if (a.n != 1 || clock_parse_duration(bytes_str(wait), &ms) < 0 ||
	    ms > 3600 * 1000) {
		err_set(&e, ERR_USAGE, "umount takes a directory, and --wait a "
			"time of at most an hour");
		return tell_fail(&e);
	}
	struct guard g;
	guard_begin(&g, a.v[0], ms + ANSWER_MS);
	cleanup_free char *path = where_path(a.v[0], &e);
	int rc = path ? unmount(path, ms, &g, &e) : not_ours(a.v[0], &e);
	guard_end(&g);
	return rc < 0 ? tell_fail(&e) : rc;
}
