/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "runner/site.h"
#include "runner/run.h"
#include "runner/sandbox/seccomp.h"

/* In /proc, and of the host rather than of the sandbox. */
static const char *const of_the_host[] = {
	"cmdline", "config.gz", "interrupts", "kallsyms", "kcore", "key-users",
	"keys", "modules", "sched_debug", "timer_list", "vmallocinfo", NULL
};

static void find_masks(struct site *h)
{
	size_t n = 0;
	for (const char *const *p = of_the_host; *p && n < SITE_MASKS; p++) {
		snprintf(h->mask_paths[n], sizeof h->mask_paths[n],
			 "/proc/%s", *p);
		if (access(h->mask_paths[n], F_OK) == 0) {
			h->masks[n] = h->mask_paths[n];
			n++;
		}
	}
	h->masks[n] = NULL;
}

static int find_bwrap(struct site *h, struct err *e)
{
	if (access("/usr/bin/bwrap", X_OK) == 0)
		strcpy(h->bwrap, "/usr/bin/bwrap");
	else if (!run_find("bwrap", h->bwrap, sizeof h->bwrap))
		return err_set(e, ERR_NOT_FOUND, "bubblewrap is not installed:"
			       " jobs run in it or not at all; install the"
			       " package bubblewrap");
	const char *const argv[] = { h->bwrap, "--version", NULL };
	const struct run_ask ask = { .argv = argv, .uid = (uid_t)-1,
				     .timeout_ms = 10000, .stop = -1 };
	cleanup_buf struct buf out = { 0 };
	unsigned major = 0, minor = 0;
	if (run_program(&ask, &out, e) < 0 || !buf_cstr(&out) ||
	    sscanf(buf_cstr(&out), "bubblewrap %u.%u", &major, &minor) != 2)
		return err_set(e, ERR_NOT_FOUND, "%s does not tell its "
			       "version", h->bwrap);
	char *version = buf_cstr(&out) + strlen("bubblewrap ");
	version[strcspn(version, "\n")] = 0;
	snprintf(h->bwrap_version, sizeof h->bwrap_version, "%s", version);
	if (major == 0 && minor < 8)
		return err_set(e, ERR_NOT_FOUND, "bubblewrap %s is too old: "
			       "0.8.0 is needed", h->bwrap_version);
	return 0;
}

static int find_user(struct site *h, const char *name, struct err *e)
{
	h->root = geteuid() == 0;
	h->uid = geteuid();
	h->gid = getegid();
	if (!h->root && name)
		return err_set(e, ERR_USAGE, "--job-user is for a runner that "
			       "is started as root");
	if (!h->root) {
		snprintf(h->job_user, sizeof h->job_user, "uid %ld",
			 (long)h->uid);
		return 0;
	}
	name = name ? name : "nobody";
	const struct passwd *p = getpwnam(name);
	if (!p)
		return err_set(e, ERR_USAGE, "no user %s for the jobs: give "
			       "one with --job-user", name);
	if (p->pw_uid == 0 || p->pw_gid == 0)
		return err_set(e, ERR_USAGE, "jobs do not run as root or in "
			       "its group: give another --job-user");
	h->uid = p->pw_uid;
	h->gid = p->pw_gid;
	snprintf(h->job_user, sizeof h->job_user, "%s", name);
	return 0;
}

/* Others must get through every directory above, but not in here. */
static int check_way(const struct site *h, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	if (!h->root)
		return 0;
	strcpy(path, h->scratch);
	for (;;) {
		if (stat(path, &st) < 0)
			return err_sys(e, "cannot look at %s", path);
		if (!(st.st_mode & 0001) && st.st_uid != h->uid)
			return err_set(e, ERR_USAGE, "%s cannot pass through "
				       "%s: give another --scratch",
				       h->job_user, path);
		char *slash = strrchr(path, '/');
		if (!slash || !path[1])
			return 0;
		slash[slash == path] = 0;
	}
}

static int find_scratch(struct site *h, const char *given, struct err *e)
{
	const char *tmp = h->root ? "/var/tmp" : getenv("TMPDIR");
	const char *dir = given ? given : tmp && *tmp ? tmp : "/tmp";
	char *real = realpath(dir, NULL);
	if (!real)
		return err_sys(e, "no scratch directory %s", dir);
	if (strlen(real) >= 3900) {
		free(real);
		return err_set(e, ERR_USAGE, "the path of the scratch "
			       "directory is too long");
	}
	strcpy(h->scratch, real);
	free(real);
	return check_way(h, e);
}

int site_open(struct site *h, const struct site_options *o, struct err *e)
{
	*h = (struct site){ .seccomp = -1 };
	if (find_bwrap(h, e) < 0 || find_user(h, o->job_user, e) < 0 ||
	    find_scratch(h, o->scratch, e) < 0)
		return -1;
	if (o->no_cgroups)
		snprintf(h->cgroups.why_not, sizeof h->cgroups.why_not,
			 "not wanted");
	else
		cgroup_find(&h->cgroups);
	find_masks(h);
	h->seccomp = seccomp_make(h->cgroups.kind == CGROUP_NONE, e);
	return h->seccomp < 0 ? -1 : 0;
}

void site_close(struct site *h)
{
	if (h->seccomp >= 0)
		close(h->seccomp);
	h->seccomp = -1;
}

/* --- the trial ------------------------------------------------------------ */

static long read_setting(const char *path)
{
	char text[32] = "";
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	return n > 0 ? strtol(text, NULL, 10) : -1;
}

/* What stands against user namespaces here, and what two things help. */
static int say_why(const char *said, struct err *e)
{
	static const char no[] = "this host forbids user namespaces to "
		"unprivileged processes, and jobs never run unsandboxed";
	if (read_setting("/proc/sys/user/max_user_namespaces") == 0)
		return err_set(e, ERR_FORBIDDEN, "%s: allow them with sysctl "
			"-w user.max_user_namespaces=15000, or use a host or "
			"virtual machine that does", no);
	if (read_setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return err_set(e, ERR_FORBIDDEN, "%s: allow them with sysctl "
			"-w kernel.unprivileged_userns_clone=1, or use a host "
			"or virtual machine that does", no);
	if (read_setting("/proc/sys/kernel/"
			 "apparmor_restrict_unprivileged_userns") == 1)
		return err_set(e, ERR_FORBIDDEN, "%s: give /usr/bin/bwrap an "
			"AppArmor profile with userns, or sysctl -w kernel."
			"apparmor_restrict_unprivileged_userns=0", no);
	return err_set(e, ERR_FORBIDDEN, "no sandbox can be started here, and "
		"jobs never run unsandboxed: allow user namespaces (in a "
		"container, start it with them), or use another host; %.90s",
		said);
}

static void read_all(int fd, char *to, size_t cap)
{
	size_t n = 0;
	ssize_t m;
	while (n < cap - 1 && (m = read(fd, to + n, cap - 1 - n)) > 0)
		n += (size_t)m;
	to[n] = 0;
	to[strcspn(to, "\n")] = 0;
}

/* The program in it is one that every host has; it sees the host's /usr, for
 * this once. */
static int try_plan(const struct site *h, struct plan *p, struct err *e)
{
	static const char *const env[] = { NULL };
	static const char *const command[] = { "/usr/bin/true", NULL };
	struct plan_mount m[PLAN_BASE + 6];
	size_t n = plan_base(m, h->masks, 1 << 20);
	m[n++] = (struct plan_mount){ PLAN_RO, "/usr", "/usr", 0 };
	m[n++] = (struct plan_mount){ PLAN_LINK, "usr/lib", "/lib", 0 };
	m[n++] = (struct plan_mount){ PLAN_LINK, "usr/lib64", "/lib64", 0 };
	const struct plan_ask ask = {
		.mounts = m, .n_mounts = n, .env = env, .command = command,
		.work_dir = "/", .host_name = "box",
		.limits = { .timeout_ms = 20000, .memory_bytes = 64 << 20,
			    .tasks = 16, .files = 64,
			    .by_rlimit = h->cgroups.kind == CGROUP_NONE },
	};
	return plan_make(p, &ask, e);
}

int site_try(struct site *h, struct err *e)
{
	struct plan plan = { 0 };
	struct scratch scratch;
	struct box box;
	struct box_end end = { .how = BOX_BROKEN };
	char name[CGROUP_NAME_MAX], said[256] = "";
	struct pollfd p;

	if (scratch_make(&scratch, h->scratch, h->uid, h->gid, e) < 0)
		return -1;
	cgroup_name(name, "t");
	const struct box_ask ask = {
		.plan = &plan, .scratch = &scratch, .cgroups = &h->cgroups,
		.cgroup_name = name, .seccomp = h->seccomp, .uid = h->uid,
		.gid = h->gid, .bwrap = h->bwrap,
	};
	if (try_plan(h, &plan, e) < 0 || box_start(&box, &ask, e) < 0) {
		plan_free(&plan);
		scratch_remove(&scratch);
		scratch_close(&scratch);
		return -1;
	}
	p = (struct pollfd){ .fd = box.control, .events = POLLIN };
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	box_ended(&box, &end);
	read_all(box.err, said, sizeof said);
	box_free(&box);
	plan_free(&plan);
	if (end.how == BOX_EXITED && end.code == 0)
		return 0;
	return say_why(said, e);
}
