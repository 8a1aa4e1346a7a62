/* SPDX-License-Identifier: MIT */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "airloxfs/notify.h"
#include "airloxfs/wait.h"
#include "core/buf.h"
#include "core/host/clock.h"

#define NOTIFY_ANSWER_MS 20000	/* a helper that is silent so long is killed */
#define TOUCH_EVERY_MS 50	/* a path is touched no more often */
#define TOUCHES 16		/* paths that grow at a time */
#define IDLE_MS 60000
#define SPAWN_EVERY_MS 1000	/* while no helper can be had */
#define SPAWN_FOR_MS 5000	/* then entries appear without waking anybody */

struct job {
	struct job *next;
	enum notify_op op;
	struct fuse_pollhandle *ph;
	char path[];
};

/* A growing file whose watchers are to be woken. */
struct touch {
	char path[128];
	bool wanted;
	int64_t last_ms;	/* monotonic */
};

struct notify {
	pthread_t thread;
	char *path;

	pthread_mutex_t lock;	/* guards first, last, touch, began, ending */
	pthread_cond_t more;
	struct job *first, **last;
	struct touch touch[TOUCHES];
	bool began, ending;

	_Atomic pid_t helper;	/* written by the thread alone */
	/* the thread's */
	int sock;		/* -1: no helper */
	int64_t again_ms;	/* monotonic: none could be had; not before */
	int64_t lacking_ms;	/* since when; 0: there is one */
	void (*without)(void *arg, enum notify_op op, const char *path);
	void *without_arg;
};

bool notify_is_helper(const struct notify *n, pid_t tid)
{
	return tid > 0 && n->helper == tid;
}

static int spawn_helper(struct notify *n)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", 2, 0);
	posix_spawn_file_actions_adddup2(&fa, 0, 1);
	posix_spawn_file_actions_adddup2(&fa, 0, 2);
	posix_spawn_file_actions_adddup2(&fa, pair[1], 3);
	posix_spawn_file_actions_addclosefrom_np(&fa, 4);
	char *argv[] = { "airloxfs", HELPER_ARG, n->path, NULL };
	char *env[] = { NULL };
	pid_t pid;
	int rc = posix_spawn(&pid, "/proc/self/exe", &fa, &attr, argv, env);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		errno = rc;
		return -1;
	}
	struct timeval patience = { NOTIFY_ANSWER_MS / 1000, 0 };
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof patience);
	n->sock = pair[0];
	n->helper = pid;
	return 0;
}

static void end_helper(struct notify *n)
{
	pid_t pid = n->helper;
	if (n->sock >= 0)
		close(n->sock);
	n->sock = -1;
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	n->helper = 0;
}

/* The helper does it, or is replaced and the next one does.  False: there is
 * none to be had now. */
static bool ask_helper(struct notify *n, const struct job *j)
{
	char msg[1 + 512];
	size_t len = strlen(j->path);
	if (len + 1 > sizeof msg)
		return true;
	msg[0] = (char)j->op;
	memcpy(msg + 1, j->path, len);
	for (int tries = 0; tries < 3; tries++) {
		int answer;
		if (n->sock < 0 && spawn_helper(n) < 0)
			return false;
		if (send(n->sock, msg, len + 1, MSG_NOSIGNAL) > 0 &&
		    recv(n->sock, &answer, sizeof answer, 0) == sizeof answer)
			return true;
		end_helper(n);
	}
	return false;
}

/* Nothing stays hidden for long because a process cannot be started. */
static bool do_job(struct notify *n, const struct job *j)
{
	bool lacked = n->lacking_ms != 0;
	if (ask_helper(n, j)) {
		n->lacking_ms = n->again_ms = 0;
		return true;
	}
	int64_t now = clock_mono_ms();
	n->again_ms = now + SPAWN_EVERY_MS;
	if (!lacked)
		n->lacking_ms = now;
	if (now - n->lacking_ms < SPAWN_FOR_MS)
		return false;
	n->again_ms = 0;	/* each job tries once */
	if (n->without)
		n->without(n->without_arg, j->op, j->path);
	return true;
}

/* --- touches: at most one a path in TOUCH_EVERY_MS; with the lock --- */

static struct touch *due_touch(struct notify *n, int64_t now, int64_t *next)
{
	for (size_t i = 0; i < TOUCHES; i++) {
		struct touch *t = &n->touch[i];
		if (!t->wanted)
			continue;
		if (t->last_ms + TOUCH_EVERY_MS <= now)
			return t;
		if (t->last_ms + TOUCH_EVERY_MS < *next)
			*next = t->last_ms + TOUCH_EVERY_MS;
	}
	return NULL;
}

static struct touch *find_touch(struct notify *n, const char *path)
{
	struct touch *oldest = &n->touch[0];
	for (size_t i = 0; i < TOUCHES; i++) {
		struct touch *t = &n->touch[i];
		if (strcmp(t->path, path) == 0)
			return t;
		if (!t->wanted && (oldest->wanted ||
				   t->last_ms < oldest->last_ms))
			oldest = t;
	}
	if (oldest->wanted || strlen(path) >= sizeof oldest->path)
		return NULL;
	strcpy(oldest->path, path);
	oldest->last_ms = 0;
	return oldest;
}

static struct job *job_new(enum notify_op op, const char *path)
{
	struct job *j = calloc(1, sizeof *j + strlen(path) + 1);
	if (j) {
		j->op = op;
		strcpy(j->path, path);
	}
	return j;
}

/* --- what comes next --- */

static struct job *take_first(struct notify *n)
{
	struct job *j = n->first;
	n->first = j->next;
	if (!n->first)
		n->last = &n->first;
	return j;
}

static struct job *take_poll(struct notify *n)
{
	struct job **at = &n->first, *j;
	while (*at && (*at)->op != NOTIFY_POLL)
		at = &(*at)->next;
	j = *at;
	if (!j)
		return NULL;
	*at = j->next;
	if (n->last == &j->next)
		n->last = at;
	return j;
}

static void put_first(struct notify *n, struct job *j)
{
	pthread_mutex_lock(&n->lock);
	j->next = n->first;
	if (!n->first)
		n->last = &j->next;
	n->first = j;
	pthread_mutex_unlock(&n->lock);
}

/* With the lock: NULL where there is nothing to do before *due. */
static struct job *pick(struct notify *n, int64_t now, int64_t *due)
{
	if (!n->began)
		return NULL;
	if (n->first && n->again_ms <= now)
		return take_first(n);
	if (n->again_ms > now) {	/* who waits for a poll needs no helper */
		*due = n->again_ms < *due ? n->again_ms : *due;
		return take_poll(n);
	}
	struct touch *t = due_touch(n, now, due);
	if (!t)
		return NULL;
	t->wanted = false;
	t->last_ms = now;
	return job_new(NOTIFY_TOUCH, t->path);
}

static struct job *next_job(struct notify *n)
{
	struct job *j = NULL;
	pthread_mutex_lock(&n->lock);
	while (!n->ending) {
		int64_t now = clock_mono_ms(), due = now + IDLE_MS;
		j = pick(n, now, &due);
		if (j)
			break;
		wait_until(&n->more, &n->lock, due);
	}
	pthread_mutex_unlock(&n->lock);
	return j;
}

static void *notify_thread(void *arg)
{
	struct notify *n = arg;
	for (struct job *j; (j = next_job(n));) {
		if (j->op == NOTIFY_POLL) {
			fuse_lowlevel_notify_poll(j->ph);
			fuse_pollhandle_destroy(j->ph);
		} else if (!do_job(n, j)) {
			put_first(n, j);
			continue;
		}
		free(j);
	}
	end_helper(n);
	return NULL;
}

struct notify *notify_new(const char *mount_path, struct err *e)
{
	struct notify *n = calloc(1, sizeof *n);
	char *path = strdup(mount_path);
	if (!n || !path) {
		err_set(e, ERR_MEMORY, "out of memory");
		goto fail;
	}
	*n = (struct notify){ .path = path, .sock = -1 };
	n->last = &n->first;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->more, NULL);
	/* Before the mount: the loader must not need what may be below it. */
	if (spawn_helper(n) < 0) {
		err_sys(e, "cannot start the helper process");
		goto fail;
	}
	if (pthread_create(&n->thread, NULL, notify_thread, n)) {
		err_sys(e, "cannot start a thread");
		end_helper(n);
		goto fail;
	}
	return n;
fail:
	free(path);
	free(n);
	return NULL;
}

void notify_without(struct notify *n,
		    void (*without)(void *arg, enum notify_op op,
				    const char *path), void *arg)
{
	n->without = without;
	n->without_arg = arg;
}

void notify_begin(struct notify *n)
{
	pthread_mutex_lock(&n->lock);
	n->began = true;
	pthread_cond_signal(&n->more);
	pthread_mutex_unlock(&n->lock);
}

static void add_job(struct notify *n, struct job *j)
{
	pthread_mutex_lock(&n->lock);
	*n->last = j;
	n->last = &j->next;
	pthread_cond_signal(&n->more);
	pthread_mutex_unlock(&n->lock);
}

static bool post_touch(struct notify *n, const char *path)
{
	pthread_mutex_lock(&n->lock);
	struct touch *t = find_touch(n, path);
	if (t && !t->wanted) {
		t->wanted = true;
		pthread_cond_signal(&n->more);
	}
	pthread_mutex_unlock(&n->lock);
	return t != NULL;
}

void notify_post(struct notify *n, enum notify_op op, const char *path)
{
	if (op == NOTIFY_TOUCH && post_touch(n, path))
		return;
	struct job *j = job_new(op, path);
	if (j)
		add_job(n, j);
}

void notify_poll(struct notify *n, struct fuse_pollhandle *ph)
{
	struct job *j = calloc(1, sizeof *j + 1);
	if (!j) {
		fuse_pollhandle_destroy(ph);
		return;
	}
	j->op = NOTIFY_POLL;
	j->ph = ph;
	add_job(n, j);
}

void notify_stop(struct notify *n)
{
	pthread_mutex_lock(&n->lock);
	bool ended = n->ending;
	n->ending = true;
	pthread_cond_signal(&n->more);
	pthread_mutex_unlock(&n->lock);
	if (ended)
		return;
	/* A request of the helper may be waiting in the mount: end it, so
	 * that the thread does not wait for its answer. */
	pid_t pid = n->helper;
	if (pid > 0)
		kill(pid, SIGKILL);
	pthread_join(n->thread, NULL);
}

void notify_free(struct notify *n)
{
	if (!n)
		return;
	notify_stop(n);
	for (struct job *j = n->first, *next; j; j = next) {
		next = j->next;
		if (j->op == NOTIFY_POLL)
			fuse_pollhandle_destroy(j->ph);
		free(j);
	}
	pthread_mutex_destroy(&n->lock);
	pthread_cond_destroy(&n->more);
	free(n->path);
	free(n);
}
