/* SPDX-License-Identifier: MIT
 *
 * run: a Python file, on a runner. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "airloxfs/cmd.h"
#include "airloxfs/job_show.h"
#include "airloxfs/print.h"
#include "core/host/check.h"
#include "core/host/tell.h"

#define CODE_MAX ((size_t)1 << 20)
#define GIVE_UP_MS 60000
#define INPUTS_MAX ARGS_LIST_MAX

struct running {
	struct common c;
	const char *runner, *timeout, *memory, *out_dir, *wait;
	struct flag_list labels, inputs, requirements;
	bool no_wait;
	int64_t wait_ms;

	const char *path;
	struct buf code;
	int fd[INPUTS_MAX];
	struct job_input input[INPUTS_MAX];
	struct bytes *label, *requirement;	/* parts of the flags */
	struct job_spec spec;

	struct peer *peer;
	struct follow follow;
	struct wire *wire;
	struct job_plan *plan;
	struct sealed sealed;
	struct job job;
	struct routed_job state;
};

/* --- from flags to a spec --- */

static struct bytes last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return bytes_str(slash ? slash + 1 : path);
}

/* The parts of comma-separated texts; the caller frees. */
static int split(const struct flag_list *l, struct bytes **out, size_t *n,
		 struct err *e)
{
	size_t max = 0;

	for (int i = 0; i < l->n; i++)
		max += strlen(l->v[i]) / 2 + 1;
	*out = calloc(max + 1, sizeof **out);
	if (!*out)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (int i = 0; i < l->n; i++)
		for (const char *s = l->v[i]; *s;) {
			size_t k = strcspn(s, ", ");
			if (k)
				(*out)[(*n)++] = (struct bytes){
					(const uint8_t *)s, k };
			s += k + (s[k] != 0);
		}
	return 0;
}

static int take_limits(struct running *r, struct err *e)
{
	struct job_spec *s = &r->spec;
	int64_t ms;
	char *end = NULL;

	if (r->timeout) {
		if (clock_parse_duration(bytes_str(r->timeout), &ms) < 0 ||
		    ms < 1000)
			return err_set(e, ERR_USAGE, "--timeout: like 30s or "
				       "5m");
		s->timeout_s = ms / 1000;
	}
	if (r->memory) {
		s->memory_mb = strtol(r->memory, &end, 10);
		if (*end || end == r->memory || s->memory_mb < 1)
			return err_set(e, ERR_USAGE, "--memory: a number of "
				       "MB");
	}
	if (clock_parse_duration(bytes_str(r->wait), &r->wait_ms) < 0)
		return err_set(e, ERR_USAGE, "--wait: like 30s, 10m or never");
	if (r->runner && r->labels.n)
		return err_set(e, ERR_USAGE, "--runner or --label, not both");
	return split(&r->requirements, &r->requirement,
		     &s->requirement_n, e);
}

static int open_regular(const char *path, struct stat *st, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return err_sys(e, "cannot open %s", path);
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	close(fd);
	return err_set(e, ERR_USAGE, "%s is not a regular file", path);
}

static int take_code(struct running *r, struct err *e)
{
	struct stat st;
	cleanup_fd int fd = open_regular(r->path, &st, e);

	if (fd < 0 || file_read_fd(fd, CODE_MAX, &r->code, e) < 0)
		return -1;
	r->spec.filename = last_part(r->path);
	r->spec.code = buf_bytes(&r->code);
	return 0;
}

static int take_inputs(struct running *r, struct err *e)
{
	for (int i = 0; i < r->inputs.n; i++) {
		struct job_input *in = &r->input[i];
		struct stat st;
		r->fd[i] = open_regular(r->inputs.v[i], &st, e);
		if (r->fd[i] < 0 ||
		    draft_source_fd(&in->body, &r->fd[i], e) < 0)
			return -1;
		in->path = last_part(r->inputs.v[i]);
		in->is_exec = st.st_mode & S_IXUSR;
		r->spec.input_n++;
	}
	r->spec.input = r->input;
	r->spec.requirement = r->requirement;
	return 0;
}

/* A runner is named by what it signed, and asked only if the owner trusts
 * it: an unapproved one would get the code only to refuse. */
static int take_runner(struct running *r, struct err *e)
{
	struct follow *f = &r->follow;
	struct participant *q = people_runner(&r->peer->people,
					      bytes_str(r->runner), e);
	if (!q)
		return err_prefix(e, "%s", r->runner);
	const uint8_t *pub = q->join.cert.pub;
	if (follow_approvals(f, pub, e) < 0)
		return -1;
	if (!approval_stands(&f->approvals, &r->peer->manifest, pub))
		return err_set(e, ERR_POLICY, "the owner has not approved "
			       "%s", q->shown_runner);
	r->spec.target = job_target(q);
	return 0;
}

static int take_target(struct running *r, struct err *e)
{
	struct target *t = &r->spec.target;

	if (r->runner)
		return take_runner(r, e);
	*t = (struct target){ .kind = TARGET_ANY };
	if (!r->labels.n)
		return 0;
	t->kind = TARGET_LABELS;
	if (split(&r->labels, &r->label, &t->label_n, e) < 0)
		return -1;
	t->labels = r->label;
	return 0;
}

/* --- to the relay --- */

static int send_inputs(struct running *r, struct err *e)
{
	static const struct draft_look look = { check_content, check_image };
	const struct draft_post how = { .wire = r->wire,
					.give_up_ms = GIVE_UP_MS };

	r->plan = job_plan_new(&r->spec, r->peer, &look, e);
	if (!r->plan)
		return -1;
	return job_plan_send(r->plan, r->peer, &how, e);
}

static int post_job(struct running *r, enum job_posted *posted, struct err *e)
{
	int64_t end = clock_mono_ms() + GIVE_UP_MS;

	for (unsigned n = 0;; n++) {
		if (job_post(r->wire, &r->sealed, &r->job, posted, &r->state,
			     NULL, NULL, e) == 0)
			return 0;
		int64_t ms = peer_delay_ms(n, wire_retry_after_ms(r->wire));
		if (!peer_may_retry(e) || clock_mono_ms() + ms > end)
			return -1;
		const struct timespec t = { .tv_sec = ms / 1000,
					    .tv_nsec = ms % 1000 * 1000000 };
		nanosleep(&t, NULL);
	}
}

/* Sealed into the cache, as everything is that was sent. */
static int seal_and_post(struct running *r, enum job_posted *posted,
			 struct err *e)
{
	struct cache_stage st;

	if (cache_stage(r->peer->cache, &st, e) < 0)
		return -1;
	int done = job_plan_seal(r->plan, st.fd, &r->sealed, e) < 0 ||
		job_of_plan(&r->job, r->plan, &r->sealed, e) < 0 ||
		post_job(r, posted, e) < 0 ? -1 : 0;
	if (done == 0)
		cache_keep(r->peer->cache, &st, r->sealed.id, NULL);
	else
		cache_drop(r->peer->cache, &st);
	close(st.fd);
	return done;
}

static int show_submitted(const struct running *r)
{
	cleanup_buf struct buf b = { 0 };

	if (!r->c.json) {
		tell_say("%s", r->sealed.id);
		return tell_flush();
	}
	buf_add_byte(&b, '{');
	print_member(&b, "job", r->sealed.id);
	json_put_key(&b, "runner");
	if (r->state.has_runner)
		json_put_b64(&b, r->state.runner, PRIM_PUB);
	else
		buf_add_str(&b, "null");
	buf_add_byte(&b, '}');
	return print_doc(&b);
}

static int show_unplaced(const struct running *r, enum job_posted posted)
{
	bool busy = posted == JOB_RUNNER_BUSY;

	job_show_state(r->c.json, r->sealed.id, "failed",
		       busy ? "runner_busy" : "no_runner_available",
		       busy ? "that runner is busy; try again" :
		       "no runner that may take it is idle; try again");
	return err_exit(ERR_NET);
}

static int wait_result(struct running *r, int *status, struct err *e)
{
	struct follow *f = &r->follow;
	struct job_printed printed = { .tty = isatty(STDOUT_FILENO) };
	struct job_show show = { .json = r->c.json, .out_dir = r->out_dir,
				 .printed = &printed };

	follow_job(f, &r->job);
	r->job = (struct job){ 0 };
	if (!r->c.json) {
		f->output = job_show_live;
		f->output_arg = &printed;
	}
	int64_t end = r->wait_ms == CLOCK_FOREVER ? CLOCK_FOREVER :
		clock_mono_ms() + r->wait_ms;
	int done = follow_result(f, end, e);
	if (done == 0 && !f->result && !f->failed) {
		*status = err_exit(ERR_NET);
		job_show_state(r->c.json, r->sealed.id, "running", NULL,
			       "no result yet, the job goes on; get it with "
			       "airloxfs result");
	} else if (done == 0) {
		done = job_show_end(&show, f, status, e);
	}
	job_printed_free(&printed);
	return done;
}

static int run(struct running *r, char *invite, int *status, struct err *e)
{
	enum job_posted posted;

	if (take_limits(r, e) < 0 || take_code(r, e) < 0 ||
	    take_inputs(r, e) < 0)
		return -1;
	r->peer = cmd_open(&r->c, invite, e);
	if (!r->peer || follow_open(&r->follow, r->peer, e) < 0 ||
	    !(r->wire = peer_wire(r->peer, e)) ||
	    follow_now(&r->follow, e) < 0 || take_target(r, e) < 0 ||
	    send_inputs(r, e) < 0 || seal_and_post(r, &posted, e) < 0)
		return -1;
	if (posted != JOB_TAKEN) {
		*status = show_unplaced(r, posted);
		return 0;
	}
	if (r->no_wait) {
		*status = show_submitted(r);
		return 0;
	}
	if (!r->c.json)
		tell_note("submitted %s", r->sealed.id);
	return wait_result(r, status, e);
}

static void running_free(struct running *r)
{
	job_free(&r->job);
	job_plan_free(r->plan);
	follow_close(&r->follow);
	wire_free(r->wire);
	peer_free(r->peer);
	r->sealed.owns_fd = false;
	sealed_free(&r->sealed);
	routed_job_free(&r->state);
	for (size_t i = 0; i < r->spec.input_n; i++)
		close(r->fd[i]);
	free(r->label);
	free(r->requirement);
	buf_free(&r->code);
}

int cmd_run(struct setting *set, int argc, char **argv)
{
	struct running r = { .c = { .setting = set }, .wait = "10m",
			     .sealed = { .blob_fd = -1 } };
	const struct flag flags[] = {
		CMD_FLAGS(r.c),
		{ "--runner", FLAG_TEXT, &r.runner, "NAME",
		  "this runner, by its name or key" },
		{ "--label", FLAG_LIST, &r.labels, "LABEL",
		  "any idle runner that has all these; repeat, or use commas" },
		{ "--input", FLAG_LIST, &r.inputs, "FILE",
		  "a file beside the program; a zip is unpacked; repeat" },
		{ "--timeout", FLAG_TEXT, &r.timeout, "TIME",
		  "longest time it may take (default: the session's)" },
		{ "--memory", FLAG_TEXT, &r.memory, "N",
		  "memory, in MiB (default: the session's)" },
		{ "--requirement", FLAG_LIST, &r.requirements, "NAME",
		  "a package it needs, of the session's; repeat" },
		{ "--out-dir", FLAG_TEXT, &r.out_dir, "DIR",
		  "save the files it writes into this directory" },
		{ "--no-wait", FLAG_SET, &r.no_wait, NULL,
		  "submit it, print its id, and go" },
		{ "--wait", FLAG_TEXT, &r.wait, "TIME",
		  "wait for it at most so long (default 10m)" },
		{ 0 }
	};
	struct args a;
	struct err e;
	int status = 0;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs run [FLAGS] [INVITE] FILE",
			     "Run a Python file on a runner and print what it "
			     "prints.");
	if (over >= 0)
		return over;
	char *invite = cmd_take_invite(&r.c, &a, 1);
	if (a.n != 1)
		return cmd_misuse(a.n ? "one program at a time; others go "
				  "with --input" : "no program");
	r.path = a.v[0];
	int done = run(&r, invite, &status, &e);
	running_free(&r);
	if (done < 0)
		return tell_fail(&e);
	int flushed = tell_flush();
	return status ? status : flushed;
}
