/* SPDX-License-Identifier: MIT
 *
 * Goal: who holds a file open for writing, and who is dying of what, as real
 * processes show it. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "airloxfs/proc.c"
#include "tests/unit/tap.h"

static char path[] = "/tmp/airlox-proc-XXXXXX";
static uint64_t ino;
static int ready[2], go[2];

static void say_ready(void)
{
	if (write(ready[1], "r", 1) != 1)
		_exit(9);
}

static void wait_for(int fd)
{
	char c;
	if (read(fd, &c, 1) < 0)
		_exit(9);
}

/* A child that opens the file as told, says so, and waits to be killed. */
static pid_t holder(int flags)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (flags >= 0 && open(path, flags) < 0)
			_exit(8);
		say_ready();
		pause();
		_exit(0);
	}
	wait_for(ready[0]);
	return pid;
}

static void kill_and_reap(pid_t pid, int sig)
{
	kill(pid, sig);
	waitpid(pid, NULL, 0);
}

static void check_holds(void)
{
	static const struct {
		const char *what;
		int flags;
		bool held;
	} t[] = {
		{ "opened to write", O_WRONLY, true },
		{ "opened to read and write", O_RDWR, true },
		{ "opened to append", O_WRONLY | O_APPEND, true },
		{ "opened to read", O_RDONLY, false },
		{ "opened as a path", O_PATH, false },
		{ "not opened", -1, false },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		pid_t pid = holder(t[i].flags);
		is_int(proc_holds(pid, ino), t[i].held, "%s", t[i].what);
		is_int(proc_anyone_holds(getuid(), ino), t[i].held,
		       "  and so it is for anyone");
		is_int(proc_holds(pid, ino + 1), false, "  another file");
		kill_and_reap(pid, SIGKILL);
		is_int(proc_holds(pid, ino), false, "  nor once it is gone");
	}
	int fd = open(path, O_WRONLY);
	is_int(proc_holds(getpid(), ino), true, "this process holds it");
	is_int(proc_anyone_holds(getuid(), ino), false,
	       "but is not anyone but itself");
	close(fd);
	pid_t pid = holder(O_WRONLY);
	is_int(proc_anyone_holds(getuid() + 1, ino), false,
	       "a process of another user does not count");
	kill_and_reap(pid, SIGKILL);
}

/* Stopped at its exit: a zombie, as a flusher is between exit and reap. */
static void is_dying(const char *what, int sig, int want)
{
	struct proc_flusher f;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		if (sig == 0)
			_exit(3);
		prctl(PR_SET_DUMPABLE, 1);
		signal(sig, SIG_DFL);
		raise(sig);
		_exit(9);
	}
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	proc_look(&f, pid);
	ok(f.alive && f.exiting, "%s: it is exiting", what);
	is_int(f.signal, want, "  of signal %d", want);
	waitpid(pid, NULL, 0);
	proc_look(&f, pid);
	ok(!f.alive && !f.exiting && f.signal == 0, "  and then gone");
	is_int(f.tgid, pid, "  its id is what is left");
}

static void check_look(void)
{
	struct proc_flusher f;

	pid_t pid = holder(-1);
	proc_look(&f, pid);
	ok(f.alive && !f.exiting && f.signal == 0, "a living process");
	is_int(f.tgid, pid, "is its own leader");
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	proc_look(&f, pid);
	ok(f.alive && !f.exiting && f.signal == 0,
	   "a stopped process is not dying of the stop");
	kill_and_reap(pid, SIGKILL);

	is_dying("a normal exit", 0, 0);
	is_dying("interrupted", SIGINT, SIGINT);
	is_dying("killed", SIGKILL, SIGKILL);
	is_dying("broken pipe", SIGPIPE, SIGPIPE);
	is_dying("crashed", SIGSEGV, SIGSEGV);
}

static void check_comm(void)
{
	static const char *const name[] = {
		"a) S 1 2 (b", ") R 0 0 0 0 4", "(((", "a b c d", "\n",
	};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		struct proc_flusher f;
		siginfo_t info;
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_NAME, name[i]);
			say_ready();
			wait_for(go[0]);
			raise(SIGKILL);
		}
		wait_for(ready[0]);
		proc_look(&f, pid);
		ok(f.alive && !f.exiting, "a program named %zu lives", i);
		is_int(f.tgid, pid, "  and has its id");
		is_int((int)write(go[1], "g", 1), 1, "  it is let go");
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
		proc_look(&f, pid);
		ok(f.exiting && f.signal == SIGKILL, "  and seen killed");
		waitpid(pid, NULL, 0);
	}
}

static void *thread_main(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	say_ready();
	wait_for(go[0]);
	return NULL;
}

static void check_threads(void)
{
	struct proc_flusher f;
	pthread_t t;
	pid_t tid = 0;

	pthread_create(&t, NULL, thread_main, &tid);
	wait_for(ready[0]);
	ok(tid != getpid(), "a thread has an id of its own");
	is_int(proc_tgid(tid), getpid(), "it is told to which process it is");
	proc_look(&f, tid);
	ok(f.alive && f.tgid == getpid(), "by proc_look too");
	int fd = open(path, O_WRONLY);
	is_int(proc_holds(tid, ino), true, "it holds what the process holds");
	close(fd);
	is_int((int)write(go[1], "g", 1), 1, "it is let go");
	pthread_join(t, NULL);
	is_int(proc_tgid(0x3fffffff), 0x3fffffff, "no such thread");
}

/* Told, not asserted: the suite has no timed assertion. */
static void tell_speed(void)
{
	struct timespec a, b;
	struct proc_flusher f;
	pid_t pid = holder(O_RDONLY);

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 1000; i++) {
		proc_look(&f, pid);
		proc_holds(pid, ino);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("# look and holds: %.1f us\n",
	       (double)(b.tv_sec - a.tv_sec) * 1e3 +
	       (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	kill_and_reap(pid, SIGKILL);
}

int main(void)
{
	struct stat st;
	int fd = mkstemp(path);

	if (fd < 0 || fstat(fd, &st) < 0 || pipe(ready) < 0 || pipe(go) < 0)
		return 1;
	close(fd);
	ino = st.st_ino;
	check_look();
	check_comm();
	check_threads();
	check_holds();
	tell_speed();
	unlink(path);
	return done_testing();
}
