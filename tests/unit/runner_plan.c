/* SPDX-License-Identifier: MIT
 *
 * The command line of a sandbox, word for word. */
#include <sys/resource.h>

#include "core/buf.h"
#include "runner/sandbox/plan.h"
#include "tests/unit/tap.h"

static const char *const masks[] = { "/proc/keys", NULL };
static const char *const env[] = { "PATH", "/usr/bin", "HOME", "/work", NULL };
static const char *const command[] = { "/usr/bin/python3.11", "-u",
				       "/work/-x.py", NULL };

static const char golden[] =
	"bwrap --unshare-user --unshare-ipc --unshare-pid --unshare-net "
	"--unshare-uts --unshare-cgroup --disable-userns "
	"--uid 1000 --gid 1000 --cap-drop ALL "
	"--new-session --die-with-parent --clearenv "
	"--hostname box --chdir /work "
	"--seccomp 3 --info-fd 4 --block-fd 5 "
	"--proc /proc --ro-bind /dev/null /proc/keys "
	"--perms 0700 --size 65536 --tmpfs /dev "
	"--dev-bind /dev/null /dev/null --dev-bind /dev/zero /dev/zero "
	"--dev-bind /dev/full /dev/full --dev-bind /dev/random /dev/random "
	"--dev-bind /dev/urandom /dev/urandom "
	"--symlink /proc/self/fd /dev/fd "
	"--symlink /proc/self/fd/0 /dev/stdin "
	"--symlink /proc/self/fd/1 /dev/stdout "
	"--symlink /proc/self/fd/2 /dev/stderr "
	"--dir /dev/shm --remount-ro /dev "
	"--perms 0700 --size 4096 --tmpfs /dev/shm "
	"--perms 0700 --size 4096 --tmpfs /tmp "
	"--ro-bind /usr/lib/py /usr/lib/py --bind /scratch/w /work "
	"--symlink usr/lib /lib --perms 0444 --file 6 /etc/passwd "
	"--remount-ro / --unsetenv PWD "
	"--setenv PATH /usr/bin --setenv HOME /work "
	"-- /usr/bin/python3.11 -u /work/-x.py";

static size_t fill(struct plan_mount m[PLAN_BASE + 4])
{
	size_t n = plan_base(m, masks, 4096);
	m[n++] = (struct plan_mount){ PLAN_RO, "/usr/lib/py", "/usr/lib/py",
				      0 };
	m[n++] = (struct plan_mount){ PLAN_RW, "/scratch/w", "/work", 0 };
	m[n++] = (struct plan_mount){ PLAN_LINK, "usr/lib", "/lib", 0 };
	m[n++] = (struct plan_mount){ PLAN_FILE, "job:x:1000\n",
				      "/etc/passwd", 0 };
	return n;
}

static void join(struct buf *b, char **argv)
{
	for (; *argv; argv++)
		buf_addf(b, "%s%s", b->len ? " " : "", *argv);
}

static const struct plan_rlimit *find(const struct plan *p, int resource)
{
	for (size_t i = 0; i < p->n_rlimits; i++)
		if (p->rlimits[i].resource == resource)
			return &p->rlimits[i];
	return NULL;
}

static void test_golden(void)
{
	struct plan_mount m[PLAN_BASE + 4];
	size_t n = fill(m);
	const struct plan_ask ask = {
		.mounts = m, .n_mounts = n, .env = env, .command = command,
		.work_dir = "/work", .host_name = "box",
		.limits = { .memory_bytes = 64 << 20, .tasks = 7, .files = 99,
			    .disk_bytes = 1 << 20, .by_rlimit = true },
	};
	struct plan p;
	struct err e = { 0 };
	cleanup_buf struct buf line = { 0 };

	is_int(plan_make(&p, &ask, &e), 0, "a plan is made");
	join(&line, p.argv);
	is_str(buf_cstr(&line), golden, "the command line");
	is_int(p.n_fds, 4, "its descriptors");
	for (size_t i = 0; i < p.n_fds; i++)
		is_int(p.fds[i].at, PLAN_FD_FIRST + (int)i, "number %zu", i);
	ok(p.fds[0].use == PLAN_FD_SECCOMP && p.fds[1].use == PLAN_FD_INFO &&
	   p.fds[2].use == PLAN_FD_BLOCK && p.fds[3].use == PLAN_FD_DATA,
	   "what each is for");
	is_str(p.fds[3].data, "job:x:1000\n", "what the file holds");
	const struct plan_rlimit *l = find(&p, RLIMIT_NPROC);
	ok(l && l->value == 7 && l->inside, "tasks are limited inside");
	l = find(&p, RLIMIT_NOFILE);
	ok(l && l->value == 99 && !l->inside, "descriptors from the start");
	l = find(&p, RLIMIT_DATA);
	ok(l && l->value > (64 << 20), "memory by rlimit, with slack");
	l = find(&p, RLIMIT_CORE);
	ok(l && l->value == 0, "no core");
	plan_free(&p);
	ok(!p.argv, "freed");
	plan_free(&p);
}

static void test_limits(void)
{
	const struct plan_ask ask = {
		.env = env + 4, .command = command, .work_dir = "/",
		.host_name = "h", .limits = { .memory_bytes = 1 << 30 },
	};
	struct plan p;
	is_int(plan_make(&p, &ask, NULL), 0, "a plan without limits");
	ok(!find(&p, RLIMIT_DATA), "a cgroup holds memory");
	ok(!find(&p, RLIMIT_NPROC) && !find(&p, RLIMIT_FSIZE), "none");
	plan_free(&p);
}

/* More files than a plan has room for are refused, not dropped. */
static void test_files(void)
{
	struct plan_mount m[PLAN_FDS];
	for (size_t i = 0; i < PLAN_FDS; i++)
		m[i] = (struct plan_mount){ PLAN_FILE, "x", "/x", 0 };
	const struct plan_ask ask = {
		.mounts = m, .n_mounts = PLAN_FDS, .env = env,
		.command = command, .work_dir = "/", .host_name = "h",
	};
	struct plan p;
	struct err e = { 0 };
	is_int(plan_make(&p, &ask, &e), -1, "too many files");
	plan_free(&p);
}

int main(void)
{
	test_golden();
	test_limits();
	test_files();
	return done_testing();
}
