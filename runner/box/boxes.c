/* SPDX-License-Identifier: MIT */
#include "runner/box/boxes.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/json.h"
#include "runner/box/rundir.h"
#include "runner/box/say.h"

#define STOP_MS 30000	/* a box ends at once; its record may be long */
#define POLL_MS 20

static const char boxes_help[] =
	"usage: airlox-box boxes [--json]\n\n"
	"The runs of this user: what each does, since when, what it waits "
	"for.\n\n"
	"  --json    one line of JSON for each\n";
static const char stop_help[] =
	"usage: airlox-box stop RUN...\n\n"
	"Ends runs, as an interrupt at their terminal would, and waits until "
	"their\nrecords are written.\n";

struct listing {
	bool json;
	size_t n, left;		/* shown; without an owner */
};

static int64_t wall_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* "8s", "12m", "3h", "5d" */
static void age_text(char to[24], int64_t since_ms)
{
	static const struct { int64_t up_to, unit; char word; } t[] = {
		{ 120, 1, 's' }, { 120 * 60, 60, 'm' },
		{ 48 * 3600, 3600, 'h' }, { INT64_MAX, 86400, 'd' },
	};
	int64_t s = (wall_ms() - since_ms) / 1000;
	int i = 0;
	s = s < 0 ? 0 : s;
	while (s >= t[i].up_to)
		i++;
	snprintf(to, 24, "%lld%c", (long long)(s / t[i].unit), t[i].word);
}

static void show_json(const struct rundir *d, const char *state)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "{");
	json_put_key_int(&b, "began_ms", d->began_ms);
	json_put_key_string(&b, "command", bytes_str(d->command));
	json_put_key_int(&b, "pid", d->owner.pid);
	json_put_key_string(&b, "policy", bytes_str(d->policy));
	json_put_key_string(&b, "record", bytes_str(d->record));
	json_put_key_string(&b, "run", bytes_str(d->run));
	json_put_key_int(&b, "since_ms", d->since_ms);
	json_put_key_string(&b, "state", bytes_str(state));
	json_put_key_string(&b, "waits", bytes_str(d->waits));
	buf_add_str(&b, "}");
	if (!buf_failed(&b))
		say_json(buf_bytes(&b));
}

static void show_line(const struct rundir *d, const char *state, bool head)
{
	cleanup_buf struct buf b = { 0 };
	char age[24];
	age_text(age, d->began_ms);
	if (head)
		buf_addf(&b, "%-22s %-9s %5s  %s\n", "RUN", "STATE", "AGE",
			 "COMMAND");
	buf_addf(&b, "%-22s %-9s %5s  %s\n", d->run, state, age, d->command);
	if (d->waits[0])
		buf_addf(&b, "%22s waits for %s\n", "", d->waits);
	if (!buf_failed(&b))
		say_clean(buf_bytes(&b));
}

static int show_run(void *arg, const char *run)
{
	struct listing *l = arg;
	struct rundir d;
	struct err e = { 0 };
	int rc = rundir_open(&d, run, &e);
	if (rc < 0 && e.code != ERR_INVALID)
		return 0;	/* it ended meanwhile */
	bool left = !rundir_is_alive(&d);
	const char *state = left ? "left" : rundir_word(d.state);
	if (left)
		d.waits[0] = 0;
	if (l->json)
		show_json(&d, state);
	else
		show_line(&d, state, l->n == 0);
	l->n++;
	l->left += left;
	rundir_close(&d);
	return 0;
}

static bool asks_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

int boxes_main(int argc, char **argv)
{
	struct listing l = { 0 };
	struct err e = { 0 };
	if (asks_help(argc, argv)) {
		say_text(bytes_str(boxes_help));
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") != 0) {
			err_set(&e, ERR_USAGE, "boxes takes no %s; see "
				"airlox-box boxes --help", argv[i]);
			return say_fail(&e);
		}
		l.json = true;
	}
	if (rundir_each(show_run, &l, &e) < 0)
		return say_fail(&e);
	if (!l.json && l.n == 0)
		say_text(bytes_str("no runs\n"));
	if (!l.json && l.left)
		say_note("what is left: airlox-box reap");
	return 0;
}

/* --- stop --- */

/* Until its owner has let go of it. */
static int wait_end(struct rundir *d, struct err *e)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	for (int ms = 0; ms < STOP_MS; ms += POLL_MS) {
		if (!rundir_is_alive(d))
			return 0;
		nanosleep(&pause, NULL);
	}
	return err_set(e, ERR_TIMEOUT, "run %s was told to end and has not "
		       "yet", d->run);
}

static int stop_run(const char *run, struct err *e)
{
	struct rundir d;
	int rc = rundir_open(&d, run, e);
	if (rc == 0 && !rundir_is_alive(&d))
		rc = err_set(e, ERR_GONE, "the command line of run %s was "
			     "killed: airlox-box reap", run);
	if (rc == 0)
		rc = rundir_signal(&d.owner, SIGTERM, e);
	if (rc == 0)
		rc = wait_end(&d, e);
	rundir_close(&d);
	return rc;
}

int stop_main(int argc, char **argv)
{
	int r = 0;
	struct err e = { 0 };
	if (asks_help(argc, argv)) {
		say_text(bytes_str(stop_help));
		return 0;
	}
	if (argc < 2 || argv[1][0] == '-') {
		err_set(&e, ERR_USAGE, "which run? see airlox-box boxes");
		return say_fail(&e);
	}
	for (int i = 1; i < argc; i++)
		if (stop_run(argv[i], &e) < 0)
			r = say_fail(&e);
	return r;
}
