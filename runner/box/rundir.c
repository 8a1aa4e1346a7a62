/* SPDX-License-Identifier: MIT */
#include "runner/box/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/buf.h"
#include "core/prim.h"
#include "runner/box/rundir_facts.h"
#include "runner/box/slurp.h"
#include "runner/box/state.h"
#include "runner/put.h"
#include "runner/sandbox/dirs.h"
#include "runner/sandbox/session.h"

#define LOCK "lock"
#define STATE "state"
#define STATE_NEW "state.new"
#define STATE_MAX 32768
#define NEW ".new-"		/* not yet a run */
#define NEW_LEFT_S 60

static int64_t wall_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* 20261130-021500-1f2e: names sort by time, and two never meet. */
static void name_run(char run[CHAIN_RUN + 1])
{
	time_t now = time(NULL);
	struct tm tm;
	char day[24];
	uint16_t tail;
	gmtime_r(&now, &tm);
	strftime(day, sizeof day, "%Y%m%d-%H%M%S", &tm);
	prim_random(&tail, sizeof tail);
	snprintf(run, CHAIN_RUN + 1, "%s-%04x", day, tail);
}

/* --- processes --- */

struct rundir_process rundir_process(pid_t pid)
{
	if (pid <= 0)
		return (struct rundir_process){ 0, 0 };
	return (struct rundir_process){ pid, session_born(pid) };
}

void rundir_own(struct rundir *d) { d->owner = rundir_process(getpid()); }

int rundir_signal(const struct rundir_process *p, int number, struct err *e)
{
	int fd = p->pid > 1 && p->pid <= INT32_MAX ?
		 (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0) : -1;
	if (fd < 0 || session_born((pid_t)p->pid) != p->born) {
		if (fd >= 0)
			close(fd);
		return err_set(e, ERR_GONE, "process %lld is no more",
			       (long long)p->pid);
	}
	int rc = (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
	int sys = errno;
	close(fd);
	errno = sys;
	return rc == 0 || sys == ESRCH ? 0 :
	       err_sys(e, "cannot end process %lld", (long long)p->pid);
}

/* --- the owner's --- */

static int lock_new(struct rundir *d, const char *name, struct err *e)
{
	if (mkdirat(d->runs, name, 0700) < 0)
		return err_sys(e, "cannot make a directory for this run");
	d->dir = openat(d->runs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	if (d->dir < 0)
		return err_sys(e, "cannot open the directory of this run");
	d->lock = openat(d->dir, LOCK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			 0600);
	if (d->lock < 0 || flock(d->lock, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "cannot lock the directory of this run");
	return 0;
}

int rundir_make(struct rundir *d, struct err *e)
{
	char name[sizeof NEW + CHAIN_RUN];
	*d = (struct rundir){ .runs = -1, .dir = -1, .lock = -1 };
	d->runs = state_open_below("runs", e);
	if (d->runs < 0)
		return -1;
	name_run(d->run);
	d->began_ms = d->since_ms = wall_ms();
	rundir_own(d);
	snprintf(name, sizeof name, NEW "%s", d->run);
	if (lock_new(d, name, e) == 0 && rundir_put(d, e) == 0) {
		if (renameat(d->runs, name, d->runs, d->run) == 0)
			return 0;
		err_sys(e, "cannot name the directory of this run");
	}
	(void)dirs_remove(d->runs, name, NULL);
	rundir_close(d);
	return -1;
}

int rundir_put(const struct rundir *d, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	rundir_facts_put(&b, d);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	cleanup_fd int fd = openat(d->dir, STATE_NEW, O_WRONLY | O_CREAT |
				   O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || put_whole(fd, buf_bytes(&b)) < 0 ||
	    renameat(d->dir, STATE_NEW, d->dir, STATE) < 0)
		return err_sys(e, "cannot write the state of run %s", d->run);
	return 0;
}

int rundir_say(struct rundir *d, enum rundir_state state, const char *waits,
	       struct err *e)
{
	d->state = state;
	d->since_ms = wall_ms();
	snprintf(d->waits, sizeof d->waits, "%s", waits ? waits : "");
	return rundir_put(d, e);
}

void rundir_close(struct rundir *d)
{
	int *const all[] = { &d->dir, &d->lock, &d->runs };
	for (int i = 0; i < 3; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
}

/* The lock goes last: until then it is nobody else's to clear. */
void rundir_remove(struct rundir *d)
{
	if (d->runs >= 0 && d->run[0])
		(void)dirs_remove(d->runs, d->run, NULL);
	rundir_close(d);
}

/* --- others' --- */

static int read_facts(struct rundir *d, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	cleanup_fd int fd = openat(d->dir, STATE, O_RDONLY | O_NOFOLLOW |
				   O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_INVALID, "run %s has no state", d->run);
	if (slurp(fd, STATE_MAX, &text, e) < 0)
		return -1;
	return rundir_facts_read(d, buf_bytes(&text), e);
}

int rundir_open(struct rundir *d, const char *run, struct err *e)
{
	*d = (struct rundir){ .runs = -1, .dir = -1, .lock = -1 };
	if (!chain_is_run(bytes_str(run)))
		return err_set(e, ERR_NOT_FOUND, "no run %s; see airlox-box "
			       "boxes", run);
	memcpy(d->run, run, strlen(run) + 1);
	d->runs = state_open_below("runs", e);
	if (d->runs < 0)
		return -1;
	d->dir = openat(d->runs, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	if (d->dir < 0) {
		rundir_close(d);
		return err_set(e, ERR_NOT_FOUND, "no run %s; see airlox-box "
			       "boxes", run);
	}
	d->lock = openat(d->dir, LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return read_facts(d, e);
}

bool rundir_is_alive(const struct rundir *d)
{
	if (d->lock < 0)
		return false;
	if (flock(d->lock, LOCK_SH | LOCK_NB) < 0)
		return true;
	flock(d->lock, LOCK_UN);
	return false;
}

int rundir_take(struct rundir *d, struct err *e)
{
	if (d->lock >= 0 && flock(d->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_LOCKED, "run %s is not over", d->run);
	return 0;
}

/* What was killed before it had its name. */
static void sweep_new(int runs, const char *name)
{
	struct stat st;
	char path[300];
	if (strncmp(name, NEW, sizeof NEW - 1) ||
	    fstatat(runs, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_mtime + NEW_LEFT_S > time(NULL))
		return;
	snprintf(path, sizeof path, "%s/" LOCK, name);
	cleanup_fd int fd = openat(runs, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)dirs_remove(runs, name, NULL);
}

int rundir_each(int (*each)(void *arg, const char *run), void *arg,
		struct err *e)
{
	struct dirent **all = NULL;
	cleanup_fd int runs = state_open_below("runs", e);
	if (runs < 0)
		return -1;
	int n = scandirat(runs, ".", &all, NULL, alphasort), rc = 0;
	if (n < 0)
		return err_sys(e, "cannot read the runs");
	for (int i = 0; i < n; i++) {
		if (all[i]->d_name[0] == '.')
			sweep_new(runs, all[i]->d_name);
		else if (rc == 0 && chain_is_run(bytes_str(all[i]->d_name)))
			rc = each(arg, all[i]->d_name);
		free(all[i]);
	}
	free(all);
	return rc;
}
