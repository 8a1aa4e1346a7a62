/* SPDX-License-Identifier: MIT
 *
 * The directory of a run: its facts whole or refused, and who holds it. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/prim.h"
#include "runner/box/rundir.h"
#include "runner/box/rundir_facts.h"
#include "runner/box/state.h"
#include "tests/unit/tap.h"

static int count(void *arg, const char *run)
{
	is_str(run, arg, "it is the only run");
	return 0;
}

static void facts(struct rundir *d)
{
	struct err e = { 0 };
	struct rundir other = { .runs = -1 };
	struct buf text = { 0 };
	strcpy(d->policy, "odd\x1b[2J\xff.yaml");
	strcpy(d->record, "/a/record.html");
	strcpy(d->scratch, "/not/utf-8/\xff");
	ok(rundir_say(d, RUNDIR_WAITING, "an answer to 3", &e) == 0,
	   "written (%s)", e.why);
	ok(rundir_open(&other, d->run, &e) == 0, "read (%s)", e.why);
	is_str(other.policy, "odd\\x1B[2J\\xFF.yaml", "escaped");
	is_str(other.record, "/a/record.html", "a path");
	is_str(other.scratch, "", "one that is no text is left out");
	is_str(other.waits, "an answer to 3", "what it waits for");
	ok(other.state == RUNDIR_WAITING && other.began_ms == d->began_ms &&
	   other.owner.pid == getpid() && other.owner.born > 0, "the rest");
	rundir_close(&other);
	rundir_facts_put(&text, d);
	for (size_t n = 0; n < text.len; n++)
		if (rundir_facts_read(&other, (struct bytes){ text.data, n },
				      &e) == 0)
			ok(false, "cut at %zu it was read", n);
	ok(rundir_facts_read(&other, bytes_str("{\"v\":1}"), &e) < 0,
	   "another object is refused");
	buf_free(&text);
}

static void life(struct rundir *d)
{
	struct err e = { 0 };
	struct rundir other;
	struct stat st;
	ok(fstat(d->dir, &st) == 0 && (st.st_mode & 0777) == 0700,
	   "it is the user's alone");
	ok(rundir_open(&other, d->run, &e) == 0 && rundir_is_alive(&other),
	   "its owner lives");
	ok(rundir_take(&other, &e) < 0 && e.code == ERR_LOCKED,
	   "and nobody else takes it");
	close(d->lock);
	d->lock = -1;
	ok(!rundir_is_alive(&other) && rundir_take(&other, &e) == 0,
	   "the owner's end frees it");
	rundir_remove(&other);
	ok(rundir_open(&other, d->run, &e) < 0 && e.code == ERR_NOT_FOUND,
	   "it is gone");
	ok(rundir_open(&other, "../key", &e) < 0 && e.code == ERR_NOT_FOUND,
	   "a name is no path");
}

static void processes(void)
{
	struct err e = { 0 };
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	struct rundir_process p = rundir_process(pid), wrong = p;
	wrong.born--;
	ok(rundir_signal(&wrong, SIGKILL, &e) < 0 && e.code == ERR_GONE,
	   "another process with its number is left alone");
	ok(rundir_signal(&p, SIGTERM, &e) == 0 &&
	   waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM,
	   "it is ended");
	ok(rundir_signal(&p, SIGKILL, &e) < 0 && e.code == ERR_GONE,
	   "and then it is no more");
}

int main(void)
{
	char home[] = "/tmp/airloxfs-rundir-XXXXXX", word[64];
	struct err e = { 0 };
	struct rundir d;
	if (!mkdtemp(home) || prim_init() < 0)
		return 1;
	setenv("XDG_STATE_HOME", home, 1);
	ok(rundir_make(&d, &e) == 0, "a run (%s)", e.why);
	rundir_each(count, d.run, &e);
	facts(&d);
	life(&d);
	rundir_close(&d);
	processes();
	snprintf(word, sizeof word, "rm -r %s", home);
	ok(system(word) == 0, "cleared");
	return done_testing();
}
