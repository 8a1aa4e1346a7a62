/* SPDX-License-Identifier: MIT
 *
 * mount: joins a session and serves it as a directory.
 *
 * The parent waits until the mount is usable, so that its exit status is
 * true; the child is the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "airloxfs/cmd.h"
#include "airloxfs/guard.h"
#include "airloxfs/mount.h"
#include "airloxfs/outbox.h"
#include "airloxfs/print.h"
#include "airloxfs/where.h"
#include "core/host/tell.h"

#define FUSE_OPTIONS "fsname=airloxfs,subtype=airloxfs,nosuid,nodev,noexec," \
	"default_permissions,auto_unmount"
#define CONNECT_MS 5000
#define LOCK_TRIES 150		/* of 100 ms */
#define FREE_TRIES 100		/* of 30 ms */
#define LOOK_MS 10000		/* for what is mounted there to answer */

struct mounting {
	struct common common;
	struct mount_options opt;
	struct flag_list o;
	const char *cache_max, *items_max, *name, *labels;
	struct runner_info runner;	/* with a runner's link */
	char host[128];
	bool front, keep;
	struct invite invite;
	struct buf fuse;
	const char *dir;	/* as it was given */
	char *path;
	int report;		/* to the parent, -1 with -f */
	struct mount *m;
	pthread_t signals;
	bool has_signals;
};

/* What the child tells the parent; exit 0: mounted. */
struct report {
	int exit;
	char text[400];
	char session[SESSION_ID + 1], state[16], role[16];
};

/* --- options --- */

static int one_option(struct mounting *g, const char *opt, struct err *e)
{
	if (!strcmp(opt, "strict"))
		g->opt.strict = true;
	else if (!strcmp(opt, "allow_other") || !strcmp(opt, "allow_root"))
		buf_addf(&g->fuse, ",%s", opt);
	else if (!strcmp(opt, "ro"))	/* nothing could appear in it */
		return err_set(e, ERR_USAGE, "-o ro: there is no such mount; "
			       "join with the observer's link instead");
	else if (strcmp(opt, "rw") != 0 && *opt)
		return err_set(e, ERR_USAGE, "-o %s is not known; there are "
			       "strict, allow_other, allow_root", opt);
	return 0;
}

/* 500M, 4G: bytes. */
static int read_size(uint64_t *out, const char *text, struct err *e)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30
		: *end == 'T' ? 40 : 0;
	if (*text < '0' || *text > '9' || strlen(end) > 1 ||
	    (*end && !shift) || !n || n >= 1ull << (62 - shift))
		return err_set(e, ERR_USAGE, "--cache-max: a size like 500M "
			       "or 4G");
	*out = n << shift;
	return 0;
}

static int read_count(uint64_t *out, const char *text, struct err *e)
{
	char *end;
	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || !*out)
		return err_set(e, ERR_USAGE, "--items-max: a number like "
			       "100000");
	return 0;
}

static int read_options(struct mounting *g, struct err *e)
{
	if (read_size(&g->opt.cache_max, g->cache_max, e) < 0 ||
	    read_count(&g->opt.items_max, g->items_max, e) < 0)
		return -1;
	buf_add_str(&g->fuse, FUSE_OPTIONS);
	for (int i = 0; i < g->o.n; i++) {
		char *list = strdup(g->o.v[i]), *save;
		int rc = 0;
		for (char *opt = list ? strtok_r(list, ",", &save) : NULL;
		     opt && rc == 0; opt = strtok_r(NULL, ",", &save))
			rc = one_option(g, opt, e);
		free(list);
		if (rc < 0)
			return -1;
	}
	g->opt.keep = g->keep;
	g->opt.cache_dir = g->common.cache_dir ? g->common.cache_dir
		: g->common.setting->cache_dir;
	g->opt.fuse = buf_cstr(&g->fuse);
	return 0;
}

/* --- a runner --- */

static int read_labels(struct runner_info *r, const char *list, struct err *e)
{
	while (list && *list) {
		size_t n = strcspn(list, ",");
		if (r->label_n >= LABELS_MAX ||
		    !label_ok((struct bytes){ (const uint8_t *)list, n }))
			return err_set(e, ERR_USAGE, "--labels: at most %d of "
				       "a-z, 0-9, '.', '_', '-', with commas "
				       "between them", LABELS_MAX);
		memcpy(r->labels[r->label_n++], list, n);
		list += n + (list[n] == ',');
	}
	return 0;
}

/* What the others are told of this machine is its kind, not its name. */
static void name_host(struct mounting *g)
{
	struct utsname u;
	if (uname(&u) < 0)
		strcpy(u.sysname, "Linux"), u.machine[0] = 0;
	snprintf(g->host, sizeof g->host, "%.60s%s%.60s", u.sysname,
		 u.machine[0] ? " " : "", u.machine);
	g->runner.host = g->host;
}

static int read_runner(struct mounting *g, struct err *e)
{
	const char *as = g->common.as ? g->common.as : g->common.setting->name;
	const char *name = g->name ? g->name :
		as && label_ok(bytes_str(as)) ? as : "runner";
	if (g->invite.role != ROLE_RUNNER)
		return !g->name && !g->labels ? 0 :
			err_set(e, ERR_USAGE, "--name and --labels are a "
				"runner's: this is the %s's link",
				role_word(g->invite.role));
	if (!label_ok(bytes_str(name)))
		return err_set(e, ERR_USAGE, "--name: 1 to %d of a-z, 0-9, "
			       "'.', '_', '-', the first a letter or digit",
			       LABEL_MAX);
	strcpy(g->runner.name, name);
	name_host(g);
	return read_labels(&g->runner, g->labels, e);
}

static int parse(struct mounting *g, int argc, char **argv, struct err *e)
{
	const struct flag flags[] = {
		CMD_FLAGS(g->common),
		{ "-f", FLAG_SET, &g->front, NULL, "stay in the front" },
		{ "-o", FLAG_LIST, &g->o, "OPT", "strict (a close without an "
		  "answer fails), allow_other, allow_root" },
		{ "--cache-max", FLAG_TEXT, &g->cache_max, "SIZE",
		  "above it nothing is fetched until there is room (4G)" },
		{ "--items-max", FLAG_TEXT, &g->items_max, "N",
		  "the same for the number of entries in in/ (100000)" },
		{ "--name", FLAG_TEXT, &g->name, "NAME",
		  "a runner's name, by which jobs are sent to it (runner)" },
		{ "--labels", FLAG_TEXT, &g->labels, "L,L",
		  "a runner's labels: what it is good for" },
		{ "--keep", FLAG_SET, &g->keep, NULL,
		  "keep cache and state when the session ends" },
		{ 0 },
	};
	struct args a;
	if (args_parse(&a, flags, argc, argv, e) < 0)
		return -1;
	if (a.help) {
		args_help("airloxfs mount [INVITE|@FILE|-] DIR",
			  "joins a session and mounts it on an empty "
			  "directory; returns when it is usable", flags);
		return 1;
	}
	char *link = cmd_take_invite(&g->common, &a, 1);
	if (a.n != 1)
		return err_set(e, ERR_USAGE, "mount takes an invite and a "
			       "directory: airloxfs mount @FILE ~/s");
	g->common.runner_too = true;
	if (read_options(g, e) < 0 ||
	    cmd_invite(&g->invite, &g->common, link, e) < 0 ||
	    read_runner(g, e) < 0)
		return -1;
	g->dir = a.v[0];
	return 0;
}

/* --- the daemon --- */

static void describe(const struct mounting *g, struct report *r)
{
	const struct peer *p = g->m ? g->m->peer : NULL;
	if (!p) {
		snprintf(r->state, sizeof r->state, "mounted");
		return;
	}
	mount_lock(g->m);
	snprintf(r->state, sizeof r->state, "%s", g->m->closed ? "closed" :
		 g->m->online ? "online" : "offline");
	mount_unlock(g->m);
	snprintf(r->session, sizeof r->session, "%s", p->manifest.session_id);
	snprintf(r->role, sizeof r->role, "%s", role_word(p->invite.role));
}

static int print_report(const struct mounting *g, const struct report *r)
{
	cleanup_buf struct buf doc = { 0 };
	buf_add_byte(&doc, '{');
	print_member(&doc, "path", g->path);
	print_member(&doc, "role", r->role[0] ? r->role : NULL);
	print_member(&doc, "session_id", r->session[0] ? r->session : NULL);
	print_member(&doc, "state", r->state);
	buf_add_byte(&doc, '}');
	return print_doc(&doc);
}

static void report(struct mounting *g, int code, const char *text)
{
	struct report r = { .exit = code };
	snprintf(r.text, sizeof r.text, "%s", text);
	if (code == 0)
		describe(g, &r);
	if (g->report < 0) {
		if (*text)
			tell_note("%s", r.text);
		if (code == 0 && g->common.json)
			print_report(g, &r);
		return;
	}
	if (write(g->report, &r, sizeof r) < 0)
		return;		/* nobody waits any more */
	close(g->report);
	g->report = -1;
}

static void detach_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* sd_notify(3), the datagram itself. */
static void tell_systemd(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	if (!path || !*path || strlen(path) >= sizeof to.sun_path)
		return;
	size_t n = strlen(path);
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

static void *signal_thread(void *arg);

/* Signals are blocked and wait until there is something that can be stopped. */
static void on_ready(void *arg)
{
	struct mounting *g = arg;
	char text[360] = "";
	g->has_signals = pthread_create(&g->signals, NULL, signal_thread,
					g) == 0;
	mount_lock(g->m);
	if (g->m->closed)
		snprintf(text, sizeof text, "mounted for reading: %s",
			 g->m->closed_why);
	else if (!g->m->online)
		snprintf(text, sizeof text, "mounted offline, the relay does "
			 "not answer: %.200s", g->m->last_error.why);
	mount_unlock(g->m);
	report(g, 0, text);
	if (!g->front)
		detach_stdio();
	tell_systemd("READY=1");
}

/* SIGTERM with a value (sigqueue) is umount's: how long to drain.  Cancelled
 * once the loop has ended; but not with a lock held. */
static void *signal_thread(void *arg)
{
	struct mounting *g = arg;
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	int sig;
	do {
		int64_t ms = mount_tick(g->m);
		struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
		sig = sigtimedwait(&set, &info, &t);
	} while (sig < 0);
	int64_t wait_ms = OUTBOX_WAIT_MS;
	if (info.si_code == SI_QUEUE)
		wait_ms = (int64_t)info.si_value.sival_int * 1000;
	tell_systemd("STOPPING=1");
	mount_stop(g->m, wait_ms);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	for (;;) {		/* a wake-up just before a wait is lost */
		const struct timespec t = { .tv_nsec = 100000000 };
		nanosleep(&t, NULL);
		fs_stop(g->m->fs);
	}
	return NULL;
}

static void block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Small and closed: few malloc arenas, every descriptor we may have. */
static void settle_process(void)
{
	struct rlimit files;
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 512 * 1024);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (chdir("/") < 0)
		return;
}

static int already(struct mounting *g, char *where, struct err *e)
{
	enum where_kind kind;
	int code;
	if (where && !strcmp(where, g->path) &&
	    where_look(g->path, &kind, e) == 0 && kind == WHERE_OURS) {
		report(g, 0, "already mounted");
		code = 0;
	} else {
		err_set(e, ERR_LOCKED, "this session is mounted with this role "
			"already, on %s: unmount that first, or join with "
			"another role", where ? where : "another directory");
		report(g, err_exit(e->code), e->why);
		code = err_exit(e->code);
	}
	free(where);
	return code;
}

static int end(struct mounting *g, int code)
{
	cleanup_buf struct buf text = { 0 };
	size_t unsent = mount_close(g->m, &text);
	if (unsent && g->front && buf_cstr(&text))
		tell_warn("%s", buf_cstr(&text));
	return code ? code : unsent ? err_exit(ERR_UNSENT) : 0;
}

/* We hold the lock of this session and role: what is mounted there goes with
 * the daemon that held it before us, or it is of another, and stays. */
static bool is_free(const struct mounting *g, struct err *e)
{
	const struct timespec t = { .tv_nsec = 30000000 };
	enum where_kind kind;
	for (int i = 0; i < FREE_TRIES; i++, nanosleep(&t, NULL)) {
		if (where_look(g->path, &kind, e) < 0 ||
		    (kind == WHERE_DEAD && where_clear(g->path, e) < 0))
			return false;
		if (kind == WHERE_FREE) {
			if (i)
				where_settle(g->path);
			return true;
		}
	}
	err_set(e, ERR_MOUNTPOINT, "%s is a mount of another session or role: "
		"choose an empty directory", g->path);
	return false;
}

/* One that was unmounted and still sends holds the session for a while. */
static struct mount *open_mount(struct mounting *g,
				const struct peer_options *po, char **where,
				struct err *e)
{
	enum where_kind kind;
	for (int i = 0;; i++) {
		g->m = mount_open(&g->invite, po, &g->opt, g->path, where, e);
		if (g->m || e->code != ERR_LOCKED || i >= LOCK_TRIES ||
		    !*where || (where_look(*where, &kind, NULL) == 0 &&
				kind == WHERE_OURS))
			return g->m;
		free(*where);
		*where = NULL;
		const struct timespec t = { .tv_nsec = 100000000 };
		nanosleep(&t, NULL);
	}
}

static int serve(struct mounting *g)
{
	struct err e = { 0 };
	struct peer_options po;
	char *where = NULL;
	settle_process();
	block_signals();
	cmd_options(&po, &g->common);
	po.connect_ms = CONNECT_MS;
	if (g->invite.role == ROLE_RUNNER) {
		po.kind = KIND_RUNNER;
		po.runner = &g->runner;
		po.name = po.name ? po.name : g->runner.name;
	}
	if (!open_mount(g, &po, &where, &e) && e.code == ERR_LOCKED)
		return already(g, where, &e);
	free(where);
	if (!g->m) {
		report(g, err_exit(e.code), e.why);
		return err_exit(e.code);
	}
	int rc = is_free(g, &e) ? mount_serve(g->m, on_ready, g, &e) : -1;
	if (rc < 0)
		report(g, err_exit(e.code), e.why);
	if (g->has_signals) {
		pthread_cancel(g->signals);
		pthread_join(g->signals, NULL);
	}
	return end(g, rc < 0 ? err_exit(e.code) : 0);
}

/* --- the parent --- */

static int wait_for_child(const struct mounting *g, int fd, pid_t child)
{
	struct report r;
	ssize_t n;
	do
		n = read(fd, &r, sizeof r);
	while (n < 0 && errno == EINTR);
	close(fd);
	if (n != sizeof r) {
		int status = 0;
		waitpid(child, &status, 0);
		tell_note("the daemon ended before the mount was usable "
			  "(status %d)", status);
		return err_exit(ERR_SYS);
	}
	r.text[sizeof r.text - 1] = 0;
	if (r.text[0])
		tell_note("%s", r.text);
	return r.exit == 0 && g->common.json ? print_report(g, &r) : r.exit;
}

static int run_daemon(struct mounting *g)
{
	int fds[2];
	struct err e;
	if (g->front) {
		g->report = -1;
		return serve(g);
	}
	if (pipe2(fds, O_CLOEXEC) < 0) {
		err_sys(&e, "cannot make a pipe");
		return tell_fail(&e);
	}
	pid_t child = fork();
	if (child < 0) {
		err_sys(&e, "cannot start the daemon");
		return tell_fail(&e);
	}
	if (child > 0) {
		close(fds[1]);
		return wait_for_child(g, fds[0], child);
	}
	close(fds[0]);
	setsid();
	g->report = fds[1];
	_exit(serve(g));
}

/* What is mounted there may be a program that hangs. */
static int look(struct mounting *g, enum where_kind *kind, struct err *e)
{
	struct guard guard;
	guard_begin(&guard, g->dir, LOOK_MS);
	g->path = where_path(g->dir, e);
	bool ok = g->path && where_fuse(e) == 0 &&
		where_look(g->path, kind, e) == 0 &&
		(*kind != WHERE_DEAD || where_clear(g->path, e) == 0);
	guard_end(&guard);
	return ok ? 0 : -1;
}

int cmd_mount(struct setting *s, int argc, char **argv)
{
	struct mounting g = { .common.setting = s, .report = -1,
			      .cache_max = "4G", .items_max = "100000" };
	struct err e = { 0 };
	enum where_kind kind = WHERE_FREE;
	int rc = parse(&g, argc, argv, &e);
	if (rc > 0)
		return 0;
	if (rc < 0 || look(&g, &kind, &e) < 0)
		rc = tell_fail(&e);
	else {
		if (kind != WHERE_OURS)
			where_settle(g.path);
		rc = run_daemon(&g);
	}
	invite_free(&g.invite);
	buf_free(&g.fuse);
	free(g.path);
	return rc;
}
