/* SPDX-License-Identifier: MIT
 *
 * join: a mount of one's own, and a runner on it.
 *
 * The mount is a child of ours, `airloxfs mount -f`, in a directory that only
 * we can enter; it is told to end by a signal, also when we die.  The invite
 * passes through here from where it was given to that child's pipe, and is
 * wiped on the way: no key is kept, parsed or understood in this program. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "core/buf.h"
#include "runner/queue/cmd.h"
#include "runner/run.h"
#include "runner/tell.h"

#define INVITE_MAX 8192
#define MOUNT_WAIT_MS 60000
#define END_WAIT_MS 40000

struct join {
	const char *name, *labels, *description, *airloxfs, *mount_cache;
	char program[PATH_MAX];
	char dir[PATH_MAX];	/* private; "" before it is made */
	pid_t mount, janitor;
	int janitor_pipe;
	int stop;
};

/* --- the invite ----------------------------------------------------------- */

static int read_whole(int fd, char to[INVITE_MAX], struct err *e)
{
	size_t n = 0;
	for (;;) {
		ssize_t m = read(fd, to + n, INVITE_MAX - 1 - n);
		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			return err_sys(e, "cannot read the invite");
		if (m == 0)
			break;
		n += (size_t)m;
		if (n == INVITE_MAX - 1)
			return err_set(e, ERR_USAGE, "that is no invite: it "
				       "is too long");
	}
	to[n] = 0;
	return 0;
}

static void move_text(char *from, char to[INVITE_MAX])
{
	size_t n = strlen(from);
	if (n < INVITE_MAX)
		memcpy(to, from, n + 1);
	memset(from, '*', n);	/* out of /proc/PID/cmdline and environ */
}

static int read_invite(char *arg, char to[INVITE_MAX], struct err *e)
{
	char *env = getenv("AIRLOX_INVITE");
	to[0] = 0;
	if (arg && !strcmp(arg, "-")) {
		if (read_whole(0, to, e) < 0)
			return -1;
	} else if (arg && arg[0] == '@') {
		cleanup_fd int fd = open(arg + 1, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, "cannot open %s", arg + 1);
		if (read_whole(fd, to, e) < 0)
			return -1;
	} else if (arg) {
		move_text(arg, to);
	} else if (env) {
		move_text(env, to);
	}
	if (env) {
		memset(env, '*', strlen(env));
		unsetenv("AIRLOX_INVITE");
	}
	if (!to[0])
		return err_set(e, ERR_USAGE, "no invite: give a link, @FILE, "
			       "or - for stdin");
	return 0;
}

/* --- the mount ------------------------------------------------------------ */

/* Beside this program, else in PATH. */
static int find_airloxfs(struct join *j, struct err *e)
{
	char self[PATH_MAX - 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (j->airloxfs) {
		snprintf(j->program, PATH_MAX, "%s", j->airloxfs);
		return 0;
	}
	self[n > 0 ? n : 0] = 0;
	char *slash = strrchr(self, '/');
	if (slash) {
		snprintf(j->program, PATH_MAX, "%.*s/airloxfs",
			 (int)(slash - self), self);
		if (access(j->program, X_OK) == 0)
			return 0;
	}
	if (run_find("airloxfs", j->program, PATH_MAX))
		return 0;
	return err_set(e, ERR_NOT_FOUND, "no airloxfs beside this program or "
		       "in PATH: it mounts the queue");
}

static int make_dir(struct join *j, struct err *e)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	const char *base = run && run[0] == '/' ? run :
			   tmp && tmp[0] == '/' ? tmp : "/tmp";
	snprintf(j->dir, PATH_MAX, "%.4000s/airlox-queue.XXXXXX", base);
	if (mkdtemp(j->dir))
		return 0;
	j->dir[0] = 0;
	return err_sys(e, "cannot make a directory in %s", base);
}

/* Takes the mount and its directory away should we be killed.  It holds
 * nothing but the pipe. */
static int start_janitor(struct join *j, char invite[INVITE_MAX],
			 struct err *e)
{
	int p[2];
	char byte;
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, "cannot make a pipe");
	j->janitor = fork();
	if (j->janitor != 0) {
		close(p[0]);
		j->janitor_pipe = p[1];
		return j->janitor < 0 ? err_sys(e, "cannot fork") : 0;
	}
	close(p[1]);
	explicit_bzero(invite, INVITE_MAX);
	setsid();
	prctl(PR_SET_NAME, "airlox-janitor");
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_IGN);
	/* The end of the pipe is the end of the runner. */
	while (read(p[0], &byte, 1) < 0 && errno == EINTR)
		;
	/* The mount was told by its parent's death. */
	const struct timespec pause = { .tv_nsec = 50000000 };
	for (int i = 0; i < 400 && rmdir(j->dir) < 0 && errno != ENOENT; i++)
		nanosleep(&pause, NULL);
	_exit(0);
}

_Noreturn static void mount_child(const struct join *j, int invite,
				  pid_t parent)
{
	const char *argv[16] = { j->program, "mount", "-f" };
	sigset_t none;
	int n = 3;
	if (j->name) {
		argv[n++] = "--name";
		argv[n++] = j->name;
	}
	if (j->labels) {
		argv[n++] = "--labels";
		argv[n++] = j->labels;
	}
	if (j->description) {
		argv[n++] = "--description";
		argv[n++] = j->description;
	}
	if (j->mount_cache) {
		argv[n++] = "--cache-dir";
		argv[n++] = j->mount_cache;
	}
	argv[n++] = "-";
	argv[n++] = j->dir;
	setsid();	/* a terminal's Ctrl-C is ours to hear */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(invite, 0) == 0)
		execv(argv[0], (char *const *)argv);
	_exit(127);
}

static int start_mount(struct join *j, char invite[INVITE_MAX],
		       struct err *e)
{
	int p[2];
	pid_t self = getpid();
	size_t n = strlen(invite);
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, "cannot make a pipe");
	j->mount = fork();
	if (j->mount == 0) {
		explicit_bzero(invite, INVITE_MAX);
		mount_child(j, p[0], self);
	}
	close(p[0]);
	ssize_t m = j->mount < 0 ? -1 : write(p[1], invite, n);
	explicit_bzero(invite, INVITE_MAX);
	close(p[1]);
	return m == (ssize_t)n ? 0 : err_sys(e, "cannot start %s",
					     j->program);
}

static bool is_stopped(const struct join *j)
{
	struct pollfd p = { .fd = j->stop, .events = POLLIN };
	return poll(&p, 1, 20) > 0;
}

/* Usable once it has a queue.  What the mount has to say it said itself: its
 * exit code is ours. */
static int wait_mount(struct join *j, int *code, struct err *e)
{
	char ready[PATH_MAX + 16];
	int status;
	snprintf(ready, sizeof ready, "%s/queue/ready", j->dir);
	for (int i = 0; i < MOUNT_WAIT_MS / 20; i++) {
		if (access(ready, F_OK) == 0)
			return 0;
		if (waitpid(j->mount, &status, WNOHANG) == j->mount) {
			j->mount = -1;
			*code = WIFEXITED(status) && WEXITSTATUS(status) ?
				WEXITSTATUS(status) : err_exit(ERR_SYS);
			return err_set(e, ERR_NET, "the mount failed");
		}
		if (is_stopped(j))
			return err_set(e, ERR_GONE, "stopped");
	}
	return err_set(e, ERR_TIMEOUT, "the mount has no queue: is that a "
		       "runner's invite?");
}

static int end_mount(struct join *j)
{
	int status = 0;
	pid_t r = 0;
	if (j->mount <= 0)
		return 0;
	kill(j->mount, SIGTERM);
	const struct timespec pause = { .tv_nsec = 20000000 };
	for (int i = 0; i < END_WAIT_MS / 20 && r == 0; i++) {
		r = waitpid(j->mount, &status, WNOHANG);
		if (r == 0)
			nanosleep(&pause, NULL);
	}
	if (r == 0) {
		tell_note("the mount does not end: killed");
		kill(j->mount, SIGKILL);
		waitpid(j->mount, &status, 0);
	}
	j->mount = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : err_exit(ERR_SYS);
}

static void end_janitor(struct join *j)
{
	if (j->janitor_pipe >= 0)
		close(j->janitor_pipe);
	if (j->janitor > 0)
		waitpid(j->janitor, NULL, 0);
}

static int join_and_serve(struct join *j, struct site *h,
			  const struct serve_options *o, char *invite,
			  struct err *e)
{
	int code = 0;
	if (find_airloxfs(j, e) < 0 || make_dir(j, e) < 0)
		return tell_fail(e);
	if (start_janitor(j, invite, e) < 0 || start_mount(j, invite, e) < 0 ||
	    wait_mount(j, &code, e) < 0 ||
	    serve(h, o, j->dir, j->stop, e) < 0)
		code = code ? code : e->code == ERR_GONE ? 0 : tell_fail(e);
	int ended = end_mount(j);
	(void)rmdir(j->dir);
	end_janitor(j);
	return code ? code : ended;
}

int cmd_join(int argc, char **argv)
{
	static char invite[INVITE_MAX];
	struct cmd_common c = { 0 };
	struct join j = { .mount = -1, .janitor = -1, .janitor_pipe = -1 };
	const struct flag flags[] = {
		{ "--name", &j.name, NULL, "NAME", "this runner's name" },
		{ "--labels", &j.labels, NULL, "L,L", "what it is good for" },
		{ "--description", &j.description, NULL, "TEXT",
		  "shown to who chooses a runner" },
		{ "--mount-cache-dir", &j.mount_cache, NULL, "DIR",
		  "the mount's --cache-dir" },
		{ "--airloxfs", &j.airloxfs, NULL, "FILE",
		  "the program that mounts" },
		CMD_COMMON_FLAGS(&c), { 0 }
	};
	struct serve_options o;
	struct site h;
	struct err e = { 0 };
	bool help;
	int n;

	if (args_parse(flags, argc, argv, &n, &help, &e) < 0)
		return tell_fail(&e);
	if (help) {
		args_help("airlox-runner join [FLAGS] [INVITE|@FILE|-]",
			  "Mounts a runner's invite in private and serves it, "
			  "until SIGTERM, SIGINT, or\nthe session's end.",
			  flags);
		return 0;
	}
	j.stop = n > 1 ? err_set(&e, ERR_USAGE, "one invite, please") :
		 serve_signals(&e);
	if (j.stop < 0 || read_invite(n ? argv[0] : NULL, invite, &e) < 0 ||
	    cmd_open(&c, &h, &o, &e) < 0) {
		explicit_bzero(invite, sizeof invite);
		return tell_fail(&e);
	}
	int code = join_and_serve(&j, &h, &o, invite, &e);
	explicit_bzero(invite, sizeof invite);
	site_close(&h);
	return code;
}
