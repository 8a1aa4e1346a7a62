/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>

#include "core/buf.h"
#include "runner/queue/gate.h"
#include "runner/queue/jobfile.h"
#include "runner/queue/pump.h"
#include "runner/queue/serve.h"
#include "runner/queue/spec.h"
#include "runner/queue/verdict.h"
#include "runner/runtime/packages.h"
#include "runner/sandbox/collect.h"
#include "runner/sandbox/dirs.h"
#include "runner/tell.h"

#define INPUT_MAX_BYTES (UINT64_C(4) << 30)
#define ENTRIES 50000
#define FILES 1024
#define MIN_DISK_BYTES (UINT64_C(1) << 30)
#define EARLY_ENTRIES 100	/* of work/, see is_small */
#define EARLY_BYTES (8 << 20)
#define CLAIM_TRIES 28		/* a second each: then it is too late */

struct job {
	struct server *s;
	const char *name;
	int dir;
	struct spec spec;
	struct python *python;
	char packages[PATH_MAX];	/* on the host, or "" */
	char cgroup_name[CGROUP_NAME_MAX];
	struct scratch scratch;
	struct plan plan;
	struct box box;
	bool boxed;			/* box and scratch are in use */
	uint64_t input_bytes;
	struct gate gate;		/* a session's that allows network */
};

/* --- before it runs ------------------------------------------------------- */

static struct python *find_python(struct server *s, const char *name,
				  struct err *e)
{
	for (size_t i = 0; i < s->n_pythons; i++)
		if (!strcmp(s->pythons[i].name, name))
			return &s->pythons[i];
	if (s->n_pythons == SERVE_PYTHONS)
		s->n_pythons--;
	struct python *p = &s->pythons[s->n_pythons];
	struct err why = { 0 };
	if (python_find(p, name, e) < 0)
		return NULL;
	if (python_trim(p, s->host, s->options->cache, &why) < 0)
		tell_note("warning: jobs see all of %s: %s", p->libs,
			  why.why);
	s->n_pythons++;
	return p;
}

static int read_spec(struct job *j, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	if (jobfile_read(j->dir, "spec.json", SPEC_MAX_BYTES, &text, e) < 0)
		return -1;
	return spec_parse(&j->spec, buf_bytes(&text), e);
}

/* What can be seen to be impossible before the job is ours. */
static int check_spec(struct job *j, struct err *e)
{
	if (read_spec(j, e) < 0)
		return -1;
	if (j->spec.network && !j->s->options->policy)
		return err_set(e, ERR_POLICY, "this session lets jobs on the "
			       "network, which this runner does only by a "
			       "policy (--policy)");
	j->python = find_python(j->s, j->spec.runtime, e);
	return j->python ? 0 : -1;
}

/* Whether its sandbox may be made while the job is not ours yet: there is
 * little to copy, nothing to download, and no broker to start. */
static bool is_small(const struct job *j)
{
	struct dirs_use use = { 0 };
	cleanup_fd int work = openat(j->dir, "work", O_RDONLY | O_DIRECTORY |
				     O_NOFOLLOW | O_CLOEXEC);
	if (work < 0 || j->spec.requirements.n || j->spec.network)
		return false;
	dirs_measure(work, EARLY_ENTRIES, &use);
	return use.entries <= EARLY_ENTRIES && use.bytes <= EARLY_BYTES;
}

/* 1: it was withdrawn. */
static int claim(struct job *j, struct err *e)
{
	for (int i = 0; i < CLAIM_TRIES && !serve_stopped(j->s); i++) {
		if (jobfile_verb(j->dir, "claim", NULL, e) == 0)
			return 0;
		if (e->sys != EAGAIN)
			break;
	}
	/* Claimed by a runner that is no more: it has no other end. */
	if (e->sys == ESTALE)
		(void)jobfile_verb(j->dir, "failed", "runner restarted",
				   NULL);
	return 1;
}

static int prepare_packages(struct job *j, struct err *e)
{
	j->packages[0] = 0;
	if (!j->spec.requirements.n)
		return 0;
	const struct packages_ask ask = {
		.host = j->s->host, .python = j->python,
		.cache = j->s->options->cache, .stop = j->s->stop,
		.allowed = (const char *const *)j->spec.packages.v,
		.n_allowed = j->spec.packages.n,
		.wanted = (const char *const *)j->spec.requirements.v,
		.n_wanted = j->spec.requirements.n,
	};
	return packages_get(&ask, j->packages, e);
}

static int copy_work(struct job *j, struct err *e)
{
	const struct site *h = j->s->host;
	uid_t uid = h->root ? h->uid : (uid_t)-1;
	gid_t gid = h->root ? h->gid : (gid_t)-1;
	if (scratch_make(&j->scratch, h->scratch, uid, gid, e) < 0)
		return -1;
	j->boxed = true;
	cleanup_fd int work = openat(j->dir, "work", O_RDONLY | O_DIRECTORY |
				     O_NOFOLLOW | O_CLOEXEC);
	if (work < 0)
		return err_sys(e, "cannot open the job's files");
	return dirs_copy_in(work, j->scratch.work, uid, gid, INPUT_MAX_BYTES,
			    &j->input_bytes, e);
}

/* --- its sandbox ---------------------------------------------------------- */

static size_t add_mounts(struct job *j, struct plan_mount *m, size_t n)
{
	static const struct plan_mount files[] = {
		{ PLAN_FILE, "job:x:1000:1000::/work:/usr/sbin/nologin\n",
		  "/etc/passwd", 0 },
		{ PLAN_FILE, "job:x:1000:\n", "/etc/group", 0 },
		{ PLAN_FILE, "127.0.0.1 localhost\n::1 localhost\n",
		  "/etc/hosts", 0 },
	};
	memcpy(m + n, files, sizeof files);
	n += sizeof files / sizeof *files;
	memcpy(m + n, j->python->mounts,
	       j->python->n_mounts * sizeof *m);
	n += j->python->n_mounts;
	if (j->packages[0])
		m[n++] = (struct plan_mount){ PLAN_RO, j->packages,
					      PACKAGES_DIR, 0 };
	if (j->spec.network) {
		m[n++] = (struct plan_mount){ PLAN_FILE,
			buf_cstr(&j->gate.ca), GATE_BUNDLE, 0 };
		m[n++] = (struct plan_mount){ PLAN_LINK, GATE_BUNDLE,
					      "/etc/ssl/cert.pem", 0 };
	}
	m[n++] = (struct plan_mount){ PLAN_RW, j->scratch.work_path, "/work",
				      0 };
	m[n++] = (struct plan_mount){ PLAN_RW, j->scratch.out_path, "/out",
				      0 };
	return n;
}

static struct plan_limits limits_of(const struct job *j)
{
	uint64_t disk = j->s->options->disk_bytes;
	if (!disk) {
		disk = 2 * j->spec.out_max_bytes;
		if (disk < MIN_DISK_BYTES)
			disk = MIN_DISK_BYTES;
	}
	return (struct plan_limits){
		.timeout_ms = j->spec.timeout_s * 1000,
		.memory_bytes = (uint64_t)j->spec.memory_mb << 20,
		.disk_bytes = disk, .tasks = j->s->options->tasks,
		.files = FILES, .entries = ENTRIES,
		.by_rlimit = j->s->host->cgroups.kind == CGROUP_NONE,
	};
}

static int make_plan(struct job *j, struct err *e)
{
	const char *env[12 + GATE_ENV] = {
		"PATH", "/usr/bin", "HOME", "/work", "LANG", "C.UTF-8",
		"TMPDIR", "/tmp", "AIRLOX_OUT", "/out", "MPLBACKEND", "Agg",
	};
	struct plan_mount m[PLAN_BASE + PYTHON_MOUNTS + 8 + GATE_MOUNTS];
	char entry[sizeof j->spec.entry + 8];
	snprintf(entry, sizeof entry, "/work/%s", j->spec.entry);
	/* -u: a line printed is a line seen */
	const char *const command[] = {
		j->packages[0] ? PACKAGES_PYTHON : j->python->exe, "-u", "-s",
		entry, NULL
	};
	const struct plan_limits limits = limits_of(j);
	if (j->spec.network)
		gate_env(&j->gate, env + 12);
	size_t n = plan_base(m, j->s->host->masks, limits.memory_bytes / 2);
	n = add_mounts(j, m, n);
	const struct plan_ask ask = {
		.mounts = m, .n_mounts = n, .env = env, .command = command,
		.work_dir = "/work", .host_name = "box", .limits = limits,
	};
	return plan_make(&j->plan, &ask, e);
}

static int start(struct job *j, struct err *e)
{
	const struct site *h = j->s->host;
	char number[24];
	if (j->spec.network &&
	    gate_open(&j->gate, j->s->options->policy, e) < 0)
		return -1;
	j->gate.doors.uid = h->uid;
	j->gate.doors.gid = h->gid;
	if (make_plan(j, e) < 0)
		return -1;
	snprintf(number, sizeof number, "%lu", j->s->jobs);
	cgroup_name(j->cgroup_name, number);
	const struct box_ask ask = {
		.plan = &j->plan, .scratch = &j->scratch,
		.cgroups = &h->cgroups, .cgroup_name = j->cgroup_name,
		.seccomp = h->seccomp, .uid = h->uid, .gid = h->gid,
		.bwrap = h->bwrap, .disk_base_bytes = j->input_bytes,
		.prepare = j->spec.network ? doors_open : NULL,
		.prepare_arg = &j->gate.doors,
		.keep_fd = j->spec.network ? j->gate.doors.control : 0,
		.hold = true,
	};
	return box_start(&j->box, &ask, e);
}

/* --- while it runs -------------------------------------------------------- */

static int run(struct job *j, struct box_end *end, struct verdict *v,
	       struct err *e)
{
	struct pump p;
	if (pump_open(&p, j->dir, j->box.out, j->box.err, e) < 0)
		return -1;
	struct pollfd fds[5] = {
		[0] = { .fd = j->box.control, .events = POLLIN },
		[1] = { .fd = j->s->stop, .events = POLLIN },
		[2] = { .fd = p.inotify, .events = POLLIN },
	};
	int r = 0;
	while (r == 0) {
		fds[3] = (struct pollfd){ .fd = p.from[0], .events = POLLIN };
		fds[4] = (struct pollfd){ .fd = p.from[1], .events = POLLIN };
		if (poll(fds, 5, 1000) < 0 && errno != EINTR)
			r = err_sys(e, "cannot wait for the job");
		if (fds[0].revents)
			break;
		if (fds[1].revents && !v->stopped) {
			v->stopped = true;
			fds[1].fd = -1;
			box_kill(&j->box);
		}
		if (!v->cancelled && pump_cancelled(&p)) {
			v->cancelled = true;
			box_kill(&j->box);
		}
		if (r == 0)
			r = pump_some(&p, e);
	}
	if (r < 0)
		box_kill(&j->box);
	box_ended(&j->box, end);
	if (r == 0)
		r = pump_rest(&p, e);
	snprintf(v->said, sizeof v->said, "%s", p.last);
	pump_close(&p);
	return r;
}

/* --- after it ------------------------------------------------------------- */

static int collect(struct job *j, struct verdict *v, struct err *e)
{
	const struct collect_limits limits = { j->spec.out_max_bytes,
					       j->spec.out_max_files };
	struct collected c = { 0 };
	cleanup_fd int out = openat(j->dir, "out", O_RDONLY | O_DIRECTORY |
				    O_NOFOLLOW | O_CLOEXEC);
	if (!j->spec.return_out || out < 0)
		return 0;
	int r = collect_out(j->scratch.out, out, &limits, &c, e);
	if (r == 0 && c.dropped)
		verdict_add(v, "not sent from out/: %s", buf_cstr(&c.names));
	collected_free(&c);
	return r;
}

static int finish(struct job *j, const struct box_end *end, struct verdict *v,
		  struct err *e)
{
	char number[32];
	snprintf(number, sizeof number, "%" PRIu64 "\n",
		 (end->peak_bytes + (1 << 20) - 1) >> 20);
	verdict_make(v, end, &j->plan.limits, j->s->host->cgroups.kind);
	gate_close(&j->gate, v);
	if (end->how != BOX_BROKEN && !v->cancelled && collect(j, v, e) < 0)
		return -1;
	tell_note("job %s: %s%s%s; %" PRIu64 " ms, %.*s MB, %s", j->name,
		  v->verb, v->reason.len ? ": " : "",
		  v->reason.len ? buf_cstr(&v->reason) : "", end->wall_ms,
		  (int)strcspn(number, "\n"), number,
		  cgroup_word(j->s->host->cgroups.kind));
	if (jobfile_write(j->dir, "peak_mem_mb", number, e) < 0)
		return -1;
	snprintf(number, sizeof number, "%d\n", end->code);
	if (v->has_exit && jobfile_write(j->dir, "exit", number, e) < 0)
		return -1;
	if (v->reason.len &&
	    jobfile_write(j->dir, "reason", buf_cstr(&v->reason), e) < 0)
		return -1;
	return jobfile_verb(j->dir, v->verb,
			    strcmp(v->verb, "failed") ? NULL :
			    buf_cstr(&v->reason), e);
}

static void clean_up(struct job *j)
{
	gate_close(&j->gate, NULL);
	if (j->box.keeper > 0)
		box_free(&j->box);
	else if (j->boxed) {
		scratch_remove(&j->scratch);
		scratch_close(&j->scratch);
	}
	plan_free(&j->plan);
	spec_free(&j->spec);
	if (j->dir >= 0)
		close(j->dir);
}

/* `from` has lines of a word and a value; the first is the name. */
static void say_start(const struct job *j)
{
	cleanup_buf struct buf from = { 0 };
	const char *name = "";
	if (jobfile_read(j->dir, "from", 4096, &from, NULL) == 0 &&
	    buf_cstr(&from))
		name = buf_cstr(&from);
	if (!strncmp(name, "name ", 5))
		name += 5;
	tell_note("job %s: %s in %s, from %.*s", j->name, j->spec.entry,
		  j->spec.runtime, (int)strcspn(name, "\n"), name);
}

/* A verb that cannot be written: the queue is gone, or the job is. */
static int end_with(struct job *j, const char *verb, const struct err *why,
		    struct err *e)
{
	tell_note("job %s: %s: %s", j->name, verb, why->why);
	if (jobfile_verb(j->dir, verb, why->why, e) == 0 ||
	    e->sys != ENOTCONN)
		return 0;
	return -1;
}

static int prepare(struct job *j, struct err *e)
{
	return prepare_packages(j, e) < 0 || copy_work(j, e) < 0 ||
	       start(j, e) < 0 ? -1 : 0;
}

static int serve_job(struct job *j, struct err *e)
{
	struct box_end end = { .how = BOX_BROKEN };
	struct verdict v = { 0 };
	struct err why = { 0 }, early = { 0 };

	if (check_spec(j, &why) < 0)
		return end_with(j, "refuse", &why, e);
	/* The relay takes its time to answer a claim, a sandbox to be made. */
	bool made = is_small(j) && prepare(j, &early) == 0;
	if (claim(j, &why) != 0) {
		tell_note("job %s: not claimed: %s", j->name, why.why);
		return why.sys == ENOTCONN ? err_set(e, ERR_GONE, "%s",
						     why.why) : 0;
	}
	say_start(j);
	if (early.code != ERR_NONE)
		return end_with(j, "failed", &early, e);
	if (!made && prepare(j, &why) < 0)
		return end_with(j, "failed", &why, e);
	box_go(&j->box);
	int r = run(j, &end, &v, &why);
	if (r == 0)
		r = finish(j, &end, &v, &why);
	verdict_free(&v);
	return r == 0 ? 0 : end_with(j, "failed", &why, e);
}

int job_serve(struct server *s, const char *name, struct err *e)
{
	struct job j = { .s = s, .name = name, .dir = -1,
			 .box = { .keeper = -1 },
			 .gate = { .broker = -1, .account = -1,
				   .doors = { .control = -1 } } };
	s->jobs++;
	j.dir = openat(s->queue, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
		       O_CLOEXEC);
	if (j.dir < 0)
		return 0;	/* withdrawn meanwhile */
	int r = serve_job(&j, e);
	clean_up(&j);
	return r;
}
