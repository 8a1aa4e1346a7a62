/* SPDX-License-Identifier: MIT
 *
 * airlox-relay: start, run, stop.  One process, one data directory. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "relay/access.h"
#include "relay/door.h"
#include "relay/fsck.h"
#include "relay/load.h"
#include "relay/loop.h"
#include "relay/options.h"
#include "relay/pool.h"
#include "relay/ready.h"
#include "relay/tell.h"
#include "relay/tls.h"

#define FDS_OWN 128	/* log, blobs in flight, and the like */

static void on_signal(int sig)
{
	(void)sig;
	loop_stop();
}

static void on_hangup(int sig)
{
	(void)sig;
	loop_reload();
}

/* From the first moment: one that comes while the log is being read is heard
 * once the relay serves. */
static void heed_hangup(void)
{
	struct sigaction again = { .sa_handler = on_hangup,
				   .sa_flags = SA_RESTART };
	sigaction(SIGHUP, &again, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void set_signals(void)
{
	struct sigaction stop = { .sa_handler = on_signal };
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
}

/* What passes through is not for a core file or a debugger. */
static void harden(void)
{
	const struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	umask(077);
}

/* As many connections as there are descriptors for: a blob that is sent has
 * one of its own. */
static uint32_t connections(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 256;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	rlim_t n = r.rlim_cur > FDS_OWN * 2 ? r.rlim_cur - FDS_OWN :
					      r.rlim_cur / 2;
	if (n < 1000)
		tell("only %lu connections: the limit of open files is low",
		     (unsigned long)n);
	return n > 1000000 ? 1000000 : (uint32_t)n;
}

static int open_state(struct state *st, const struct options *o,
		      struct err *e)
{
	int dir = -1;
	if (state_init(st, &o->limits, e) < 0)
		return -1;
	if (o->data && (dir = fsck_open_data(o->data, false, e)) < 0)
		return -1;
	st->store = store_open(dir, e);
	if (!st->store)
		return -1;
	st->blobs = blobs_open(dir, e);
	if (!st->blobs || load_state(st, e) < 0)
		return -1;
	st->pool = pool_start(e);
	return st->pool ? 0 : -1;
}

static int reactors(int64_t asked)
{
	long n = asked ? asked : sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > LOOPS_MAX ? LOOPS_MAX : (int)n;
}

/* What is in flight is finished, in this order: uploads, then facts, then
 * answers. */
static void close_state(struct state *st, struct commit *commit)
{
	struct pool *pool = st->pool;
	pool_stop(pool);
	pthread_mutex_lock(&st->lock);
	st->pool = NULL;
	pthread_mutex_unlock(&st->lock);
	commit_stop(commit);
	loop_finish();
	store_close(st->store);
	state_free(st);
	blobs_close(st->blobs);
}

/* Blobs that were due when the last process ended. */
static void evict_due(struct state *st, struct commit *commit)
{
	pthread_mutex_lock(&st->lock);
	for (size_t i = 0; i < st->bucket_n; i++)
		for (struct session *s = st->bucket[i]; s; s = s->next)
			commit_due(commit, s, loop_wall_ms());
	pthread_mutex_unlock(&st->lock);
}

/* From here on another user, for good.  The sockets are open by now, and
 * files that only root can read have been read. */
static int drop_privileges(const char *name, struct err *e)
{
	if (!name) {
		if (getuid() == 0)
			tell("running as root; --user NAME is safer");
		return 0;
	}
	const struct passwd *pw = getpwnam(name);
	if (!pw)
		return err_set(e, ERR_USAGE, "no user %s", name);
	if (pw->pw_uid == getuid())
		return 0;
	if (initgroups(name, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 ||
	    setuid(pw->pw_uid) < 0)
		return err_sys(e, "cannot become %s", name);
	if (setuid(0) == 0)
		return err_set(e, ERR_SYS, "could become root again");
	harden();
	return 0;
}

/* What root may have to open. */
static int open_outside(struct doors *doors, const struct options *o,
			struct err *e)
{
	if (access_open(o->access_log, o->log_addresses, e) < 0 ||
	    (o->cert && tls_open(o->cert, o->key, e) < 0) ||
	    doors_open(doors, o->listen, e) < 0)
		return -1;
	for (int i = 0; i < doors->n; i++) {
		if (!doors->door[i].tls || o->cert)
			continue;
		doors_close(doors);
		return err_set(e, ERR_USAGE, "a socket for TLS takes "
			       "--tls-cert and --tls-key");
	}
	return 0;
}

static void greet(const struct doors *doors)
{
	for (int i = 0; i < doors->n; i++)
		printf("listening on %s\n", doors->door[i].where);
	fflush(stdout);
}

static int serve(struct options *o, struct err *e)
{
	static struct state st;
	struct doors doors;
	o->limits.connections = connections();
	if (!o->limits.address_connections)
		o->limits.address_connections = o->limits.connections / 2;
	if (open_outside(&doors, o, e) < 0)
		return -1;
	struct commit *commit = NULL;
	if (drop_privileges(o->user, e) == 0 && open_state(&st, o, e) == 0)
		commit = commit_start(&st, e);
	if (!commit) {
		doors_close(&doors);
		return -1;
	}
	evict_due(&st, commit);
	set_signals();
	state_look(&st);
	greet(&doors);
	ready_tell("READY=1");
	int rc = loop_run(&doors, reactors(o->threads), &st, commit, e);
	ready_tell("STOPPING=1");
	close_state(&st, commit);
	doors_close(&doors);
	tls_close();
	return rc;
}

static int run(int argc, char **argv, struct err *e)
{
	struct options o;
	if (options_read(&o, argc, argv, e) < 0)
		return -1;
	if (o.help)
		options_help();
	else if (o.version)
		puts("airlox-relay " AIRLOX_VERSION);
	else if (o.fsck)
		return fsck_run(o.fsck, stdout, e);
	else
		return serve(&o, e);
	return 0;
}

int main(int argc, char **argv)
{
	struct err e;
	heed_hangup();
	harden();
	if (prim_init() < 0) {
		tell("no randomness");
		return 71;
	}
	if (run(argc, argv, &e) == 0)
		return 0;
	tell("%s", e.why);
	return err_exit(e.code);
}
