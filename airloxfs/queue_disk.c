/* SPDX-License-Identifier: MIT
 *
 * out/ of a job as a whole: every file of it, what of it is on the disk, and
 * how the next mount finds that again. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/queue_private.h"

#define SYNC_FILES 8		/* more are made durable by one syncfs */

/* The path below out/; with the mount's lock. */
void queue_out_path(struct buf *b, const struct node *n,
		    const struct node *top)
{
	if (!n || n == top)
		return;
	queue_out_path(b, n->parent, top);
	if (b->len)
		buf_add_byte(b, '/');
	buf_add_str(b, n->name);
}

/* --- every file, held --- */

static int list_add(struct queue_files *l, struct node *n,
		    const struct node *top)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		void *v = realloc(l->v, cap * sizeof *l->v);
		if (!v)
			return -1;
		l->v = v;
		l->cap = cap;
	}
	struct buf path = { 0 };
	queue_out_path(&path, n, top);
	struct queue_file *f = &l->v[l->n];
	*f = (struct queue_file){ .node = n, .path = buf_steal(&path) };
	if (!f->path)
		return -1;
	f->is_exec = n->mode & 0100;
	f->is_top = n->parent == top;
	n->opens++;
	l->n++;
	return 0;
}

/* With the mount's lock. */
static int list_dir(struct queue_files *l, struct node *dir,
		    const struct node *top)
{
	int rc = 0;
	for (struct node *n = tree_next(dir, 0); n && rc == 0;
	     n = tree_next(dir, n->cookie))
		rc = tree_is_dir(n) ? list_dir(l, n, top)
				    : list_add(l, n, top);
	return rc;
}

int queue_out_list(struct qjob *j, struct queue_files *l, struct err *e)
{
	*l = (struct queue_files){ 0 };
	mount_lock(j->m);
	int rc = j->out_dir ? list_dir(l, j->out_dir, j->out_dir) : 0;
	mount_unlock(j->m);
	return rc < 0 ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

void queue_out_list_free(struct qjob *j, struct queue_files *l)
{
	mount_lock(j->m);
	for (size_t i = 0; i < l->n; i++) {
		l->v[i].node->opens--;
		tree_settle(j->m->tree, l->v[i].node);
	}
	mount_unlock(j->m);
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct queue_files){ 0 };
}

/* --- on the disk --- */

static int put_header(struct qjob *j, const struct queue_file *f,
		      struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	struct vault *v = ((struct qout *)f->node->data)->vault;
	buf_addf(&b, "%s%d%s", j->id, f->is_exec ? 1 : 0, f->path);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	return vault_set_record(v, buf_bytes(&b), e) < 0 ||
	       vault_flush_header(v, e) < 0 ? -1 : 0;
}

int queue_out_sync(struct qjob *j, struct err *e)
{
	struct queue_files l;
	int rc = queue_out_list(j, &l, e);
	pthread_mutex_lock(&j->io);
	for (size_t i = 0; rc == 0 && i < l.n; i++) {
		rc = put_header(j, &l.v[i], e);
		if (rc == 0 && l.n <= SYNC_FILES)
			rc = vault_sync(((struct qout *)l.v[i].node->data)
					->vault, e);
	}
	pthread_mutex_unlock(&j->io);
	if (rc == 0 && l.n > SYNC_FILES &&
	    syncfs(((struct queue_room *)j->m->queue)->dir) < 0)
		rc = err_sys(e, "out/ cannot be made durable");
	queue_out_list_free(j, &l);
	return rc;
}

static struct node *find_dir(struct qjob *j, char *path, char **last)
{
	struct mount *m = j->m;
	struct node *dir = j->out_dir;
	for (char *slash; dir && (slash = strchr(path, '/'));
	     path = slash + 1) {
		*slash = 0;
		struct node *next = tree_find(dir, path);
		if (!next && (next = tree_add(m->tree, dir, path,
					      S_IFDIR | 0700, &queue_out_ops,
					      j)))
			queue_hold(j);
		dir = next && tree_is_dir(next) ? next : NULL;
	}
	*last = path;
	return dir;
}

/* Before the mount is there: v goes to its job, or -1. */
static int place(struct queue_room *q, struct vault *v, struct err *e)
{
	struct bytes r = vault_record(v);
	char id[ITEM_ID + 1] = "", *name;
	if (r.n <= ITEM_ID + 1)
		return -1;
	memcpy(id, r.p, ITEM_ID);
	struct qjob *j = queue_find(q, id);
	cleanup_free char *path = strndup((const char *)r.p + ITEM_ID + 1,
					  r.n - ITEM_ID - 1);
	if (!j || !path || (!j->dir && queue_dir_begin(j, e) < 0))
		return -1;
	struct node *dir = find_dir(j, path, &name);
	mode_t mode = r.p[ITEM_ID] == '1' ? 0700 : 0600;
	return dir && queue_out_add(j, dir, name, mode, v) ? 0 : -1;
}

static void load_vault(struct queue_room *q, const char *id)
{
	const struct store *s = q->m->store;
	struct err e;
	struct vault *v = id[0] == 'o' ? vault_open(q->dir, id, s->session_key,
						    s->session_id, &e) : NULL;
	if (v && place(q, v, &e) == 0)
		return;
	vault_close(v);
	vault_unlink(q->dir, id, NULL);
}

void queue_out_load(struct queue_room *q)
{
	int fd = openat(q->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *ent; (ent = readdir(d));)
		if ((ent->d_name[0] == 'o' || ent->d_name[0] == 'w') &&
		    ent->d_name[1] == '-')
			load_vault(q, ent->d_name);
	closedir(d);
}
