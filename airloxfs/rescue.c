/* SPDX-License-Identifier: MIT
 *
 * A text that was taken (its close returned 0) and then could not be sent has
 * no file in out/ where its content would stay: it gets one, state failed. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/out_private.h"
#include "airloxfs/outbox_private.h"
#include "core/enc.h"
#include "core/host/file.h"
#include "core/payload.h"
#include "core/seal.h"

#define RESCUE_ID 8		/* characters of the item's id in the name */

/* What an earlier mount sealed is opened again: the key is ours. */
static int open_text(struct outbox *o, struct post *p, struct buf *text,
		     struct err *e)
{
	cleanup_buf struct buf blob = { 0 }, plain = { 0 };
	struct envelope v;
	struct payload got;
	uint8_t *to = buf_room(&blob, (size_t)p->sealed.blob_n);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	blob.len = (size_t)p->sealed.blob_n;
	if (outbox_reopen(o, p, e) < 0 ||
	    file_get_at(p->sealed.blob_fd, to, blob.len, 0, e) < 0 ||
	    envelope_parse(&v, buf_bytes(&p->sealed.envelope), e) < 0)
		return -1;
	int rc = seal_open(&plain, &v, buf_bytes(&blob),
			   o->m->peer->invite.keys.session_key, e);
	if (rc == 0)
		rc = payload_parse(&got, (struct bytes){ plain.data + 4,
				   plain.len - 4 }, 0, e);
	if (rc == 0) {
		if (got.kind == ITEM_TEXT)
			buf_add(text, got.u.text.text.p, got.u.text.text.n);
		payload_free(&got);
	}
	envelope_free(&v);
	return rc;
}

static void name_it(const struct post *p, struct buf *name)
{
	char id[RESCUE_ID + 1];
	uint8_t raw[RESCUE_ID / 2];
	if (p->sealed.id[0]) {
		memcpy(id, p->sealed.id, RESCUE_ID);
		id[RESCUE_ID] = 0;
	} else {
		prim_random(raw, sizeof raw);
		enc_hex(id, raw, sizeof raw);
	}
	buf_addf(name, "said-%s.txt", id);
}

static int place(struct mount *m, const char *name, struct bytes text,
		 const struct err *why, struct err *e)
{
	struct vault *v = store_draft_new(m->store, e);
	struct outgoing *f = v ? out_file_new(v) : NULL;
	if (!f) {
		if (v)
			vault_close(v);
		return -1;
	}
	mount_lock(m);
	struct node *n = out_add(m, m->dir_out, name, 0644, f);
	if (n) {
		n->size = text.n;
		n->opens++;
	}
	mount_unlock(m);
	if (!n) {
		struct node stray = { .data = f };
		out_file_free(&stray);
		return err_set(e, ERR_EXISTS, "out/%s is in the way", name);
	}
	pthread_mutex_lock(&f->lock);
	int rc = vault_write(v, 0, text.p, text.n, e);
	pthread_mutex_unlock(&f->lock);
	out_set_state(m, f, f->gen, OUT_FAILED, NULL, 0, why);
	pthread_mutex_lock(&f->lock);
	if (rc == 0)
		rc = vault_sync(v, e);
	pthread_mutex_unlock(&f->lock);
	out_drop(m, f);
	return rc;
}

void outbox_rescue(struct outbox *o, struct post *p, const struct err *why)
{
	struct mount *m = o->m;
	struct err e;
	cleanup_buf struct buf text = { 0 }, name = { 0 };
	if (!m->dir_out)
		return;
	if (p->text.len)
		buf_add(&text, p->text.data, p->text.len);
	name_it(p, &name);
	if ((!text.len && open_text(o, p, &text, &e) < 0) ||
	    !buf_cstr(&name) || buf_failed(&text) ||
	    place(m, buf_cstr(&name), buf_bytes(&text), why, &e) < 0)
		mount_failed(m, &e);
	else
		mount_log(m, "a text that could not be sent is out/%s",
			  buf_cstr(&name));
}
