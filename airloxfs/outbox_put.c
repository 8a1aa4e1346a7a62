/* SPDX-License-Identifier: MIT
 *
 * What comes sealed: the result of a job and its files, as one batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "airloxfs/outbox_private.h"
#include "airloxfs/queue.h"
#include "core/host/file.h"

bool post_is_result(const struct post *p)
{
	return strncmp(p->draft, QUEUE_KEY, strlen(QUEUE_KEY)) == 0;
}

int outbox_blob(struct mount *m, uint64_t n, char blob[FILE_TMP],
		struct err *e)
{
	blob[0] = 0;
	if (n > INLINE_MAX)
		return file_tmp(m->outbox->blobs, blob, e);
	int fd = memfd_create("airloxfs", MFD_CLOEXEC);
	return fd >= 0 ? fd : err_sys(e, "no memory for a message");
}

void outbox_item_drop(struct mount *m, struct outbox_item *item)
{
	if (item->sealed.owns_fd)
		sealed_free(&item->sealed);
	if (item->blob[0])
		unlinkat(m->outbox->blobs, item->blob, 0);
	item->blob[0] = 0;
}

static struct post *make_post(const char *key, struct outbox_item *v,
			      bool last, struct err *e)
{
	struct post *p = calloc(1, sizeof *p);
	if (p)
		p->name = v->name ? strdup(v->name) : NULL;
	if (!p || (v->name && !p->name)) {
		free(p);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	snprintf(p->draft, sizeof p->draft, "%s", key);
	memcpy(p->blob, v->blob, sizeof p->blob);
	p->gen = last ? QUEUE_GEN_RESULT : QUEUE_GEN_FILE;
	p->state = POST_SEALED;
	p->sealed = v->sealed;
	return p;
}

/* The post goes, what it was made of stays the caller's. */
static void unmake(struct post *p)
{
	p->sealed = (struct sealed){ .blob_fd = -1 };
	post_free(p);
}

/* Records are kept up to the first that was torn: the last one, and with it
 * all of them, or it was nothing. */
static int keep_all(struct outbox *o, struct post **v, size_t n,
		    struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (outbox_keep(o, v[i], i == n - 1, e) < 0)
			return -1;
	return 0;
}

int outbox_put(struct mount *m, const char *key, struct outbox_item *v,
	       size_t n, struct err *e)
{
	struct outbox *o = m->outbox;
	struct post *p[ITEM_REFS_MAX];
	size_t made = 0;
	while (made < n && (p[made] = make_post(key, &v[made], made == n - 1,
						e)))
		made++;
	if (made < n || keep_all(o, p, n, e) < 0) {
		while (made)
			unmake(p[--made]);
		return -1;
	}
	pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < n; i++)
		outbox_add(o, p[i]);
	pthread_cond_broadcast(&o->work);
	pthread_mutex_unlock(&o->lock);
	for (size_t i = 0; i < n; i++)
		v[i] = (struct outbox_item){ .sealed.blob_fd = -1 };
	return 0;
}

void outbox_forget(struct outbox *o, const char *key)
{
	for (struct post *p = o->first, *next; p; p = next) {
		next = p->next;
		if (strcmp(p->draft, key) != 0)
			continue;
		outbox_done(o, p, false, 0);
		outbox_drop_blob(o, p, false);
		outbox_remove(o, p);
		post_free(p);
	}
}
