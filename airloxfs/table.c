/* SPDX-License-Identifier: MIT
 *
 * The table of files: what each role finds in a mount (airloxfs(4)).  What a
 * role does not have does not exist. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "airloxfs/audit.h"
#include "airloxfs/ctl.h"
#include "airloxfs/in.h"
#include "airloxfs/jobs.h"
#include "airloxfs/line.h"
#include "airloxfs/log.h"
#include "airloxfs/mount.h"
#include "airloxfs/out.h"
#include "airloxfs/outbox.h"
#include "airloxfs/queue.h"
#include "airloxfs/say.h"
#include "airloxfs/text.h"

#define OWN (1u << ROLE_OWNER)
#define SEND (1u << ROLE_SENDER)
#define VIEW (1u << ROLE_OBSERVER)
#define RUN (1u << ROLE_RUNNER)
#define ALL (OWN | SEND | VIEW | RUN)
#define PEOPLE (OWN | SEND | VIEW)
#define EXECUTE (1u << 31)	/* in an execute mode session alone */

static const struct node_ops plain_dir = { .timeout_s = 86400 };

struct row {
	const char *name;
	mode_t mode;
	unsigned roles;
	text_fn *make;			/* a text, */
	const struct node_ops *ops;	/* or served by these */
	size_t keep;			/* where struct mount keeps the node */
};

#define KEEP(field) offsetof(struct mount, field)

static const struct row table[] = {
	{ "README", 0444, ALL, text_readme, NULL, 0 },
	{ "session", 0444, ALL, text_session, NULL, 0 },
	{ "status", 0444, ALL, text_status, NULL, 0 },
	{ "log", S_IFREG | 0444, ALL, NULL, &log_ops, 0 },
	{ "events", S_IFREG | 0444, ALL, NULL, &line_ops, 0 },
	{ "ctl", S_IFREG | 0644, ALL, NULL, &ctl_ops, 0 },
	{ "in", S_IFDIR | 0755, PEOPLE, NULL, &in_dir_ops, KEEP(dir_in) },
	{ "latest", S_IFLNK | 0777, PEOPLE, NULL, &latest_ops, KEEP(latest) },
	{ "participants", S_IFDIR | 0755, PEOPLE, NULL, &plain_dir,
	  KEEP(dir_participants) },
	{ "rejected", S_IFDIR | 0755, PEOPLE, NULL, &plain_dir,
	  KEEP(dir_rejected) },
	{ "out", S_IFDIR | 0755, OWN | SEND, NULL, &out_dir_ops,
	  KEEP(dir_out) },
	{ "say", S_IFREG | 0200, OWN | SEND, NULL, &say_ops, 0 },
	{ "jobs", S_IFDIR | 0755, OWN | SEND | EXECUTE, NULL, &jobs_dir_ops,
	  KEEP(dir_jobs) },
	{ "runners", S_IFDIR | 0755, OWN | SEND | EXECUTE, NULL,
	  &runners_dir_ops, KEEP(dir_runners) },
	{ "audit", S_IFREG | 0444, OWN | VIEW, NULL, &audit_ops, 0 },
	{ "queue", S_IFDIR | 0755, RUN, NULL, &queue_dir_ops,
	  KEEP(dir_queue) },
	{ "invites", S_IFDIR | 0700, OWN, NULL, &plain_dir, 0 },
};

/* What another role has does not exist for this one. */
static bool is_elsewhere(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name))
			return true;
	return false;
}

/* --- the root's attributes: how umount talks to the daemon --- */

static int root_getxattr(struct mount *m, struct node *n, const char *name,
			 struct buf *out)
{
	(void)n;
	if (!strcmp(name, "user.airlox.pid"))
		buf_addf(out, "%ld", (long)getpid());
	else if (!strcmp(name, "user.airlox.session"))
		buf_add_str(out, m->peer->manifest.session_id);
	else if (!strcmp(name, "user.airlox.queued"))
		buf_addf(out, "%zu", outbox_counts(m->outbox).queued +
			 queue_unsealed(m));
	else if (!strcmp(name, "user.airlox.unsent"))
		mount_unsent(m, out);
	else
		return ENODATA;
	return 0;
}

static int root_setxattr(struct mount *m, struct node *n, const char *name,
			 struct bytes value, int flags)
{
	(void)n, (void)value, (void)flags;
	if (strcmp(name, "user.airlox.stop") != 0)
		return EOPNOTSUPP;
	m->stopping = true;	/* no new opens: what is left can drain, */
	queue_give_up(m, QUEUE_UNMOUNTED);	/* results among it */
	return 0;
}

static int root_create(struct mount *m, struct node *dir, const char *name,
		       mode_t mode, int flags, struct node **out)
{
	(void)m, (void)dir, (void)mode, (void)flags, (void)out;
	return is_elsewhere(name) ? ENOENT : EPERM;
}

static const struct node_ops root_ops = {
	.create = root_create, .getxattr = root_getxattr, .setxattr = root_setxattr,
	.timeout_s = 86400,
};

static void *data_of(struct mount *m, const struct row *r)
{
	if (r->ops == &log_ops)
		return m->log;
	if (r->ops == &line_ops)
		return m->events;
	return NULL;
}

static int add_invites(struct mount *m, struct node *dir)
{
	bool jobs = m->peer->manifest.mode == MODE_EXECUTE;
	return text_made(m, dir, "sender", 0400, text_invite) &&
	       (!jobs || text_made(m, dir, "runner", 0400, text_invite)) &&
	       text_made(m, dir, "observer", 0400, text_invite) ? 0 : -1;
}

static int add_row(struct mount *m, const struct row *r)
{
	struct node *n = r->make
		? text_made(m, m->root, r->name, r->mode, r->make)
		: tree_add(m->tree, m->root, r->name, r->mode, r->ops,
			   data_of(m, r));
	if (!n)
		return -1;
	if (r->keep)
		*(struct node **)((char *)m + r->keep) = n;
	if (r->ops == &latest_ops)
		n->hidden = true;	/* until in/ has something */
	if (r->ops == &queue_dir_ops)
		return tree_add(m->tree, n, "ready", S_IFREG | 0200,
				&queue_ready_ops, NULL) ? 0 : -1;
	return r->mode == (S_IFDIR | 0700) ? add_invites(m, n) : 0;
}

int mount_table(struct mount *m, struct err *e)
{
	unsigned role = 1u << m->peer->invite.role;
	bool execute = m->peer->manifest.mode == MODE_EXECUTE;
	m->root = tree_root(m->tree);
	m->root->ops = &root_ops;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].roles & role &&
		    (execute || !(table[i].roles & EXECUTE)) &&
		    add_row(m, &table[i]) < 0)
			return err_set(e, ERR_MEMORY, "out of memory");
	/* A runner's mount shows no items, but refuses and remembers them. */
	if (!m->dir_in)
		m->dir_in = tree_add(m->tree, m->root, ".in", S_IFDIR | 0700,
				     &plain_dir, NULL);
	if (!m->dir_participants)
		m->dir_participants = m->dir_in;
	if (!m->dir_rejected)
		m->dir_rejected = m->dir_in;
	if (!m->dir_in)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (m->peer->invite.role == ROLE_RUNNER)
		m->dir_in->hidden = true;
	return 0;
}
