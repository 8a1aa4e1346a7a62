/* SPDX-License-Identifier: MIT
 *
 * A mount's life: what is opened in which order, what is true of it now, and
 * how it ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/audit.h"
#include "airloxfs/deliver.h"
#include "airloxfs/in.h"
#include "airloxfs/jobs.h"
#include "airloxfs/line.h"
#include "airloxfs/log.h"
#include "airloxfs/mount.h"
#include "airloxfs/notify.h"
#include "airloxfs/out.h"
#include "airloxfs/outbox.h"
#include "airloxfs/queue.h"
#include "airloxfs/store.h"
#include "airloxfs/tell_json.h"
#include "core/clear.h"
#include "core/host/file.h"

#define TICK_MS 60000
#define STREAM_END_MS 500	/* readers of a stream get so long to close it */

/* --- what is said of it --- */

void mount_log(struct mount *m, const char *fmt, ...)
{
	char iso[CLOCK_ISO];
	cleanup_buf struct buf line = { 0 };
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	clock_iso(iso, clock_now_ms());
	buf_addf(&line, "%s %s\n", iso, text);
	if (m->log && !buf_failed(&line))
		log_append(m, m->log, buf_bytes(&line));
}

static void tell_state(struct mount *m, const char *state, const char *why)
{
	cleanup_buf struct buf line = { 0 };
	struct tell_json j = tell_json_begin(&line, state);
	if (why)
		tell_json_str(&j, "reason", bytes_str(why));
	tell_json_end(m, &j);
	mount_log(m, "%s%s%s", state, why ? ": " : "", why ? why : "");
	if (m->notify)
		notify_post(m->notify, NOTIFY_TOUCH, "status");
}

void mount_online(struct mount *m)
{
	mount_lock(m);
	bool news = !m->online && !m->closed;
	if (news) {
		m->online = true;
		m->since_ms = clock_now_ms();
	}
	mount_unlock(m);
	if (!news)
		return;
	tell_state(m, "online", NULL);
	outbox_kick(m);
	deliver_kick(m);
	jobs_kick(m);
}

void mount_offline(struct mount *m, const struct err *why)
{
	mount_lock(m);
	bool news = m->online;
	if (news) {
		m->online = false;
		m->since_ms = clock_now_ms();
	}
	m->last_error = *why;
	m->last_error_ms = clock_now_ms();
	mount_unlock(m);
	if (news)
		tell_state(m, "offline", why->why);
}

void mount_closed(struct mount *m, const char *why)
{
	mount_lock(m);
	bool news = !m->closed;
	if (news) {
		m->closed = true;
		m->online = false;
		m->since_ms = clock_now_ms();
		snprintf(m->closed_why, sizeof m->closed_why, "%s", why);
	}
	mount_unlock(m);
	if (!news)
		return;
	tell_state(m, "closed", why);
	outbox_kick(m);		/* the posters see that it is over */
	queue_over(m, why);
	jobs_end(m, 0);
	line_end(m, m->events);
}

int64_t mount_tick(struct mount *m)
{
	int64_t left = INT64_MAX;
	const struct manifest *mf = &m->peer->manifest;
	if (mf->expires_at_ms != MANIFEST_FOREVER)
		left = mf->expires_at_ms - clock_relay_ms(&m->peer->clock);
	if (left <= 0)
		mount_closed(m, "the session has expired");
	return left <= 0 || left > TICK_MS ? TICK_MS : left;
}

void mount_failed(struct mount *m, const struct err *why)
{
	mount_lock(m);
	m->last_error = *why;
	m->last_error_ms = clock_now_ms();
	mount_unlock(m);
	cleanup_buf struct buf text = { 0 };
	clear_escape(&text, bytes_str(why->why));
	mount_log(m, "failed: %s", buf_cstr(&text));
}

void mount_heard(struct mount *m, const struct err *e)
{
	if (e->code == ERR_AUTH)
		m->cut_off = true;
	if (e->code == ERR_AUTH || e->code == ERR_NOT_FOUND ||
	    e->code == ERR_GONE)
		mount_closed(m, e->code == ERR_AUTH
			     ? "the relay does not know us any more: revoked, "
			       "or left" : "the session was closed or has "
			       "expired");
	else if (e->code == ERR_NET && !e->http)
		mount_offline(m, e);
	else
		mount_failed(m, e);
}

/* --- opening --- */

static int open_files(struct mount *m, struct err *e)
{
	struct vault *v = store_vault(m->store, "log", false, e);
	if (!v || log_cut(v, e) < 0 || !(m->log = log_new(v, e)))
		return -1;
	v = store_vault(m->store, "events", true, e);
	if (!v || !(m->events = line_new(v, e)))
		return -1;
	return 0;
}

static void set_state(struct mount *m)
{
	m->since_ms = clock_now_ms();
	m->online = m->peer->state == PEER_ONLINE;
	if (!m->online)
		m->last_error = m->peer->why;
	if (m->peer->state == PEER_CLOSED) {
		m->cut_off = m->peer->why.code == ERR_AUTH;
		m->closed = true;
		snprintf(m->closed_why, sizeof m->closed_why, "%s",
			 m->peer->why.why);
	}
}

/* Everything that is on disk goes into the tree before the mount is there. */
static int fill(struct mount *m, struct err *e)
{
	int64_t cursor = -1;
	m->tree = tree_new();
	if (!m->tree)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (open_files(m, e) < 0 || mount_table(m, e) < 0)
		return -1;
	struct node *n = tree_find(m->root, "log");
	if (n)
		n->size = log_size(m->log);
	if (!in_new(m, &cursor, e))
		return -1;
	m->peer->seq = cursor;
	m->outbox = outbox_new(m, e);
	if (!m->outbox || (m->dir_queue && !queue_new(m, e)))
		return -1;
	if (!jobs_new(m, e) && e->code != ERR_NONE)
		return -1;
	m->out = out_new(m, e);
	if (!m->out)
		return -1;
	jobs_loaded(m);
	return 0;
}

static int join(struct mount *m, struct invite *v,
		const struct peer_options *po, struct err *e)
{
	struct peer_options o = *po;
	o.restore = store_load_identity;
	o.restore_manifest = store_load_manifest;
	o.restore_arg = m->store;
	m->peer = peer_open(v, &o, e);
	if (!m->peer) {
		store_discard_empty(m->store);
		return -1;
	}
	if (store_save_manifest(m->store, buf_bytes(&m->peer->signed_manifest),
				e) < 0)
		return -1;
	return store_save_identity(m->store, &m->peer->identity, e);
}

struct mount *mount_open(struct invite *v, const struct peer_options *po,
			 const struct mount_options *o, const char *path,
			 char **where, struct err *e)
{
	struct mount *m = calloc(1, sizeof *m);
	if (!m || !(m->path = strdup(path))) {
		free(m);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->opt = *o;
	m->store = store_open(o->cache_dir, v, path, where, e);
	if (m->store && join(m, v, po, e) == 0) {
		set_state(m);
		m->notify = notify_new(path, e);
		if (m->notify && fill(m, e) == 0)
			return m;
	}
	mount_close(m, NULL);
	return NULL;
}

/* --- serving --- */

/* There is no helper: nobody is woken, but nothing stays hidden. */
static void appear_unseen(void *arg, enum notify_op op, const char *path)
{
	struct mount *m = arg;
	struct node *n = m->root;
	cleanup_free char *copy = strdup(path);
	char *save = NULL;
	if (!copy || (op != NOTIFY_CREATE && op != NOTIFY_MKDIR))
		return;
	mount_lock(m);
	for (char *part = strtok_r(copy, "/", &save); part && n;
	     part = strtok_r(NULL, "/", &save))
		n = tree_is_dir(n) ? tree_find(n, part) : NULL;
	if (n)
		n->hidden = false;
	mount_unlock(m);
	mount_log(m, "%s appears, but no watcher is woken: the helper process "
		  "cannot be started", path);
}

static void on_ready(struct mount *m)
{
	struct err e;
	notify_without(m->notify, appear_unseen, m);
	notify_begin(m->notify);
	enum role role = m->peer->invite.role;
	bool ok = true;
	/* in this order: each looks at those that were started before it */
	if (!m->closed && (role == ROLE_OWNER || role == ROLE_OBSERVER))
		ok = (m->audit = audit_new(m, &e)) != NULL;
	if (ok && !m->closed && m->queue)
		ok = queue_start(m, &e) == 0;
	if (ok && !m->closed)
		ok = deliver_new(m, m->peer->seq, &e) != NULL;
	if (ok)
		ok = outbox_start(m->outbox, &e) == 0;
	if (ok && !m->closed)
		ok = jobs_start(m, &e) == 0;
	if (!ok)
		mount_failed(m, &e);
	mount_log(m, "mounted %s as %s", m->peer->manifest.session_id,
		  role_word(role));
	m->ready(m->ready_arg);
}

int mount_serve(struct mount *m, void (*ready)(void *arg), void *arg,
		struct err *e)
{
	m->ready = ready;
	m->ready_arg = arg;
	if (!fs_new(m, m->opt.fuse, e) || fs_mount(m->fs, m->path, e) < 0)
		return -1;
	return fs_loop(m->fs, on_ready, e);
}

void mount_stop(struct mount *m, int64_t wait_ms)
{
	m->stopping = true;
	mount_log(m, "unmounting");
	queue_stop(m, QUEUE_UNMOUNTED);
	outbox_drain(m, wait_ms);
	line_end(m, m->events);
	jobs_end(m, STREAM_END_MS);
	line_wait(m->events, STREAM_END_MS);
	fs_stop(m->fs);
}

/* --- ending --- */

size_t mount_unsent(struct mount *m, struct buf *out)
{
	cleanup_buf struct buf names = { 0 };
	if (!m->out || !m->outbox)
		return 0;
	size_t queued = outbox_counts(m->outbox).queued + queue_unsealed(m);
	size_t drafts = out_unsent(m, &names) + jobs_unsent(m, &names);
	const char *list = buf_cstr(&names);
	if (!out || !(queued + drafts))
		return queued + drafts;
	if (m->closed) {
		buf_addf(out, "%zu unsent, and the session is over%s%s; mount "
			 "it again to copy from out/, or: airloxfs forget %s",
			 queued + drafts, names.len ? ": " : "",
			 names.len ? list : "", m->peer->manifest.session_id);
		return queued + drafts;
	}
	if (queued)
		buf_addf(out, "%zu unsent, they go at the next mount%s",
			 queued, drafts ? "; " : "");
	if (drafts)
		buf_addf(out, "%zu unsent drafts, which go when they are "
			 "written anew, renamed, or named to ctl: %s", drafts,
			 list ? list : "");
	return queued + drafts;
}

/* At the end of a session nothing is kept, unless it was never sent.  Mounts
 * of other roles share the cache: the last of them removes it; and where the
 * session is over for us alone, whoever has an identity there keeps it. */
static void tidy(struct mount *m, bool loaded, size_t unsent)
{
	bool over = m->closed && m->peer && loaded;
	if (!over || m->opt.keep || unsent)
		return;
	bool alone = cache_leave(m->peer->cache, m->peer->invite.role);
	bool last = store_remove(m->store);
	if (last && (alone || !m->cut_off))
		cache_remove(m->opt.cache_dir, m->peer->manifest.session_id,
			     NULL);
}

size_t mount_close(struct mount *m, struct buf *text)
{
	if (!m)
		return 0;
	queue_stop(m, QUEUE_UNMOUNTED);
	if (!m->stopping && m->fs)	/* fusermount3 -u, without a word */
		outbox_drain(m, OUTBOX_WAIT_MS);
	m->stopping = true;
	if (m->events)
		line_end(m, m->events);
	/* Whoever is still in a request gets its end now, however long the
	 * other threads take.  The helper may wait for an answer that nobody
	 * will give any more: closing /dev/fuse ends its request, then it can
	 * be ended; what is mounted there later is none of its business. */
	jobs_end(m, 0);
	outbox_stop(m->outbox);
	jobs_stop(m);
	fs_unmount(m->fs);
	if (m->notify)
		notify_stop(m->notify);
	deliver_free(m->deliver);
	m->deliver = NULL;
	audit_free(m->audit);
	m->audit = NULL;
	bool loaded = m->out != NULL;
	size_t unsent = mount_unsent(m, text);
	if (unsent)
		mount_log(m, "%zu unsent", unsent);
	if (m->out)
		out_free(m);
	jobs_free(m);
	outbox_free(m->outbox);
	m->outbox = NULL;
	notify_free(m->notify);
	m->notify = NULL;
	fs_free(m->fs);
	tree_free(m->tree);
	m->root = NULL;
	queue_free(m->queue);
	in_free(m->in);
	line_free(m->events);
	log_free(m->log);
	if (m->store && m->store->dir >= 0 && m->peer)
		tidy(m, loaded, unsent);
	store_close(m->store);
	peer_free(m->peer);
	pthread_mutex_destroy(&m->lock);
	free(m->path);
	free(m);
	return unsent;
}
