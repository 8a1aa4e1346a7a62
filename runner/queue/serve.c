/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "runner/queue/jobfile.h"
#include "runner/queue/serve.h"
#include "runner/tell.h"

#define SESSION_MAX_BYTES (64 << 10)
#define LOOK_MS 2000		/* if a watch should miss something */

int serve_signals(struct err *e)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	int fd = sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 :
		 signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "cannot wait for signals") : fd;
}

bool serve_stopped(struct server *s)
{
	struct pollfd p = { .fd = s->stop, .events = POLLIN };
	if (poll(&p, 1, 0) > 0)
		s->stopping = true;
	return s->stopping;
}

/* --- which jobs there are ------------------------------------------------- */

static bool was_seen(const struct server *s, const char *name)
{
	for (size_t i = 0; i < s->n_seen; i++)
		if (!strcmp(s->seen[i], name))
			return true;
	return false;
}

static void see(struct server *s, const char *name)
{
	char **v = realloc(s->seen, (s->n_seen + 1) * sizeof *v);
	char *copy = strdup(name);
	if (v)
		s->seen = v;
	if (v && copy)
		v[s->n_seen++] = copy;
	else
		free(copy);
}

/* Names that left the queue are forgotten: that list does not grow. */
static void forget(struct server *s)
{
	struct stat st;
	size_t kept = 0;
	for (size_t i = 0; i < s->n_seen; i++) {
		if (fstatat(s->queue, s->seen[i], &st, AT_SYMLINK_NOFOLLOW)
		    == 0)
			s->seen[kept++] = s->seen[i];
		else
			free(s->seen[i]);
	}
	s->n_seen = kept;
}

/* The oldest job that was not served; 1 if there is one, -1 if the queue
 * cannot be read any more. */
static int next_job(struct server *s, char name[NAME_MAX + 1])
{
	int fd = openat(s->queue, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct timespec best = { 0 };
	struct dirent *de;
	struct stat st;
	int found = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((de = readdir(d))) {
		if (de->d_name[0] == '.' || was_seen(s, de->d_name) ||
		    fstatat(s->queue, de->d_name, &st, AT_SYMLINK_NOFOLLOW) <
		    0 || !S_ISDIR(st.st_mode))
			continue;
		if (found && (st.st_mtim.tv_sec > best.tv_sec ||
			      (st.st_mtim.tv_sec == best.tv_sec &&
			       st.st_mtim.tv_nsec >= best.tv_nsec)))
			continue;
		best = st.st_mtim;
		snprintf(name, NAME_MAX + 1, "%s", de->d_name);
		found = 1;
	}
	closedir(d);
	return found;
}

/* --- the loop ------------------------------------------------------------- */

static bool hear_queue(struct server *s)
{
	char text[4096] __attribute__((aligned(8)));
	ssize_t n = read(s->inotify, text, sizeof text);
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (void *)(text + at);
		if (ev->mask & (IN_UNMOUNT | IN_IGNORED))
			return false;
		at += (ssize_t)(sizeof *ev + ev->len);
	}
	return true;
}

/* A mount says so once its session is, or we were rejected. */
static bool session_is_over(const struct server *s)
{
	cleanup_fd int fd = openat(s->queue, "ready", O_WRONLY | O_CLOEXEC);
	return fd < 0 && errno == ESHUTDOWN;
}

static void wait_more(struct server *s)
{
	struct pollfd p[2] = { { .fd = s->inotify, .events = POLLIN },
			       { .fd = s->stop, .events = POLLIN } };
	int n = poll(p, 2, LOOK_MS);
	if (n > 0 && p[0].revents && !hear_queue(s))
		s->gone = true;
	if (n == 0)	/* no job: nobody waits for this look */
		s->over = session_is_over(s);
}

static int serve_all(struct server *s, struct err *e)
{
	char name[NAME_MAX + 1];
	while (!serve_stopped(s) && !s->gone && !s->over) {
		forget(s);
		int found = next_job(s, name);
		if (found < 0)
			break;
		if (!found) {
			wait_more(s);
			continue;
		}
		see(s, name);
		if (job_serve(s, name, e) < 0) {
			tell_note("%s", e->why);
			break;
		}
	}
	tell_note(s->stopping ? "stopped" : s->over ?
		  "the session is over, for this runner at least" :
		  "the queue is gone");
	return 0;
}

/* --- opening -------------------------------------------------------------- */

static int open_queue(struct server *s, const char *dir, struct err *e)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%.4000s/queue", dir);
	s->queue = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->queue < 0 && errno == ENOENT)
		s->queue = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->queue < 0)
		return err_sys(e, "cannot open the queue in %s", dir);
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->queue);
	s->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s->inotify < 0 ||
	    inotify_add_watch(s->inotify, path, IN_CREATE | IN_MOVED_TO) < 0)
		return err_sys(e, "cannot watch %s", dir);
	s->ready = openat(s->queue, "ready", O_WRONLY | O_CLOEXEC);
	if (s->ready < 0 && errno == ESHUTDOWN)
		return err_set(e, ERR_GONE, "the session of %s is over, for "
			       "this runner at least", dir);
	if (s->ready < 0)
		return err_set(e, ERR_MOUNTPOINT, "%s has no queue/ready: "
			       "mount a runner's invite there (airloxfs mount "
			       "--name NAME INVITE DIR)", dir);
	if (flock(s->ready, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, ERR_LOCKED, "another airlox-runner serves "
			       "%s", dir);
	return 0;
}

/* The mount says which Python the session's jobs want; a bare queue does
 * not.  A runner without it would refuse each of them. */
static int check_runtime(const char *dir, struct err *e)
{
	char path[PATH_MAX];
	cleanup_buf struct buf text = { 0 };
	snprintf(path, sizeof path, "%.4000s/session", dir);
	if (jobfile_read(AT_FDCWD, path, SESSION_MAX_BYTES, &text, NULL) < 0 ||
	    !buf_cstr(&text))
		return 0;
	char *name = strstr(buf_cstr(&text), "\nruntime ");
	struct python *p = name ? malloc(sizeof *p) : NULL;
	if (!p)
		return 0;
	name += strlen("\nruntime ");
	name[strcspn(name, "\n")] = 0;
	int r = python_find(p, name, e);
	free(p);
	return r == 0 ? 0 : err_set(e, ERR_NOT_FOUND, "the jobs of this "
		"session want %.20s, which this host has not: install it "
		"(uv python install %.20s), or serve a session created with "
		"a --runtime that airlox-runner check lists", name, name);
}

static void close_queue(struct server *s)
{
	int *all[] = { &s->ready, &s->inotify, &s->queue };
	for (size_t i = 0; i < 3; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
	for (size_t i = 0; i < s->n_seen; i++)
		free(s->seen[i]);
	free(s->seen);
}

int serve(struct site *h, const struct serve_options *o, const char *dir,
	  int stop, struct err *e)
{
	struct server *s = calloc(1, sizeof *s);
	if (!s)
		return err_set(e, ERR_MEMORY, "no memory");
	s->host = h;
	s->options = o;
	s->queue = s->ready = s->inotify = -1;
	s->stop = stop;
	scratch_sweep(h->scratch);
	cgroup_sweep(&h->cgroups);
	int r = check_runtime(dir, e) < 0 ? -1 : open_queue(s, dir, e);
	if (r == 0) {
		tell_note("serving %s: jobs run as %s, limits by %s", dir,
			  h->job_user, cgroup_word(h->cgroups.kind));
		r = serve_all(s, e);
	}
	close_queue(s);
	free(s);
	return r;
}
