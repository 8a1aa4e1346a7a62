/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "core/buf.h"
#include "runner/sandbox/keeper.h"
#include "runner/sandbox/spawn.h"
#include "runner/sandbox/dirs.h"
#include "runner/sandbox/watch.h"

#define TICK_MS 100
#define KILL_WAIT_MS 10000
/* Looking at its files may take a tenth of the time, no more. */
#define LOOK_SHARE 10

struct keeper {
	const struct box_ask *ask;
	struct cgroup *cgroup;
	struct spawned box;
	pid_t first;		/* of the sandbox; 0 before it is known */
	int control, child;	/* the owner; SIGCHLD */
	bool owner;		/* control is open */
	bool over;		/* bubblewrap was reaped */
	int status;
	int64_t start_ms, disk_at_ms;
	struct box_end end;
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- reaping and killing -------------------------------------------------- */

/* All that ended; false once there is no child any more. */
static bool reap(struct keeper *k)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 ||
	       (pid < 0 && errno == EINTR))
		if (pid == k->box.bwrap) {
			k->over = true;
			k->status = status;
		}
	return pid == 0;
}

static void wait_child(struct keeper *k, int ms)
{
	struct signalfd_siginfo info;
	struct pollfd p = { .fd = k->child, .events = POLLIN };
	if (poll(&p, 1, ms) > 0)
		(void)!read(k->child, &info, sizeof info);
}

/* The end of its pid 1 is the end of all in that namespace; what could be
 * outside of it, bubblewrap itself, is a child of ours. */
static void kill_all(struct keeper *k)
{
	int64_t until = now_ms() + KILL_WAIT_MS;
	while (reap(k) && now_ms() < until) {
		if (k->first > 1 && !k->over)
			kill(k->first, SIGKILL);
		/* It waits for its child and tells how that ended; later
		 * it has to go itself. */
		if (!k->over && (k->first <= 1 ||
				 now_ms() > until - KILL_WAIT_MS + 200))
			kill(k->box.bwrap, SIGKILL);
		wait_child(k, 20);
	}
	k->end.left = reap(k);
	if (!cgroup_kill(k->cgroup))
		k->end.left = true;
}

/* --- limits --------------------------------------------------------------- */

static void raise_peak(struct keeper *k, uint64_t bytes)
{
	if (bytes > k->end.peak_bytes)
		k->end.peak_bytes = bytes;
}

static bool is_memory_over(struct keeper *k)
{
	const struct plan_limits *l = &k->ask->plan->limits;
	struct watch_use use;
	watch_look(k->first, l->by_rlimit ? l->memory_bytes : 0, &use);
	raise_peak(k, use.memory_bytes);
	if (l->files && use.files >= l->files)
		k->end.out_of_files = true;
	if (l->tasks && use.tasks >= l->tasks)
		k->end.out_of_tasks = true;
	return l->by_rlimit && l->memory_bytes &&
	       use.memory_bytes > l->memory_bytes;
}

/* Free space that is left to the host: 5 %, at most 1 GiB. */
static bool is_disk_low(int dir)
{
	struct statvfs v;
	if (fstatvfs(dir, &v) < 0)
		return false;
	uint64_t free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
	uint64_t floor = (uint64_t)v.f_blocks * v.f_frsize / 20;
	if (floor > (UINT64_C(1) << 30))
		floor = UINT64_C(1) << 30;
	return free_bytes < floor;
}

static bool is_disk_over(struct keeper *k)
{
	const struct plan_limits *l = &k->ask->plan->limits;
	struct dirs_use use = { 0 };
	int64_t begin = now_ms();

	if (begin < k->disk_at_ms)
		return false;
	if (l->disk_bytes && is_disk_low(k->ask->scratch->work)) {
		k->end.disk_low = true;
		return true;
	}
	dirs_measure(k->ask->scratch->work, l->entries, &use);
	dirs_measure(k->ask->scratch->out, l->entries, &use);
	k->disk_at_ms = now_ms() + LOOK_SHARE * (now_ms() - begin);
	return (l->disk_bytes &&
		use.bytes > k->ask->disk_base_bytes + l->disk_bytes) ||
	       (l->entries && (use.entries > l->entries || use.too_deep));
}

/* --- the life of a sandbox ------------------------------------------------ */

/* False when the owner wants an end. */
static bool hear_owner(struct keeper *k)
{
	char word;
	ssize_t n = recv(k->control, &word, 1, MSG_DONTWAIT);
	if (n == 0)
		k->owner = false;
	return n != 0 && n != 1;
}

static int wait_some(struct keeper *k, int64_t until)
{
	struct pollfd p[2] = { { .fd = k->control, .events = POLLIN },
			       { .fd = k->child, .events = POLLIN } };
	struct signalfd_siginfo info;
	int64_t left = until ? until - now_ms() : TICK_MS;
	if (left > TICK_MS)
		left = TICK_MS;
	if (left > 0 && poll(p, 2, (int)left) > 0 && (p[1].revents & POLLIN))
		(void)!read(k->child, &info, sizeof info);
	return 0;
}

static enum box_how live(struct keeper *k)
{
	uint32_t timeout = k->ask->plan->limits.timeout_ms;
	int64_t until = timeout ? k->start_ms + timeout : 0;
	int64_t look_at = k->start_ms + TICK_MS;

	for (;;) {
		(void)reap(k);
		if (k->over)
			return BOX_EXITED;
		if (!hear_owner(k))
			return BOX_KILLED;
		if (until && now_ms() >= until)
			return BOX_TIMED_OUT;
		if (now_ms() >= look_at) {
			look_at = now_ms() + TICK_MS;
			if (is_memory_over(k))
				return BOX_MEMORY;
			if (is_disk_over(k))
				return BOX_DISK;
		}
		wait_some(k, until);
	}
}

static void note_use(struct keeper *k)
{
	const struct plan_limits *l = &k->ask->plan->limits;
	struct cgroup_seen seen;
	struct rusage use;

	cgroup_look(k->cgroup, &seen);
	raise_peak(k, seen.peak_bytes);
	k->end.out_of_memory = seen.memory_kills > 0;
	k->end.out_of_tasks |= seen.task_refusals > 0;
	/* The largest process that ended: all that is known of one that was
	 * shorter than a tick. */
	if (seen.peak_bytes || getrusage(RUSAGE_CHILDREN, &use) < 0)
		return;
	raise_peak(k, (uint64_t)use.ru_maxrss << 10);
	if (l->by_rlimit && l->memory_bytes &&
	    k->end.peak_bytes > l->memory_bytes)
		k->end.out_of_memory = true;
}

/* False when the owner wants an end instead. */
static bool await_go(struct keeper *k)
{
	char word = 0;
	ssize_t n;
	do
		n = recv(k->control, &word, 1, 0);
	while (n < 0 && errno == EINTR);
	k->owner = n > 0;
	return n == 1 && word == BOX_GO;
}

static enum box_how start(struct keeper *k, const int io[3])
{
	int code = spawn_bwrap(&k->box, k->ask, k->cgroup, io, NULL);
	cgroup_close(k->cgroup);
	for (int i = 0; i < 3; i++)
		if (io[i] >= 0)
			close(io[i]);
	if (code < 0)
		return BOX_BROKEN;
	pid_t first = spawn_first(&k->box);
	k->first = first > 1 ? first : 0;
	if (first <= 1 || (k->ask->prepare &&
			   k->ask->prepare(k->ask->prepare_arg, first) != 0) ||
	    spawn_limit(first, k->ask) < 0)
		return BOX_BROKEN;
	if (k->ask->hold && !await_go(k))
		return BOX_KILLED;
	k->start_ms = now_ms();
	return spawn_release(&k->box) < 0 ? BOX_BROKEN : live(k);
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

static void detach(struct keeper *k)
{
	sigset_t set;
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	k->child = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	prctl(PR_SET_NAME, "airlox-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	setsid();
}

/* What the owner had open is not ours: above all the other end of control,
 * and the queue. */
static void keep_fds(const struct keeper *k, const int io[3])
{
	const struct scratch *s = k->ask->scratch;
	int keep[20] = { 0, 1, 2, k->control, io[1], io[2], k->ask->seccomp,
			 s->base, s->lock, s->work, s->out };
	int n = 11;
	if (k->ask->keep_fd)
		keep[n++] = k->ask->keep_fd;
	if (io[0] >= 0)
		keep[n++] = io[0];
	for (int i = 0; i < k->cgroup->n; i++)
		keep[n++] = k->cgroup->enter[i];
	for (int i = 1; i < n; i++)	/* sorted, then the gaps between */
		for (int j = i; j > 0 && keep[j - 1] > keep[j]; j--) {
			int t = keep[j];
			keep[j] = keep[j - 1];
			keep[j - 1] = t;
		}
	for (int i = 0; i < n; i++) {
		unsigned from = (unsigned)keep[i] + 1;
		unsigned to = i + 1 < n ? (unsigned)keep[i + 1] - 1 : ~0U;
		if (from <= to && to + 1 != from)
			syscall(SYS_close_range, from, to, 0);
	}
}

void keeper_run(const struct box_ask *ask, struct cgroup *cgroup, int control,
		const int io[3])
{
	struct keeper k = { .ask = ask, .cgroup = cgroup, .control = control,
			    .owner = true, .box = { -1, -1, -1 } };
	char word;

	keep_fds(&k, io);
	detach(&k);
	k.end.how = start(&k, io);
	k.end.wall_ms = k.start_ms ? (uint64_t)(now_ms() - k.start_ms) : 0;
	kill_all(&k);
	k.end.code = exit_code(k.status);
	note_use(&k);
	cgroup_remove(cgroup);
	(void)send(control, &k.end, sizeof k.end, MSG_NOSIGNAL);
	while (k.owner && recv(control, &word, 1, 0) != 0)
		;
	scratch_remove(ask->scratch);
	_exit(0);
}
