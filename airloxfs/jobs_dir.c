/* SPDX-License-Identifier: MIT
 *
 * jobs/ and jobs/NAME/: what is there, what may be made, moved, removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/jobs_private.h"
#include "airloxfs/notify.h"
#include "core/name.h"

#define JOBS_DEPTH 16		/* directories below jobs/NAME */
#define HELPER_PATH_MAX 480

/* The files of a job that are ours. */
static const struct row {
	const char *name;
	mode_t mode;
	const struct node_ops *ops;
	bool at_end;		/* there once it has ended */
} rows[] = {
	{ "ctl", S_IFREG | 0600, &jobs_ctl_ops, false },
	{ "status", S_IFREG | 0444, &jobs_made_ops, false },
	{ "stdout", S_IFREG | 0444, &jobs_text_ops, false },
	{ "stderr", S_IFREG | 0444, &jobs_text_ops, false },
	{ "output", S_IFREG | 0444, &jobs_all_ops, false },
	{ "wait", S_IFREG | 0444, &jobs_wait_ops, false },
	{ "out", S_IFDIR | 0755, &jobs_outdir_ops, false },
	{ "exit", S_IFREG | 0444, &jobs_made_ops, true },
	{ "reason", S_IFREG | 0444, &jobs_made_ops, true },
	{ "result.json", S_IFREG | 0444, &jobs_text_ops, true },
};
#define ROWS (sizeof rows / sizeof *rows)

bool jobs_is_ours(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].name, name))
			return true;
	return false;
}

static bool is_ours(const struct node *n)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].ops == n->ops)
			return true;
	return false;
}

struct submitted *jobs_of(const struct node *n)
{
	/* a job's directory is the one whose parent is served as jobs/ */
	while (n && !(n->parent && n->parent->ops == &jobs_dir_ops))
		n = n->parent;
	return n ? n->data : NULL;
}

/* --- appearing; with both locks --- */

/* What a file has at the end, and whether it is there at all. */
static bool is_there(const struct submitted *s, const struct row *r)
{
	if (!r->at_end)
		return true;
	if (!jobs_state_is_final(s->state))
		return false;
	if (!strcmp(r->name, "exit"))
		return s->has_exit;
	if (!strcmp(r->name, "result.json"))
		return s->verified;
	return s->reason[0] != 0;
}

static uint64_t size_of(const struct submitted *s, const char *name)
{
	if (!strcmp(name, "stdout"))
		return s->text_n[JOBS_STDOUT];
	if (!strcmp(name, "stderr"))
		return s->text_n[JOBS_STDERR];
	if (!strcmp(name, "result.json"))
		return s->text_n[JOBS_JSON];
	return 0;
}

static struct node *show_row(struct submitted *s, const struct row *r)
{
	struct tree *t = s->m->tree;
	struct node *n = tree_add(t, s->dir, r->name, r->mode, r->ops, s);
	if (n)
		n->size = size_of(s, r->name);
	return n;
}

int jobs_show(struct submitted *s, bool hidden)
{
	struct mount *m = s->m;
	s->dir = tree_add(m->tree, m->dir_jobs, s->name, S_IFDIR | 0755,
			  &jobs_one_ops, s);
	if (!s->dir)
		return -1;
	s->dir->hidden = hidden;
	for (size_t i = 0; i < ROWS; i++) {
		if (!is_there(s, &rows[i]))
			continue;
		struct node *n = show_row(s, &rows[i]);
		if (!n)
			return -1;
		if (rows[i].ops == &jobs_outdir_ops)
			s->dir_out = n;
	}
	for (size_t i = 0; i < s->out_n; i++)
		jobs_show_out(s, &s->out[i], false);
	return 0;
}

static void post(struct submitted *s, enum notify_op op, const char *file)
{
	cleanup_buf struct buf path = { 0 };
	buf_addf(&path, "jobs/%s/%s", s->name, file);
	if (buf_cstr(&path) && s->m->notify)
		notify_post(s->m->notify, op, buf_cstr(&path));
}

void jobs_show_end(struct submitted *s, bool hidden)
{
	for (size_t i = 0; s->dir && i < ROWS; i++) {
		struct node *n = tree_find(s->dir, rows[i].name);
		if (!rows[i].at_end || !is_there(s, &rows[i]))
			continue;
		if (n) {	/* a word before the last one */
			n->hidden &= hidden;
			n->size = size_of(s, rows[i].name);
			post(s, NOTIFY_TOUCH, rows[i].name);
			continue;
		}
		n = show_row(s, &rows[i]);
		if (!n)
			continue;
		n->hidden = hidden;
		if (!hidden)
			continue;
		s->unshown++;
		post(s, NOTIFY_CREATE, rows[i].name);
	}
}

/* The directory of a path below out/, made; *last is the rest. */
static struct node *out_dirs(struct submitted *s, char *path, char **last,
			     bool hidden)
{
	struct node *dir = s->dir_out;
	char *at = path;
	for (char *slash; dir && (slash = strchr(at, '/')); at = slash + 1) {
		*slash = 0;
		struct node *next = tree_find(dir, at);
		if (!next) {
			next = tree_add(s->m->tree, dir, at, S_IFDIR | 0755,
					&jobs_outdir_ops, s);
			cleanup_buf struct buf b = { 0 };
			buf_addf(&b, "out/%s", path);
			if (next && hidden && buf_cstr(&b)) {
				next->hidden = true;
				post(s, NOTIFY_MKDIR, buf_cstr(&b));
			}
		}
		dir = next && tree_is_dir(next) ? next : NULL;
		*slash = '/';
	}
	*last = at;
	return dir;
}

void jobs_show_out(struct submitted *s, const struct jobs_out *o, bool hidden)
{
	char *path = strdup(o->path), *last;
	/* the helper takes no longer paths */
	hidden &= strlen(s->name) + strlen(o->path) < HELPER_PATH_MAX;
	struct node *dir = path ? out_dirs(s, path, &last, hidden) : NULL;
	struct node *n = dir ? tree_add(s->m->tree, dir, last, S_IFREG | 0444,
					&jobs_out_ops, s) : NULL;
	if (n) {
		cleanup_buf struct buf b = { 0 };
		n->size = o->size;
		n->hidden = hidden;
		buf_addf(&b, "out/%s", o->path);
		if (hidden && buf_cstr(&b))
			post(s, NOTIFY_CREATE, buf_cstr(&b));
	}
	free(path);
}

/* --- jobs/ --- */

static int check_name(const char *name, struct err *e)
{
	if (name[strspn(name, "0123456789")] == 0)
		return err_set(e, ERR_NAME, "a number is the name of what was "
			       "written to jobs/new: take another one");
	if (!strcmp(name, "new") || !strcmp(name, "last"))
		return err_set(e, ERR_NAME, "jobs/%s is a name of ours", name);
	return name_check(bytes_str(name), e);
}

static int refuse(struct mount *m, const struct err *e)
{
	mount_failed(m, e);
	return err_errno(e);
}

static int dir_mkdir(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct node **out)
{
	(void)dir, (void)mode;
	struct jobs *j = m->jobs;
	struct err e;
	if (m->closed)
		return ESHUTDOWN;
	if (check_name(name, &e) < 0)
		return refuse(m, &e);
	pthread_mutex_lock(&j->lock);
	struct submitted *s = jobs_named(j, name) ? NULL : jobs_add(j, name);
	int err = s ? 0 : EEXIST;
	if (s) {
		mount_lock(m);
		err = jobs_show(s, false) < 0 ? ENOMEM : 0;
		*out = s->dir;
		mount_unlock(m);
		s->removed = err != 0;
		jobs_put(s);
		jobs_trim(j);
	}
	pthread_mutex_unlock(&j->lock);
	return err;
}

/* Its files on the disk; what is in the cache stays there as any item's. */
static void drop_files(struct jobs *j, struct submitted *s)
{
	static const char *const texts[] = { "out", "err", "json", "job", "all" };
	char id[VAULT_ID_MAX + 1];
	if (s->blob[0])
		unlinkat(j->dir, s->blob, 0);
	for (size_t i = 0; i < s->out_n; i++)
		vault_unlink(j->dir, s->out[i].vault, NULL);
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
		jobs_vault_id(s, texts[t], id);
		vault_unlink(j->dir, id, NULL);
	}
}

static void last_again(struct jobs *j, const struct submitted *gone)
{
	struct submitted *newest = NULL;
	mount_lock(j->m);
	bool led = j->last->target && !strcmp(j->last->target, gone->name);
	j->last->hidden |= led;
	mount_unlock(j->m);
	for (struct submitted *s = j->first; s; s = s->next)
		if (!s->removed && s->state != JOBS_DRAFT)
			newest = s;
	if (led && newest)
		jobs_newest(j, newest);
}

/* With the mount's lock: only ours are left in it, and go. */
static int empty_out(struct mount *m, struct node *dir)
{
	struct node *n, *next;
	for (n = tree_next(dir, 0); n; n = tree_next(dir, n->cookie))
		if (!is_ours(n) || (tree_is_dir(n) && tree_count(n)))
			return ENOTEMPTY;
	for (n = tree_next(dir, 0); n; n = next) {
		next = tree_next(dir, n->cookie);
		tree_unlink(m->tree, n);
	}
	return 0;
}

static bool may_go(const struct submitted *s)
{
	return s->state == JOBS_DRAFT || jobs_state_is_final(s->state);
}

int jobs_remove(struct mount *m, struct node *n)
{
	struct jobs *j = m->jobs;
	struct submitted *s = n->data;
	pthread_mutex_lock(&j->lock);
	int err = may_go(s) ? 0 : EBUSY;
	mount_lock(m);
	if (!err)
		err = empty_out(m, n);
	if (!err) {
		s->dir = s->dir_out = NULL;
		tree_unlink(m->tree, n);
	}
	mount_unlock(m);
	if (!err) {
		s->removed = true;
		jobs_put(s);
		drop_files(j, s);
		jobs_free_parts(s);
		last_again(j, s);
	}
	pthread_mutex_unlock(&j->lock);
	return err;
}

static int dir_rmdir(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	return jobs_remove(m, n);
}

static void changed(struct mount *m, struct node *n)
{
	(void)m, (void)n;	/* cp -p and touch must simply work */
}

const struct node_ops jobs_dir_ops = {
	.mkdir = dir_mkdir, .rmdir = dir_rmdir, .timeout_s = 86400,
};

/* --- jobs/NAME/ and below --- */

/* Whether dir's job takes inputs, and the name is free for one. */
static int check_input(struct mount *m, struct node *dir, const char *name,
		       struct err *e)
{
	struct jobs *j = m->jobs;
	if (m->closed)
		return err_set(e, ERR_GONE, "the session is over: %s",
			       m->closed_why);
	pthread_mutex_lock(&j->lock);
	mount_lock(m);
	const struct submitted *s = jobs_of(dir);
	bool top = s && s->dir == dir;
	mount_unlock(m);
	bool draft = s && s->state == JOBS_DRAFT;
	pthread_mutex_unlock(&j->lock);
	if (!draft) {
		err_set(e, ERR_SYS, "this job was run: make another one for "
			"other inputs");
		e->sys = EPERM;
		return -1;
	}
	if (top && jobs_is_ours(name))
		return err_set(e, ERR_NAME, "%s is a file of ours in every "
			       "job: name the input otherwise", name);
	return name_check_entry(bytes_str(name), e) < 0 ? -1 :
		out_plain_name(name, e);
}

bool jobs_may_write(struct mount *m, const struct node *n)
{
	struct jobs *j = m->jobs;
	if (!j)
		return true;
	pthread_mutex_lock(&j->lock);
	mount_lock(m);
	const struct submitted *s = jobs_of(n);
	mount_unlock(m);
	bool may = !s || (s->state == JOBS_DRAFT && !s->posting);
	pthread_mutex_unlock(&j->lock);
	return may;
}

static int one_create(struct mount *m, struct node *dir, const char *name,
		      mode_t mode, int flags, struct node **out)
{
	struct err e;
	if (check_input(m, dir, name, &e) < 0)
		return refuse(m, &e);
	return out_new_file(m, dir, name, mode, flags, out);
}

static unsigned depth_of(const struct mount *m, const struct node *n)
{
	unsigned d = 0;
	for (; n && n != m->dir_jobs; n = n->parent)
		d++;
	return d;
}

static int one_mkdir(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct node **out)
{
	struct err e;
	if (check_input(m, dir, name, &e) < 0)
		return refuse(m, &e);
	mount_lock(m);
	bool deep = depth_of(m, dir) >= JOBS_DEPTH;
	*out = deep ? NULL : tree_add(m->tree, dir, name,
				      S_IFDIR | (mode & 07777), &jobs_one_ops,
				      NULL);
	mount_unlock(m);
	return *out ? 0 : deep ? ENAMETOOLONG : EEXIST;
}

static int may_remove(struct mount *m, const struct node *n)
{
	struct jobs *j = m->jobs;
	pthread_mutex_lock(&j->lock);
	mount_lock(m);
	const struct submitted *s = jobs_of(n);
	mount_unlock(m);
	int err = s && may_go(s) ? 0 : EBUSY;
	pthread_mutex_unlock(&j->lock);
	return err;
}

static int one_unlink(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	int err = may_remove(m, n);
	if (err)
		return err;
	if (n->ops == &out_file_ops) {
		out_forget(m, n);
		return 0;
	}
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
	return 0;
}

static int one_rmdir(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	int err = may_remove(m, n);
	if (err)
		return err;
	mount_lock(m);
	err = tree_count(n) ? ENOTEMPTY : 0;
	if (!err)
		tree_unlink(m->tree, n);
	mount_unlock(m);
	return err;
}

/* What is there under the new name gives way. */
static int give_way(struct mount *m, const struct node *n, struct node *dir,
		    const char *name, unsigned flags)
{
	mount_lock(m);
	struct node *old = tree_find(dir, name);
	if (old)
		old->opens++;
	mount_unlock(m);
	int err = 0;
	if (!old)
		return 0;
	if (old != n)
		err = flags & RENAME_NOREPLACE ? EEXIST :
			tree_is_dir(old) != tree_is_dir(n) ?
			(tree_is_dir(old) ? EISDIR : ENOTDIR) :
			tree_is_dir(old) ? one_rmdir(m, dir, old)
					 : one_unlink(m, dir, old);
	mount_drop(m, old);
	return err;
}

static int one_rename(struct mount *m, struct node *n, struct node *dir,
		      const char *name, unsigned flags, pid_t tid)
{
	(void)tid;
	struct err e;
	mount_lock(m);
	bool away = jobs_of(n) != jobs_of(dir);
	mount_unlock(m);
	if (away)
		return EXDEV;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return EINVAL;
	if (is_ours(n))
		return EPERM;
	if (check_input(m, dir, name, &e) < 0)
		return refuse(m, &e);
	int err = give_way(m, n, dir, name, flags);
	if (err)
		return err;
	mount_lock(m);
	err = tree_rename(m->tree, n, dir, name) < 0 ? ENOMEM : 0;
	mount_unlock(m);
	out_put_headers(m, n);
	return err;
}

void jobs_end_shown(struct mount *m, struct node *n)
{
	struct jobs *j = m->jobs;
	struct submitted *s = n->data;
	pthread_mutex_lock(&j->lock);
	if (s->unshown && --s->unshown == 0) {
		s->end_at_ms = 0;
		jobs_tell_end(s);
	}
	pthread_mutex_unlock(&j->lock);
}

/* The helper has shown the directory: jobs/new's close may return. */
static void one_shown(struct mount *m, struct node *n)
{
	struct jobs *j = m->jobs;
	pthread_mutex_lock(&j->lock);
	if (n->data)
		jobs_answer(n->data, 0);
	pthread_mutex_unlock(&j->lock);
}

const struct node_ops jobs_one_ops = {
	.create = one_create, .mkdir = one_mkdir, .unlink = one_unlink,
	.rmdir = one_rmdir, .rename = one_rename, .changed = changed,
	.shown = one_shown, .expire = jobs_expire, .timeout_s = 86400,
};

/* --- drafts found again --- */

static struct submitted *job_again(struct mount *m, const char *name)
{
	struct jobs *j = m->jobs;
	struct err e;
	struct submitted *s = jobs_named(j, name);
	if (s || check_name(name, &e) < 0)
		return s;
	s = jobs_add(j, name);	/* its record was lost with the power */
	if (s && jobs_show(s, false) < 0)
		s = NULL;
	if (s)
		jobs_put(s);
	return s;
}

struct node *jobs_place(struct mount *m, char *path, char **last)
{
	char *slash = strchr(path, '/');
	if (!m->jobs || !slash)
		return NULL;
	*slash = 0;
	struct submitted *s = job_again(m, path);
	struct node *dir = s ? s->dir : NULL;
	for (path = slash + 1; dir && (slash = strchr(path, '/'));
	     path = slash + 1) {
		*slash = 0;
		struct node *next = tree_find(dir, path);
		if (!next)
			next = tree_add(m->tree, dir, path, S_IFDIR | 0755,
					&jobs_one_ops, NULL);
		dir = next && next->ops == &jobs_one_ops ? next : NULL;
	}
	*last = path;
	return dir;
}
