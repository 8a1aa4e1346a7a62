/* SPDX-License-Identifier: MIT */
#include "runner/box/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/clear.h"
#include "runner/box/attach.h"
#include "runner/box/check.h"
#include "runner/box/say.h"
#include "runner/box/slurp.h"
#include "runner/box/talk.h"

#define PROMPT_MAX (1u << 20)
#define PATIENCE_MS 60000

static const char help[] =
	"usage: airlox-box agent POLICY [FLAGS] PROMPT\n\n"
	"Gives a prompt to the policy's agent (Agent Client Protocol), in a "
	"box; - reads\nit from standard input.  The run goes on when the "
	"terminal closes.\n\n"
	"  --permissions ask|auto_allow  who answers the agent's questions\n"
	"  --patience TIME   how long one waits for somebody (default 60s)\n"
	"  --auth METHOD     how the agent is to authenticate itself\n"
	"  --detach          print the run's name and go\n"
	"  --session DIR     a mounted session, as the policy allows\n"
	"  --apply=all       take what changed in copied files back\n"
	"  --record FILE     where the record goes (airlox-RUN.html here)\n"
	"  --egress FILE     keep the broker's account as JSON lines, too\n"
	"  --job-user USER   as root: who the box is (default nobody)\n"
	"  --scratch DIR     where its directories are made\n";

struct agent {
	struct talk talk;
	const char *prompt, *permissions, *patience;
	bool detach, help;
	struct policy *policy;
	int notes;		/* what the run says to its command line */
};

/* --- the command line --- */

/* "90s", "5m", "1h" */
static int read_time(const char *s, int64_t *ms)
{
	char *end;
	if (*s < '0' || *s > '9')
		return -1;
	long long n = strtoll(s, &end, 10);
	int64_t unit = !strcmp(end, "s") ? 1000 : !strcmp(end, "m") ? 60000 :
		       !strcmp(end, "h") ? 3600000 : 0;
	if (!unit || n > 1000000)
		return -1;
	*ms = n * unit;
	return 0;
}

static int check_flags(struct agent *a, struct err *e)
{
	struct talk *t = &a->talk;
	if (a->help)
		return 0;
	if (!t->launch.o.policy || !a->prompt)
		return err_set(e, ERR_USAGE, "a policy and a prompt; see "
			       "airlox-box agent --help");
	if (a->permissions && strcmp(a->permissions, "ask") != 0 &&
	    strcmp(a->permissions, "auto_allow") != 0)
		return err_set(e, ERR_USAGE, "--permissions is ask or "
			       "auto_allow");
	t->auto_allow = a->permissions &&
			!strcmp(a->permissions, "auto_allow");
	t->patience_ms = PATIENCE_MS;
	if (a->patience && read_time(a->patience, &t->patience_ms) < 0)
		return err_set(e, ERR_USAGE, "--patience is a time like 90s, "
			       "5m, 1h");
	return 0;
}

static int read_flags(struct agent *a, int argc, char **argv, struct err *e)
{
	struct flags *o = &a->talk.launch.o;
	const struct { const char *flag; const char **to; } flags[] = {
		{ "--permissions", &a->permissions },
		{ "--patience", &a->patience }, { "--auth", &a->talk.auth },
		{ "--session", &o->session }, { "--record", &o->record },
		{ "--egress", &o->egress },
		{ "--job-user", &o->site.job_user },
		{ "--scratch", &o->site.scratch },
	};
	const size_t n = sizeof flags / sizeof *flags;
	for (int i = 1; i < argc; i++) {
		const char *s = argv[i];
		size_t k = 0;
		while (k < n && strcmp(s, flags[k].flag) != 0)
			k++;
		if (k < n && i + 1 < argc)
			*flags[k].to = argv[++i];
		else if (!strcmp(s, "--detach"))
			a->detach = true;
		else if (!strcmp(s, "--apply=all"))
			o->apply = FILES_ALL;
		else if (!strcmp(s, "--help") || !strcmp(s, "-h"))
			a->help = true;
		else if (k < n || (s[0] == '-' && s[1]))
			return err_set(e, ERR_USAGE, "no flag %s, or its value "
				       "is missing; see airlox-box agent "
				       "--help", s);
		else if (!o->policy)
			o->policy = s;
		else if (!a->prompt)
			a->prompt = s;
		else
			return err_set(e, ERR_USAGE, "one prompt, as one "
				       "argument");
	}
	return check_flags(a, e);
}

/* --- what it is about --- */

static int read_prompt(struct agent *a, struct err *e)
{
	struct buf *b = &a->talk.prompt;
	if (strcmp(a->prompt, "-") != 0)
		buf_add_str(b, a->prompt);
	else if (slurp(STDIN_FILENO, PROMPT_MAX, b, e) < 0)
		return err_prefix(e, "the prompt");
	if (b->len == 0 || !clear_utf8(buf_bytes(b)))
		return err_set(e, ERR_USAGE, "the prompt must be a text in "
			       "UTF-8");
	return 0;
}

static int read_policy(struct agent *a, struct err *e)
{
	struct flags *o = &a->talk.launch.o;
	a->policy = check_read(o->policy, e);
	if (!a->policy)
		return -1;
	if (a->policy->agent.n == 0)
		return err_set(e, ERR_POLICY, "%s names no agent: agent: "
			       "[PROGRAM, ARG]", o->policy);
	o->command = calloc(a->policy->agent.n + 1, sizeof *o->command);
	if (!o->command)
		return err_set(e, ERR_MEMORY, "out of memory");
	memcpy(o->command, a->policy->agent.word,
	       a->policy->agent.n * sizeof *o->command);
	return 0;
}

/* --- the run, in a process of its own --- */

/* Nothing of the terminal is kept, so that it can close; what is said at the
 * end is a note for who waits for it. */
static void leave_terminal(const struct agent *a)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	setsid();
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(a->notes, STDERR_FILENO);
	if (null > 2)
		close(null);
}

static _Noreturn void own_run(struct agent *a, int ready)
{
	struct err e = { 0 };
	leave_terminal(a);
	a->talk.ready = ready;
	int r = talk_run(&a->talk, &e);
	if (r < 0) {
		cleanup_buf struct buf b = { 0 };
		buf_addf(&b, "no %d %s", (int)e.code, e.why);
		if (a->talk.ready >= 0)
			(void)!write(a->talk.ready, b.data, b.len);
		else
			say_note("%s", e.why);
		r = err_exit(e.code);
	}
	_exit(r);
}

/* --- who waits for it --- */

/* The run's name; -1 with e as it was there. */
static int wait_ready(int ready, char run[CHAIN_RUN + 1], struct err *e)
{
	char text[512];
	ssize_t n;
	do
		n = read(ready, text, sizeof text - 1);
	while (n < 0 && errno == EINTR);
	text[n > 0 ? n : 0] = 0;
	if (!strncmp(text, "ok ", 3)) {
		snprintf(run, CHAIN_RUN + 1, "%.*s", CHAIN_RUN, text + 3);
		return 0;
	}
	if (!strncmp(text, "no ", 3)) {
		char *end;
		long code = strtol(text + 3, &end, 10);
		return err_set(e, code > 0 && code < ERR_CODES ?
			       (enum err_code)code : ERR_SYS, "%s",
			       *end ? end + 1 : end);
	}
	return err_set(e, ERR_SYS, "the run could not be started");
}

static void show_notes(int notes)
{
	cleanup_buf struct buf text = { 0 };
	if (lseek(notes, 0, SEEK_SET) == 0 &&
	    slurp(notes, 65536, &text, NULL) == 0 && text.len)
		fwrite(text.data, 1, text.len, stderr);
}

static int watch(const struct agent *a, pid_t pid, const char *run)
{
	struct rundir d;
	struct err e = { 0 };
	int code = 0, status = 0;
	enum attach_how how = ATTACH_OVER;
	if (rundir_open(&d, run, &e) == 0)
		how = attach_follow(&d, true, &code);
	rundir_close(&d);
	if (how == ATTACH_LEFT)
		return 128 + SIGHUP;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	show_notes(a->notes);
	return WIFEXITED(status) ? WEXITSTATUS(status) :
				   128 + WTERMSIG(status);
}

static int start(struct agent *a, struct err *e)
{
	int pair[2];
	char run[CHAIN_RUN + 1] = "";
	a->notes = memfd_create("notes", MFD_CLOEXEC);
	if (a->notes < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "cannot start a run");
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		own_run(a, pair[1]);
	}
	close(pair[1]);
	int r = pid < 0 ? err_sys(e, "cannot start a run") :
			  wait_ready(pair[0], run, e);
	close(pair[0]);
	if (r < 0) {
		show_notes(a->notes);
		return -1;
	}
	if (!a->detach)
		return watch(a, pid, run);
	printf("%s\n", run);
	return 0;
}

int agent_main(int argc, char **argv)
{
	struct agent a = { .talk = { .launch = LAUNCH_INIT, .ready = -1,
				     .asks = { .dir = -1, .answer = -1 } },
			   .notes = -1 };
	struct err e = { 0 };
	if (read_flags(&a, argc, argv, &e) < 0)
		return say_fail(&e);
	if (a.help) {
		say_text(bytes_str(help));
		return 0;
	}
	int r = read_policy(&a, &e) < 0 || read_prompt(&a, &e) < 0 ? -1 :
		start(&a, &e);
	if (r < 0)
		r = say_fail(&e);
	if (a.notes >= 0)
		close(a.notes);
	free(a.talk.launch.o.command);
	buf_free(&a.talk.prompt);
	policy_free(a.policy);
	return r;
}
