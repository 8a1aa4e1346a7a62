/* SPDX-License-Identifier: MIT */
#include "runner/box/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "runner/agent/lines.h"
#include "runner/box/ask.h"
#include "runner/box/say.h"
#include "runner/box/tale.h"

#define TICK_MS 200

static const char help[] =
	"usage: airlox-box attach RUN\n\n"
	"Shows what a run has done, then what it does, and takes the answers "
	"to its\nquestions: y, n, a (always), or TAG yes|no|always.  An "
	"interrupt leaves it; the\nrun goes on.  airlox-box boxes lists the "
	"runs.\n";

struct attached {
	struct rundir *run;
	struct tale tale;
	struct lines lines, typed;
	int record, watch, present;
	bool ours, ended;
	int told;		/* signals that the run was told of */
};

static volatile sig_atomic_t got[NSIG];

static void on_signal(int number) { got[number] = 1; }

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
}

/* What there is of the record; true when there was something. */
static bool read_record(struct attached *a)
{
	static uint8_t block[65536];
	struct bytes line;
	ssize_t n = read(a->record, block, sizeof block);
	if (n <= 0 || lines_add(&a->lines, (struct bytes){ block, (size_t)n })
	    < 0)
		return false;
	while (lines_next(&a->lines, &line))
		tale_line(&a->tale, line);
	return true;
}

/* --- answers --- */

static void prompt(const struct attached *a)
{
	if (a->present >= 0 && a->tale.open_n)
		fprintf(stderr, "  y(es), n(o), a(lways)? ");
	fflush(stderr);
}

static void send_answer(struct attached *a, unsigned tag, enum ask_word word)
{
	if (ask_send(a->run->dir, tag, word, "a terminal") < 0)
		say_note("nobody takes the answer any more");
}

static bool word_of(const char *s, enum ask_word *to)
{
	for (int w = 0; *s && w < ASK_WORDS; w++)
		if (!strncmp(s, ask_word((enum ask_word)w), strlen(s))) {
			*to = (enum ask_word)w;
			return true;
		}
	return false;
}

/* "y" is for the oldest question; "3 no" for that one. */
static void take_typed(struct attached *a, struct bytes line)
{
	char text[64], *end;
	enum ask_word word;
	snprintf(text, sizeof text, "%.*s", (int)(line.n < 63 ? line.n : 63),
		 (const char *)line.p);
	if (!a->tale.open_n || !text[strspn(text, " \t")])
		return;
	unsigned long tag = strtoul(text, &end, 10);
	char *s = end + strspn(end, " \t");
	s[strcspn(s, " \t\r")] = 0;
	if (!word_of(s, &word)) {
		say_note("y, n, a, or a question's number and yes, no or "
			 "always");
		prompt(a);
		return;
	}
	send_answer(a, end == text ? a->tale.open[0] : (unsigned)tag, word);
}

/* false: nobody types any more. */
static bool read_typed(struct attached *a)
{
	uint8_t block[1024];
	struct bytes line;
	ssize_t n = read(STDIN_FILENO, block, sizeof block);
	if (n < 0)
		return errno == EINTR;
	if (n == 0 || lines_add(&a->typed, (struct bytes){ block, (size_t)n })
	    < 0)
		return false;
	while (lines_next(&a->typed, &line))
		take_typed(a, line);
	return true;
}

/* --- following --- */

static bool open_all(struct attached *a)
{
	a->record = openat(a->run->dir, RUNDIR_RECORD, O_RDONLY | O_CLOEXEC);
	a->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (a->record < 0 || a->watch < 0)
		return false;
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", a->record);
	(void)inotify_add_watch(a->watch, path, IN_MODIFY);
	if (isatty(STDIN_FILENO))
		(void)ask_be_present(a->run->dir, &a->present);
	return true;
}

/* An interrupt or the like; true: we go. */
static bool heed(struct attached *a)
{
	if (got[SIGHUP])
		return true;
	for (int i = 0; i < 2; i++) {
		int number = i ? SIGTERM : SIGINT;
		if (!got[number])
			continue;
		got[number] = 0;
		if (!a->ours)
			return true;
		(void)rundir_signal(&a->run->owner, number, NULL);
		if (a->told++ == 0)
			say_note("told the run to stop");
	}
	return false;
}

static void wait_for(struct attached *a, bool types)
{
	char events[4096];
	struct pollfd p[2] = { { .fd = a->watch, .events = POLLIN },
			       { .fd = types ? STDIN_FILENO : -1,
				 .events = POLLIN } };
	if (poll(p, 2, TICK_MS) > 0 && p[0].revents)
		(void)!read(a->watch, events, sizeof events);
}

/* Whoever types has to be seen before the next wait: no poll in between. */
static bool has_typed(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	return poll(&p, 1, 0) > 0;
}

static enum attach_how follow(struct attached *a)
{
	bool types = a->present >= 0;
	size_t asked = 0;
	for (;;) {
		while (read_record(a))
			;
		if (a->tale.open_n > asked)
			prompt(a);
		asked = a->tale.open_n;
		if (!rundir_is_alive(a->run)) {
			while (read_record(a))
				;
			return a->tale.over ? ATTACH_OVER : ATTACH_CUT;
		}
		if (types && has_typed())
			types = read_typed(a);
		if (heed(a))
			return ATTACH_LEFT;
		wait_for(a, types);
	}
}

enum attach_how attach_follow(struct rundir *d, bool ours, int *code)
{
	struct attached a = { .run = d, .record = -1, .watch = -1,
			      .present = -1, .ours = ours };
	enum attach_how how = ATTACH_CUT;
	catch_signals();
	tale_begin(&a.tale);
	if (open_all(&a))
		how = follow(&a);
	*code = a.tale.exit;
	int fds[] = { a.record, a.watch, a.present };
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	lines_free(&a.lines);
	lines_free(&a.typed);
	return how;
}

int attach_main(int argc, char **argv)
{
	struct rundir d;
	struct err e = { 0 };
	int code = 0;
	if (argc == 2 && (!strcmp(argv[1], "--help") ||
			  !strcmp(argv[1], "-h"))) {
		say_text(bytes_str(help));
		return 0;
	}
	if (argc != 2) {
		err_set(&e, ERR_USAGE, "which run? see airlox-box boxes");
		return say_fail(&e);
	}
	if (rundir_open(&d, argv[1], &e) < 0)
		return say_fail(&e);
	enum attach_how how = attach_follow(&d, false, &code);
	if (how == ATTACH_LEFT)
		say_note("run %s goes on; airlox-box stop %s ends it", d.run,
			 d.run);
	else if (how == ATTACH_CUT)
		say_note("run %s was cut off; airlox-box reap --yes finishes "
			 "its record", d.run);
	else if (d.record[0])
		say_note("record: %s", d.record);
	rundir_close(&d);
	return how == ATTACH_OVER ? code : how == ATTACH_LEFT ? 0 :
	       err_exit(ERR_GONE);
}
