/* SPDX-License-Identifier: MIT
 *
 * From a draft (or a text) to sealed bytes. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "airloxfs/outbox_private.h"
#include "core/host/check.h"
#include "core/host/draft.h"
#include "core/host/file.h"

const struct draft_look seal_look = { check_content_whole, check_image };

static int blob_file(struct outbox *o, struct post *p, uint64_t n,
		     struct err *e)
{
	if (n > INLINE_MAX)
		return file_tmp(o->blobs, p->blob, e);
	int fd = memfd_create("airloxfs", MFD_CLOEXEC);
	return fd >= 0 ? fd : err_sys(e, "no memory for a message");
}

static int seal(struct mount *m, struct post *p, struct draft *d,
		struct err *e)
{
	int fd = blob_file(m->outbox, p, (uint64_t)draft_size(d) +
			   BLOB_OVERHEAD, e);
	if (fd < 0)
		return -1;
	if (draft_seal(d, m->peer, fd, &p->sealed, e) < 0) {
		close(fd);
		return -1;
	}
	p->sealed.blob_fd = fd;
	p->sealed.owns_fd = true;
	return 0;
}

static int add_refs(struct draft *d, struct outgoing *f, struct err *e)
{
	int rc = 0;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->ref_n && rc == 0; i++)
		rc = draft_add_ref(d, &f->refs[i], e);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int seal_busy(struct mount *m, struct post *p,
		     const struct zip_source *src, struct err *e)
{
	struct draft d = { 0 };
	int rc = draft_file(&d, m->peer, bytes_str(p->name), src, &seal_look,
			    e);
	if (rc == 0)
		rc = add_refs(&d, p->file, e);
	if (rc == 0)
		rc = seal(m, p, &d, e);
	draft_free(&d);
	return rc;
}

/* What is sealed does not change meanwhile; but who asks for the file's state
 * does not wait for it. */
static int seal_file(struct mount *m, struct post *p, struct err *e)
{
	struct outgoing *f = p->file;
	pthread_mutex_lock(&f->lock);
	bool stale = f->dirty || f->gen != p->gen;
	struct zip_source src = { out_read_busy, f, vault_size(f->vault) };
	if (!stale)
		out_busy(f);
	pthread_mutex_unlock(&f->lock);
	if (stale)
		return SEAL_STALE;
	int rc = seal_busy(m, p, &src, e);
	out_idle(f);
	return rc;
}

int seal_out(struct mount *m, struct post *p, struct err *e)
{
	struct draft d = { 0 };
	if (p->file)
		return seal_file(m, p, e);
	int rc = draft_text(&d, m->peer, buf_bytes(&p->text), e);
	if (rc == 0)
		rc = seal(m, p, &d, e);
	draft_free(&d);
	return rc;
}
