/* SPDX-License-Identifier: MIT
 *
 * jobs/ does not grow for ever: of the jobs that have ended the newest
 * JOBS_KEPT stay.  An older one goes as by rm -r, but in one step: the helper
 * removes its directory, and watchers see it go. */
#include <errno.h>

#include "airloxfs/jobs_private.h"
#include "airloxfs/notify.h"

static void post_job(struct submitted *s)
{
	cleanup_buf struct buf path = { 0 };
	buf_addf(&path, "jobs/%s", s->name);
	if (buf_cstr(&path))
		notify_post(s->m->notify, NOTIFY_RMDIR, buf_cstr(&path));
}

void jobs_trim(struct jobs *j)
{
	size_t ended = 0;
	struct submitted *s;
	if (!j->m->notify)
		return;
	for (s = j->first; s; s = s->next)
		ended += !s->removed && !s->leaving &&
			 jobs_state_is_final(s->state);
	for (s = j->first; s && ended > JOBS_KEPT; s = s->next) {
		if (s->removed || s->leaving || !jobs_state_is_final(s->state))
			continue;
		s->leaving = true;
		ended--;
		post_job(s);
	}
}

static struct node *hold_next(struct mount *m, struct node *dir, off_t after)
{
	mount_lock(m);
	struct node *n = tree_next(dir, after);
	if (n)
		n->opens++;
	mount_unlock(m);
	return n;
}

static void empty(struct mount *m, struct node *dir)
{
	off_t at = 0;
	for (struct node *n; (n = hold_next(m, dir, at));) {
		at = n->cookie;
		if (tree_is_dir(n))
			empty(m, n);
		if (n->ops == &out_file_ops) {
			out_forget(m, n);
		} else {
			mount_lock(m);
			tree_unlink(m->tree, n);
			mount_unlock(m);
		}
		mount_drop(m, n);
	}
}

int jobs_expire(struct mount *m, struct node *n)
{
	struct jobs *j = m->jobs;
	struct submitted *s = n->data;
	pthread_mutex_lock(&j->lock);
	bool goes = s && s->dir == n && s->leaving;
	pthread_mutex_unlock(&j->lock);
	if (!goes)
		return EBUSY;
	empty(m, n);
	return jobs_remove(m, n);
}
