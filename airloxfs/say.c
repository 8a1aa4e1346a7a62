/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "airloxfs/mount.h"
#include "airloxfs/outbox.h"
#include "airloxfs/proc.h"
#include "airloxfs/say.h"
#include "core/host/draft.h"

/* h->bytes collects; h->data is not null once the open was poisoned.  The
 * handle's fields are touched by WRITE, FLUSH and RELEASE of one open file,
 * which dup lets several processes send at once. */
static pthread_mutex_t say_lock = PTHREAD_MUTEX_INITIALIZER;

static int say_open(struct mount *m, struct handle *h)
{
	struct err e;
	if ((h->flags & O_ACCMODE) != O_WRONLY)
		return EACCES;
	h->direct = true;
	if (peer_may_post(m->peer, ITEM_TEXT, TYPE_NONE, &e) == 0)
		return 0;
	mount_failed(m, &e);
	return err_errno(&e);
}

static int say_write(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	struct err e;
	int err = 0;
	pthread_mutex_lock(&say_lock);
	if (n > DRAFT_TEXT_MAX - h->bytes.len) {
		err_set(&e, ERR_SIZE, "a text of more than 4 MiB: send it as "
			"a file, through out/");
		h->failed = true;
		err = EFBIG;
	} else {
		buf_add(&h->bytes, p, n);
	}
	pthread_mutex_unlock(&say_lock);
	if (err)
		mount_failed(m, &e);
	return err;
}

/* The commit rule of out/, for bytes that one open collects: the node is
 * everybody's, so other descriptors are looked for in this open's processes
 * alone. */
bool say_is_complete(struct handle *h, pid_t tid)
{
	struct proc_flusher f;
	proc_look(&f, tid);
	if (f.signal) {
		buf_reset(&h->bytes);	/* a killed writer's half sentence */
		return false;
	}
	if (f.exiting)
		return !proc_holds(h->opener, h->node->ino) ||
		       f.tgid == proc_tgid(h->opener);
	return !proc_holds(tid, h->node->ino) &&
	       (f.tgid == h->opener || !proc_holds(h->opener, h->node->ino));
}

static void say_flush(struct mount *m, struct fuse_req *req,
		      struct handle *h, pid_t tid)
{
	struct buf text = { 0 };
	bool failed;
	pthread_mutex_lock(&say_lock);
	failed = h->failed;
	if (h->bytes.len && !failed &&
	    say_is_complete(h, tid)) {
		text = h->bytes;
		h->bytes = (struct buf){ 0 };
	}
	pthread_mutex_unlock(&say_lock);
	if (text.len && text.data[text.len - 1] == '\n')
		text.len--;
	if (text.len && !buf_failed(&text))
		outbox_say(m, buf_bytes(&text), proc_pid_ns(tid), req);
	else
		fs_reply_error(req, failed ? EFBIG : text.failed ? ENOMEM : 0);
	buf_free(&text);
}

static void say_release(struct mount *m, struct handle *h)
{
	if (h->bytes.len && h->bytes.data[h->bytes.len - 1] == '\n')
		h->bytes.len--;
	if (h->bytes.len && !h->failed && !buf_failed(&h->bytes))
		outbox_say(m, buf_bytes(&h->bytes), 0, NULL);
}

const struct node_ops say_ops = {
	.open = say_open, .write = say_write, .flush = say_flush,
	.release = say_release, .truncate = fs_truncate_nothing,
	.timeout_s = 86400,
};
