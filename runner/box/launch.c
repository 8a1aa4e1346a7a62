/* SPDX-License-Identifier: MIT */
#include "runner/box/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/box/account.h"
#include "runner/box/begin.h"
#include "runner/box/check.h"
#include "runner/box/doors.h"
#include "runner/box/fence.h"
#include "runner/box/flags.h"
#include "runner/box/room.h"
#include "runner/box/rundir.h"
#include "runner/box/say.h"
#include "runner/box/slurp.h"
#include "runner/box/way.h"
#include "runner/policy/tree.h"
#include "runner/site.h"

#define EGRESS "egress.jsonl"
#define DEFAULT_TASKS 512
#define DEFAULT_MEMORY (UINT64_C(2) << 30)
#define DEFAULT_DISK (UINT64_C(4) << 30)

volatile sig_atomic_t launch_stop;

static void on_signal(int number) { launch_stop = number; }

static int read_policy(struct launch *l, struct err *e)
{
	cleanup_fd int fd = open(l->o.policy, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "%s: cannot open it", l->o.policy);
	if (slurp(fd, TREE_BYTES_MAX, &l->text, e) == 0)
		l->policy = policy_read(buf_bytes(&l->text), e);
	return l->policy ? 0 : err_prefix(e, "%s", l->o.policy);
}

/* The account is in the box's own directory, where nothing of the box leads:
 * it sees the file alone, and can only read it. */
static int open_egress(struct launch *l, struct err *e)
{
	const char *path = l->o.egress;
	if (!path) {
		snprintf(l->egress_path, sizeof l->egress_path, "%s/%s/%s",
			 l->site.scratch, l->scratch.name, EGRESS);
		path = l->egress_path;
	}
	l->egress = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
			 O_NOFOLLOW | (l->o.egress ? O_TRUNC : O_EXCL), 0600);
	if (l->egress < 0)
		return err_sys(e, "cannot write %s", path);
	if (l->site.root && (fchown(l->egress, 0, l->site.gid) < 0 ||
			     fchmod(l->egress, 0640) < 0))
		return err_sys(e, "cannot show %s to the box", path);
	if (!l->o.egress)
		return 0;
	char *real = realpath(path, NULL);
	if (!real || strlen(real) >= sizeof l->egress_path) {
		free(real);
		return err_sys(e, "cannot find %s", path);
	}
	strcpy(l->egress_path, real);
	free(real);
	return 0;
}

static struct plan_limits limits_of(const struct launch *l)
{
	const struct policy_limits *p = &l->policy->limits;
	return (struct plan_limits){
		.timeout_ms = (uint32_t)(p->time_ms > UINT32_MAX ? UINT32_MAX :
					 p->time_ms),
		.memory_bytes = p->memory_bytes ? (uint64_t)p->memory_bytes :
						  DEFAULT_MEMORY,
		.disk_bytes = p->disk_bytes ? (uint64_t)p->disk_bytes :
					      DEFAULT_DISK,
		.tasks = p->processes > 0 && p->processes < 65536 ?
			 (uint32_t)p->processes : DEFAULT_TASKS,
		.files = 4096, .entries = 500000,
		.by_rlimit = l->site.cgroups.kind == CGROUP_NONE,
	};
}

static int prepare(struct launch *l, struct err *e)
{
	if (files_may_apply(l->policy, l->o.apply, e) < 0 ||
	    fence_check(l->policy, e) < 0 ||
	    site_open(&l->site, &l->o.site, e) < 0)
		return -1;
	l->has_site = true;
	uid_t uid = l->site.root ? l->site.uid : (uid_t)-1;
	gid_t gid = l->site.root ? l->site.gid : (gid_t)-1;
	if (scratch_make(&l->scratch, l->site.scratch, uid, gid, e) < 0)
		return -1;
	l->has_scratch = true;
	snprintf(l->run.scratch, sizeof l->run.scratch, "%.*s",
		 (int)(strlen(l->scratch.work_path) - strlen("/work")),
		 l->scratch.work_path);
	if (rundir_put(&l->run, e) < 0)
		return -1;
	if (l->o.session &&
	    session_open(&l->session, l->o.session, uid, gid,
			 l->policy->session_owner, e) < 0)
		return -1;
	if (files_open(&l->files, l->policy, &l->scratch, uid, gid, e) < 0)
		return -1;
	if (open_egress(l, e) < 0)
		return -1;
	if (!l->o.no_record && account_open(&l->account, &l->run, e) < 0)
		return -1;
	l->account.session = &l->session;
	const struct plan_limits limits = limits_of(l);
	const struct account_facts facts = {
		l->policy, (const char *const *)l->o.command,
		l->site.bwrap_version, &limits,
	};
	account_begin(&l->account, &facts);
	if (way_open(&l->way, buf_bytes(&l->text), l->egress, l->journal,
		     e) < 0)
		return err_prefix(e, "%s", l->o.policy);
	return 0;
}

static int make_plan(struct launch *l, struct err *e)
{
	const struct room_ask room = {
		.policy = l->policy, .masks = l->site.masks,
		.work = l->scratch.work_path, .copies = l->scratch.out_path,
		.egress = l->egress_path,
		.session = l->o.session ? &l->session.found : NULL,
		.ca = buf_bytes(&l->way.ca), .token = l->way.token,
	};
	if (room_make(&l->room, &room, e) < 0 ||
	    (l->use->furnish && l->use->furnish(l, e) < 0))
		return -1;
	const struct plan_ask ask = {
		.mounts = l->room.mount, .n_mounts = l->room.mount_n,
		.env = l->room.env,
		.command = l->inner ? l->inner :
				      (const char *const *)l->o.command,
		.work_dir = "/work", .host_name = "box",
		.limits = limits_of(l),
	};
	return plan_make(&l->plan, &ask, e);
}

/* In the keeper. */
static int open_up(void *launch, pid_t first)
{
	struct launch *l = launch;
	session_is(&l->session, first);
	return doors_open(&l->doors, first);
}

static int start(struct launch *l, struct err *e)
{
	char name[CGROUP_NAME_MAX];
	cgroup_name(name, l->run.run);
	l->doors = (struct doors){ l->way.control, l->site.uid, l->site.gid };
	const struct box_ask ask = {
		.plan = &l->plan, .scratch = &l->scratch,
		.cgroups = &l->site.cgroups, .cgroup_name = name,
		.seccomp = l->site.seccomp, .uid = l->site.uid,
		.gid = l->site.gid, .bwrap = l->site.bwrap,
		.disk_base_bytes = l->files.copied_bytes, .prepare = open_up,
		.prepare_arg = l, .keep_fd = l->way.control,
		.talks = l->use->talks,
	};
	if (box_start(&l->box, &ask, e) < 0)
		return -1;
	l->has_box = true;
	l->run.broker = rundir_process(l->way.broker);
	l->run.keeper = rundir_process(l->box.keeper);
	return rundir_say(&l->run, RUNDIR_RUNNING, NULL, e);
}

/* --- while it runs --- */

size_t launch_within_output(struct launch *l, size_t n)
{
	int64_t most = l->policy->limits.output_bytes;
	int64_t left = most - l->said_bytes;
	l->said_bytes += (int64_t)n;
	if (most == 0 || left >= (int64_t)n)
		return n;
	return left > 0 ? (size_t)left : 0;
}

/* false: it has ended, or there is nobody to tell it. */
static bool pass_on(struct launch *l, int from, int to)
{
	char block[16384];
	ssize_t n = read(from, block, sizeof block);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	size_t m = launch_within_output(l, (size_t)n);
	if (m)
		account_say(&l->account, to == 1 ? "stdout" : "stderr",
			    (struct bytes){ (const uint8_t *)block, m });
	for (size_t at = 0; at < m;) {
		ssize_t sent = write(to, block + at, m - at);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		at += (size_t)sent;
	}
	return n > 0;
}

/* Without a broker nothing is decided and nothing written down. */
static void lose_broker(struct launch *l, int *fd)
{
	say_note("the broker has ended: the box is stopped");
	box_kill(&l->box);
	*fd = -1;
}

static void pump(struct launch *l, struct box_end *end)
{
	struct pollfd p[4] = { { .fd = l->box.out, .events = POLLIN },
			       { .fd = l->box.err, .events = POLLIN },
			       { .fd = l->box.control, .events = POLLIN },
			       { .fd = l->way.control } };
	bool over = false;
	while (!over || p[0].fd >= 0 || p[1].fd >= 0) {
		if (launch_stop && !over)
			box_kill(&l->box);
		if (poll(p, 4, 250) < 0 && errno != EINTR)
			break;
		if (p[3].revents && !over)
			lose_broker(l, &p[3].fd);
		account_follow(&l->account);
		for (int i = 0; i < 2; i++)
			if (p[i].fd >= 0 && p[i].revents &&
			    !pass_on(l, p[i].fd, i + 1))
				p[i].fd = -1;
		if (!over && p[2].revents) {
			box_ended(&l->box, end);
			over = true;
			p[2].fd = -1;
		}
		for (int i = 0; i < 4; i++)
			p[i].revents = 0;
	}
	if (l->policy->limits.output_bytes &&
	    l->said_bytes > l->policy->limits.output_bytes)
		say_note("output beyond that of the policy was dropped");
}

int launch_verdict(const struct box_end *end)
{
	switch (end->how) {
	case BOX_EXITED:
		if (end->out_of_memory)
			say_note("processes were ended for want of memory");
		return end->code;
	case BOX_TIMED_OUT:
		say_note("the time of the policy is over");
		return 124;
	case BOX_MEMORY:
		say_note("over the memory of the policy");
		return 137;
	case BOX_DISK:
		say_note(end->disk_low ? "this machine's disk is full" :
			 "over the disk of the policy");
		return 137;
	case BOX_KILLED:
		return 128 + (launch_stop ? launch_stop : SIGKILL);
	case BOX_BROKEN:
		break;
	}
	say_note("the box could not be started");
	return err_exit(ERR_SYS);
}

static int verdict(struct launch *l, const struct box_end *end)
{
	(void)l;
	return launch_verdict(end);
}

/* The broker has to end first: its last lines are a part of it. */
static int write_record(struct launch *l, const struct box_end *end, int code)
{
	cleanup_buf struct buf name = { 0 };
	struct err e = { 0 };
	if (l->o.no_record)
		return code;
	way_close(&l->way);
	account_end(&l->account, end, code,
		    cgroup_word(l->site.cgroups.kind));
	if (account_write(&l->account, l->o.record, &name, &e) < 0) {
		l->keeps_run = !l->account.failed;
		say_note("no whole record: %s%s", e.why, l->keeps_run ?
			 "; airlox-box reap --yes tries once more" : "");
		return code ? code : err_exit(e.code);
	}
	say_note("record: %s", buf_cstr(&name));
	return code;
}

void launch_clean_up(struct launch *l)
{
	session_free(&l->session);
	files_free(&l->files);
	account_free(&l->account);
	if (l->journal >= 0)
		close(l->journal);
	if (l->egress >= 0)
		close(l->egress);
	if (!l->o.egress && l->has_scratch)
		unlink(l->egress_path);
	if (l->has_box) {
		box_free(&l->box);
	} else if (l->has_scratch) {
		scratch_remove(&l->scratch);
		scratch_close(&l->scratch);
	}
	if (l->has_site)
		site_close(&l->site);
	way_close(&l->way);
	room_free(&l->room);
	plan_free(&l->plan);
	buf_free(&l->text);
	policy_free(l->policy);
	if (l->keeps_run)
		rundir_close(&l->run);
	else
		rundir_remove(&l->run);
}

int launch_box(struct launch *l, const struct launch_use *use, struct err *e)
{
	struct box_end end = { .how = BOX_BROKEN };
	struct sigaction sa = { .sa_handler = on_signal };
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	l->use = use;
	if (read_policy(l, e) < 0 ||
	    begin_run(&l->run, &l->o, &l->journal, e) < 0 ||
	    prepare(l, e) < 0 || make_plan(l, e) < 0 || start(l, e) < 0)
		return -1;
	use->drive(l, &end);
	session_end(&l->session, account_note, &l->account);
	(void)rundir_say(&l->run, RUNDIR_ENDING, NULL, NULL);
	int code = use->verdict(l, &end);
	size_t left = files_close(&l->files, &l->account, end.left ?
				  FILES_LEAVE : l->o.apply, code, l->run.run);
	return write_record(l, &end, code ? code : left ?
			    err_exit(ERR_EXISTS) : 0);
}

int launch_main(int argc, char **argv)
{
	static const struct launch_use use = { .drive = pump,
					       .verdict = verdict };
	struct launch l = LAUNCH_INIT;
	struct err e = { 0 };
	if (flags_read(&l.o, argc, argv, &e) < 0)
		return say_fail(&e);
	if (l.o.help) {
		say_text(bytes_str(flags_help));
		return 0;
	}
	int r = launch_box(&l, &use, &e);
	if (r < 0)
		r = say_fail(&e);
	launch_clean_up(&l);
	return r;
}
