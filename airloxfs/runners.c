/* SPDX-License-Identifier: MIT
 *
 * Who they are, and their files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/ctl.h"
#include "airloxfs/notify.h"
#include "airloxfs/runners_private.h"
#include "airloxfs/text.h"
#include "core/clear.h"
#include "core/enc.h"
#include "core/host/clock.h"
#include "core/json.h"
#include "core/name.h"

#define JOURNAL "approvals.journal"
#define REASON_MAX 400		/* bytes: ctl takes lines of 512 */

static const struct node_ops one_ops, made_ops, rctl_ops;

/* --- the table --- */

struct runner *runners_find(const struct runners *r,
			    const uint8_t pub[PRIM_PUB])
{
	struct runner *k = r->first;
	while (k && memcmp(k->who->join.cert.pub, pub, PRIM_PUB) != 0)
		k = k->next;
	return k;
}

const struct approval_list *runners_list(const struct runners *r)
{
	return &r->list;
}

void runners_name(const struct runners *r, const uint8_t pub[PRIM_PUB],
		  struct buf *out)
{
	const struct runner *k = runners_find(r, pub);
	if (k)
		buf_add_str(out, k->name);
}

void runners_touch(const struct runner *k)
{
	cleanup_buf struct buf path = { 0 };
	struct mount *m = k->all->j->m;
	buf_addf(&path, "runners/%s/state", k->name);
	if (buf_cstr(&path) && m->notify)
		notify_post(m->notify, NOTIFY_TOUCH, buf_cstr(&path));
}

static bool has_label(const struct runner_info *info, struct bytes label)
{
	for (size_t i = 0; i < info->label_n; i++)
		if (bytes_eq(bytes_str(info->labels[i]), label))
			return true;
	return false;
}

static bool is_target(const struct runner *k, const struct target *t)
{
	if (t->kind == TARGET_RUNNER)
		return !memcmp(k->who->join.cert.pub, t->pub, PRIM_PUB);
	for (size_t i = 0; t->kind == TARGET_LABELS && i < t->label_n; i++)
		if (!has_label(&k->who->join.runner, t->labels[i]))
			return false;
	return true;
}

bool runners_idle(const struct runners *r, const struct target *t)
{
	const struct manifest *m = &r->j->m->peer->manifest;
	for (const struct runner *k = r->first; k; k = k->next)
		if (k->known && k->online && !k->rejected && !k->job[0] &&
		    is_target(k, t) &&
		    approval_stands(&r->list, m, k->who->join.cert.pub))
			return true;
	return false;
}

void runners_busy(struct runners *r, const uint8_t pub[PRIM_PUB],
		  const char *job)
{
	struct runner *k = runners_find(r, pub);
	if (!k || !strcmp(k->job, job ? job : ""))
		return;
	strcpy(k->job, job ? job : "");
	runners_touch(k);
}

int runners_event(struct runners *r, const struct payload *event,
		  enum role author, struct err *e)
{
	int rc = approval_hear(&r->list, event, author, e);
	struct runner *k = rc > 0 ? runners_find(r, event->u.event.pub) : NULL;
	if (k)
		runners_touch(k);
	if (rc > 0) {
		pthread_cond_signal(&r->j->work);
		runners_refresh(r, false);
	}
	return rc < 0 ? -1 : 0;
}

void runners_refresh(struct runners *r, bool waiting)
{
	if (waiting != r->waiting || !waiting)
		pthread_cond_signal(&r->work);
	r->waiting |= waiting;
	r->asked |= !waiting;
}

void runners_wake(struct runners *r) { pthread_cond_signal(&r->work); }

/* --- decisions; the journal has what is not done yet --- */

static void put_note(struct buf *b, const struct runner *k, bool done)
{
	buf_add_byte(b, '{');
	json_put_key_int(b, "approve", k->decision == DECIDED_APPROVE);
	json_put_key_int(b, "done", done);
	json_put_key(b, "pub");
	json_put_b64(b, k->who->join.cert.pub, PRIM_PUB);
	json_put_key_string(b, "reason", bytes_str(k->reason ? k->reason
							     : ""));
	buf_add_byte(b, '}');
}

int runners_note(struct runners *r, const struct runner *k, bool done,
		 struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t at;
	put_note(&b, k, done);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (journal_append(r->journal, buf_bytes(&b), &at, e) < 0)
		return -1;
	return done ? 0 : journal_sync(r->journal, e);
}

static void set_reason(struct runner *k, struct bytes reason)
{
	free(k->reason);
	k->reason = reason.n ? strndup((const char *)reason.p, reason.n)
			     : NULL;
}

static int load_record(void *arg, uint64_t at, struct bytes record,
		       struct err *e)
{
	(void)at;
	struct runners *r = arg;
	struct json *doc = json_parse(record, e);
	struct json_reader j;
	uint8_t pub[PRIM_PUB];
	if (!doc)
		return 0;
	json_open(&j, doc, "decision");
	bool approve = json_take_int(&j, "approve", 0, 1);
	bool done = json_take_int(&j, "done", 0, 1);
	json_take_fixed(&j, "pub", pub, PRIM_PUB);
	struct bytes reason = json_take_string(&j, "reason");
	struct runner *k = json_close(&j, e) < 0 ? NULL : runners_find(r, pub);
	if (k) {
		k->decision = done ? DECIDED_NOTHING : approve
			? DECIDED_APPROVE : DECIDED_REJECT;
		set_reason(k, reason);
	}
	json_free(doc);
	return 0;
}

static int decide(struct runners *r, struct runner *k, bool approve,
		  const char *reason, struct err *e)
{
	enum approval now = approval_of(&r->list, k->who->join.cert.pub);
	if (approve && (now == APPROVAL_REFUSED || k->rejected ||
			k->decision == DECIDED_REJECT))
		return err_set(e, ERR_VERB, "this runner was rejected, which "
			       "is final: it may join again, with a key of "
			       "its own");
	if (now == (approve ? APPROVAL_GIVEN : APPROVAL_REFUSED))
		return 0;
	k->decision = approve ? DECIDED_APPROVE : DECIDED_REJECT;
	set_reason(k, bytes_str(reason ? reason : ""));
	k->retry_at_ms = 0;
	runners_touch(k);
	return runners_note(r, k, false, e);
}

int runners_decide(struct runners *r, const uint8_t pub[PRIM_PUB],
		   bool approve, const char *reason, struct err *e)
{
	if (r->j->m->closed)
		return err_set(e, ERR_GONE, "the session is over");
	pthread_mutex_lock(&r->j->lock);
	struct runner *k = runners_find(r, pub);
	int rc = k ? decide(r, k, approve, reason, e) :
		err_set(e, ERR_NOT_FOUND, "no such runner");
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->j->lock);
	return rc;
}

/* --- runners/NAME/ --- */

static void put_line(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, "%s ", key);
	clear_escape(out, bytes_str(value ? value : ""));
	buf_add_byte(out, '\n');
}

static void put_info(const struct runner *k, struct buf *out)
{
	static const char *const sandboxes[] = {
		[SANDBOX_LOCAL] = "local", [SANDBOX_DOCKER] = "docker",
		[SANDBOX_KUBERNETES] = "kubernetes" };
	const struct join *join = &k->who->join;
	char iso[CLOCK_ISO];
	put_line(out, "name", join->runner.name);
	put_line(out, "fingerprint", k->who->fingerprint);
	buf_add_str(out, "labels");
	for (size_t i = 0; i < join->runner.label_n; i++)
		buf_addf(out, " %s", join->runner.labels[i]);
	buf_add_byte(out, '\n');
	put_line(out, "host", join->runner.host);
	put_line(out, "sandbox", sandboxes[join->runner.sandbox]);
	put_line(out, "network", join->runner.network_unblocked ?
		 "unblocked" : "blocked");
	put_line(out, "participant", k->who->shown);
	put_line(out, "description", join->description);
	clock_iso(iso, join->created_at_ms);
	put_line(out, "joined", iso);
}

static void put_state(const struct runner *k, struct buf *out)
{
	const struct runners *r = k->all;
	const struct manifest *m = &r->j->m->peer->manifest;
	const uint8_t *pub = k->who->join.cert.pub;
	enum approval a = approval_of(&r->list, pub);
	if (a == APPROVAL_REFUSED || k->rejected) {
		buf_add_str(out, "rejected\n");
	} else if (!approval_stands(&r->list, m, pub)) {
		buf_add_str(out, k->decision == DECIDED_APPROVE ?
			    "awaiting the relay\n" : "awaiting\n");
	} else if (!k->known && !k->who->left) {
		buf_add_str(out, "approved\n");
	} else if (k->who->left || !k->online) {
		buf_add_str(out, "offline\n");
	} else if (k->job[0]) {
		const struct submitted *s = jobs_of_item(r->j, k->job);
		buf_addf(out, "busy %s\n", s ? s->name : k->job);
	} else {
		buf_add_str(out, "idle\n");
	}
}

static void make(struct mount *m, const struct node *n, struct buf *out)
{
	const struct runner *k = n->data;
	pthread_mutex_lock(&m->jobs->lock);
	if (!strcmp(n->name, "info"))
		put_info(k, out);
	else
		put_state(k, out);
	pthread_mutex_unlock(&m->jobs->lock);
}

static int made_open(struct mount *m, struct handle *h)
{
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	make(m, h->node, &h->bytes);
	h->direct = true;
	pthread_mutex_lock(&m->jobs->lock);
	runners_refresh(m->jobs->runners, false);	/* for the next look */
	pthread_mutex_unlock(&m->jobs->lock);
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static uint64_t made_size(struct mount *m, const struct node *n)
{
	cleanup_buf struct buf b = { 0 };
	make(m, n, &b);
	return b.len;
}

static const struct node_ops made_ops = {
	.open = made_open, .read = text_read, .size = made_size,
};

/* approve; reject REASON */
static int verb(struct mount *m, struct node *n, char *line, struct err *e)
{
	const struct runner *k = n->data;
	const uint8_t *pub = k->who->join.cert.pub;
	if (!strcmp(line, "approve"))
		return runners_decide(m->jobs->runners, pub, true, NULL, e);
	if (!strcmp(line, "reject") || !strncmp(line, "reject ", 7)) {
		const char *reason = line[6] ? line + 7 : NULL;
		if (reason && (strlen(reason) > REASON_MAX ||
			       !clear_utf8(bytes_str(reason))))
			return err_set(e, ERR_VERB, "the reason must be UTF-8 "
				       "of at most %d bytes", REASON_MAX);
		return runners_decide(m->jobs->runners, pub, false, reason,
				      e);
	}
	return err_set(e, ERR_VERB, "the verbs here are: approve, and reject "
		       "REASON");
}

static int rctl_open(struct mount *m, struct handle *h)
{
	(void)m;
	h->direct = true;
	buf_add_str(&h->bytes, "approve\nreject REASON\n");
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static int rctl_write(struct mount *m, struct handle *h, pid_t tid,
		      const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	return ctl_lines(m, h->node, p, n, verb);
}

static const struct node_ops rctl_ops = {
	.open = rctl_open, .read = text_read, .write = rctl_write,
	.truncate = fs_truncate_nothing, .timeout_s = 86400,
};
static const struct node_ops one_ops = { .timeout_s = 86400 };
const struct node_ops runners_dir_ops = { .timeout_s = 86400 };

/* --- who comes --- */

/* With the mount's lock. */
static bool show(struct mount *m, struct runner *k, bool hidden)
{
	struct tree *t = m->tree;
	struct node *dir = tree_add(t, m->dir_runners, k->name,
				    S_IFDIR | 0755, &one_ops, NULL);
	if (!dir)
		return false;
	dir->hidden = hidden;
	tree_add(t, dir, "info", S_IFREG | 0444, &made_ops, k);
	tree_add(t, dir, "state", S_IFREG | 0444, &made_ops, k);
	if (m->peer->invite.role == ROLE_OWNER)
		tree_add(t, dir, "ctl", S_IFREG | 0600, &rctl_ops, k);
	return true;
}

static struct runner *new_runner(struct runners *r,
				 const struct participant *who)
{
	cleanup_buf struct buf name = { 0 };
	struct runner *k = calloc(1, sizeof *k);
	name_author(&name, who->shown_runner);
	if (!k || !(k->name = buf_steal(&name))) {
		free(k);
		return NULL;
	}
	k->all = r;
	k->who = who;
	return k;
}

void runners_add(struct runners *r, const struct participant *who,
		 bool hidden)
{
	struct mount *m = r->j->m;
	cleanup_buf struct buf path = { 0 };
	if (who->join.cert.role != ROLE_RUNNER || !who->shown_runner)
		return;
	pthread_mutex_lock(&r->j->lock);
	struct runner *k = runners_find(r, who->join.cert.pub) ? NULL
		: new_runner(r, who);
	bool shown = false;
	if (k) {
		*r->last = k;
		r->last = &k->next;
		mount_lock(m);
		shown = show(m, k, hidden);
		mount_unlock(m);
		buf_addf(&path, "runners/%s", k->name);
		runners_refresh(r, false);
	}
	pthread_mutex_unlock(&r->j->lock);
	if (shown && hidden && buf_cstr(&path))
		notify_post(m->notify, NOTIFY_MKDIR, buf_cstr(&path));
}

struct runners *runners_new(struct jobs *j, struct err *e)
{
	struct runners *r = calloc(1, sizeof *r);
	const struct people *p = &j->m->peer->people;
	uint64_t cut;
	if (!r) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	r->j = j;
	r->last = &r->first;
	r->asked = true;	/* as soon as there is a thread */
	pthread_cond_init(&r->work, NULL);
	for (size_t i = 0; i < p->n; i++)
		runners_add(r, p->v[i], false);
	r->journal = store_journal(j->m->store, JOURNAL, load_record, r, &cut,
				   e);
	if (r->journal)
		return r;
	runners_free(r);
	return NULL;
}

int runners_start(struct runners *r, struct err *e)
{
	r->wire = peer_wire(r->j->m->peer, e);
	if (!r->wire)
		return -1;
	if (pthread_create(&r->thread, NULL, runners_thread, r))
		return err_sys(e, "cannot start a thread");
	r->has_thread = true;
	return 0;
}

void runners_stop(struct runners *r)
{
	pthread_mutex_lock(&r->j->lock);
	pthread_cond_signal(&r->work);	/* jobs' `ending` is set */
	pthread_mutex_unlock(&r->j->lock);
	if (r->wire)
		wire_abort(r->wire);
	if (r->has_thread)
		pthread_join(r->thread, NULL);
	r->has_thread = false;
}

void runners_free(struct runners *r)
{
	if (!r)
		return;
	wire_free(r->wire);
	journal_close(r->journal);
	for (struct runner *k = r->first, *next; k; k = next) {
		next = k->next;
		free(k->name);
		free(k->reason);
		free(k);
	}
	approval_free(&r->list);
	pthread_cond_destroy(&r->work);
	free(r);
}
