/* SPDX-License-Identifier: MIT
 *
 * What a crash finds again.  A record is u32 length, canonical JSON, and for a
 * small item its blob; larger blobs are files beside it.  `put` is the commit:
 * from its sync on the item will arrive.  `done` says how it ended. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "airloxfs/outbox_private.h"
#include "core/host/file.h"
#include "core/json.h"

#define JOURNAL "outbox.journal"

/* --- writing --- */

static void put_record(struct buf *out, const struct post *p, bool done,
		       bool sent, uint64_t seq)
{
	cleanup_buf struct buf j = { 0 };
	buf_add_byte(&j, '{');
	json_put_key(&j, "blob"), json_put_string(&j, bytes_str(p->blob));
	json_put_key(&j, "blob_n");
	json_put_int(&j, (int64_t)p->sealed.blob_n);
	json_put_key(&j, "done"), json_put_int(&j, done);
	json_put_key(&j, "draft"), json_put_string(&j, bytes_str(p->draft));
	json_put_key(&j, "envelope");
	json_put_string(&j, done ? (struct bytes){ 0 }
				 : buf_bytes(&p->sealed.envelope));
	json_put_key(&j, "gen"), json_put_int(&j, (int64_t)p->gen);
	json_put_key(&j, "id"), json_put_string(&j, bytes_str(p->sealed.id));
	json_put_key(&j, "name");
	json_put_string(&j, bytes_str(p->name ? p->name : ""));
	json_put_key(&j, "sent"), json_put_int(&j, sent);
	json_put_key(&j, "seq"), json_put_int(&j, (int64_t)seq);
	buf_add_byte(&j, '}');
	buf_add_u32be(out, (uint32_t)j.len);
	buf_add(out, j.data, j.len);
	out->failed |= j.failed;
}

static int add_blob(struct buf *out, const struct post *p, struct err *e)
{
	size_t n = (size_t)p->sealed.blob_n;
	uint8_t *to = buf_room(out, n);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (file_get_at(p->sealed.blob_fd, to, n, 0, e) < 0)
		return -1;
	out->len += n;
	return 0;
}

static int sync_blob(struct outbox *o, const struct post *p, struct err *e)
{
	if (fdatasync(p->sealed.blob_fd) < 0)
		return err_sys(e, "the sealed item cannot be made durable");
	return file_fsync_dir(o->blobs, e);
}

/* An item that is posted at once need not be on the disk before: either the
 * relay has it, or nobody was told anything yet; who is told "queued" is told
 * so after outbox_settle.  A killed daemon loses nothing either way. */
int outbox_keep(struct outbox *o, struct post *p, bool durable,
		struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	if (p->blob[0] && !p->lazy && sync_blob(o, p, e) < 0)
		return -1;
	put_record(&b, p, false, false, 0);
	if (!p->blob[0] && add_blob(&b, p, e) < 0)
		return -1;
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (journal_append(o->journal, buf_bytes(&b), &p->at, e) < 0)
		return -1;
	o->written += b.len;
	return durable || (p->blob[0] && !p->lazy) ? outbox_sync(o, e) : 0;
}

int outbox_settle(struct outbox *o, struct post *p, struct err *e)
{
	if (p->lazy && p->blob[0] && sync_blob(o, p, e) < 0)
		return -1;
	pthread_mutex_lock(&o->lock);
	p->lazy = false;
	pthread_mutex_unlock(&o->lock);
	return outbox_sync(o, e);
}

int outbox_sync(struct outbox *o, struct err *e)
{
	return journal_sync(o->journal, e);
}

/* Not synced: lost, it is posted once more and answered as a duplicate. */
void outbox_done(struct outbox *o, const struct post *p, bool sent,
		 uint64_t seq)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t at;
	put_record(&b, p, true, sent, seq);
	if (!buf_failed(&b))
		journal_append(o->journal, buf_bytes(&b), &at, NULL);
	if (!sent)
		journal_sync(o->journal, NULL);	/* a failure is a promise */
}

/* --- blobs --- */

int outbox_reopen(struct outbox *o, struct post *p, struct err *e)
{
	if (p->sealed.blob_fd >= 0)
		return 0;
	if (p->blob[0]) {
		p->sealed.blob_fd = openat(o->blobs, p->blob, O_RDONLY |
					   O_CLOEXEC | O_NOFOLLOW);
		p->sealed.owns_fd = true;
		return p->sealed.blob_fd >= 0 ? 0 :
			err_sys(e, "a sealed item is gone from the outbox");
	}
	cleanup_buf struct buf b = { 0 };
	if (journal_read(o->journal, p->at, &b, e) < 0)
		return -1;
	size_t skip = b.len < 4 ? b.len : 4 + (size_t)load_u32be(b.data);
	if (skip > b.len || b.len - skip != p->sealed.blob_n)
		return err_set(e, ERR_INVALID, "a record of the outbox is "
			       "damaged");
	int fd = memfd_create("airloxfs", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "no memory for a message");
	p->sealed.blob_fd = fd;
	p->sealed.owns_fd = true;
	return file_put_at(fd, b.data + skip, b.len - skip, 0, e);
}

/* What we sent we hold like any holder: it can be given back to the relay.
 * The cache is no promise: nothing is synced. */
static void keep_in_cache(struct outbox *o, struct post *p)
{
	struct cache *c = o->m->peer->cache;
	struct cache_stage s;
	uint8_t chunk[16384];
	struct err e;
	if (p->blob[0]) {
		if (renameat(o->blobs, p->blob, c->blobs, p->sealed.id) == 0)
			p->blob[0] = 0;
		return;
	}
	if (cache_stage(c, &s, &e) < 0)
		return;
	uint64_t at = 0;
	while (at < p->sealed.blob_n) {
		ssize_t n = pread(p->sealed.blob_fd, chunk, sizeof chunk,
				  (off_t)at);
		if (n <= 0 || file_put(s.fd, chunk, (size_t)n, &e) < 0)
			break;
		at += (uint64_t)n;
	}
	if (at != p->sealed.blob_n ||
	    cache_keep(c, &s, p->sealed.id, &e) < 0)
		cache_drop(c, &s);
	close(s.fd);
}

void outbox_drop_blob(struct outbox *o, struct post *p, bool to_cache)
{
	if (to_cache && p->sealed.blob_fd >= 0)
		keep_in_cache(o, p);
	if (p->blob[0])
		unlinkat(o->blobs, p->blob, 0);
}

/* --- loading --- */

static void copy_to(char *to, size_t room, struct bytes s)
{
	size_t n = s.n < room ? s.n : room - 1;
	memcpy(to, s.p, n);
	to[n] = 0;
}

static struct outcome **slot_of(struct outbox *o, const char *draft)
{
	size_t h = 0;
	for (; *draft; draft++)
		h = h * 31 + (unsigned char)*draft;
	return &o->outcomes[h % OUTCOME_SLOTS];
}

static struct outcome *outcome_of(struct outbox *o, const char *draft)
{
	struct outcome *k = o->outcomes ? *slot_of(o, draft) : NULL;
	while (k && strcmp(k->draft, draft) != 0)
		k = k->next;
	return k;
}

static void note_outcome(struct outbox *o, const struct post *p, bool done,
			 bool sent, uint64_t seq)
{
	struct outcome *k = outcome_of(o, p->draft);
	if (!p->draft[0] || !o->outcomes)
		return;
	if (!k && (k = calloc(1, sizeof *k))) {
		strcpy(k->draft, p->draft);
		k->next = *slot_of(o, k->draft);
		*slot_of(o, k->draft) = k;
	}
	if (!k || p->gen < k->o.gen)
		return;
	k->o = (struct outbox_outcome){ .known = true, .done = done,
		.sent = sent, .gen = p->gen, .seq = seq };
	strcpy(k->o.id, p->sealed.id);
}

static void load_put(struct outbox *o, struct post *p, uint64_t at,
		     struct bytes envelope)
{
	struct post *keep = malloc(sizeof *keep);
	if (!keep)
		return;
	buf_add(&p->sealed.envelope, envelope.p, envelope.n);
	p->state = POST_SEALED;
	p->at = at;
	*keep = *p;
	*p = (struct post){ .sealed.blob_fd = -1 };
	*o->last = keep;
	o->last = &keep->next;
	o->counts.queued++;
	o->draining_backlog = true;
}

static void load_done(struct outbox *o, const char *id)
{
	struct post *p = o->first;
	while (p && strcmp(p->sealed.id, id) != 0)
		p = p->next;
	if (!p)
		return;
	outbox_remove(o, p);
	outbox_drop_blob(o, p, false);
	post_free(p);
}

static int load_one(struct outbox *o, uint64_t at, struct bytes record,
		    struct err *e)
{
	struct post p = { .sealed.blob_fd = -1 };
	uint32_t n = record.n < 4 ? 0 : load_u32be(record.p);
	if (record.n < 4 || n > record.n - 4)
		return err_set(e, ERR_INVALID, "a record of the outbox is "
			       "damaged");
	struct json *doc = json_parse((struct bytes){ record.p + 4, n }, e);
	struct json_reader r;
	if (!doc)
		return -1;
	json_open(&r, doc, "outbox record");
	copy_to(p.blob, sizeof p.blob, json_take_string(&r, "blob"));
	p.sealed.blob_n = (uint64_t)json_take_int(&r, "blob_n", 0,
						  JSON_INT_MAX);
	bool done = json_take_int(&r, "done", 0, 1);
	copy_to(p.draft, sizeof p.draft, json_take_string(&r, "draft"));
	struct bytes envelope = json_take_string(&r, "envelope");
	p.gen = (uint64_t)json_take_int(&r, "gen", 0, JSON_INT_MAX);
	copy_to(p.sealed.id, sizeof p.sealed.id, json_take_string(&r, "id"));
	struct bytes name = json_take_string(&r, "name");
	bool sent = json_take_int(&r, "sent", 0, 1);
	uint64_t seq = (uint64_t)json_take_int(&r, "seq", 0, JSON_INT_MAX);
	int rc = json_close(&r, e);
	if (rc == 0) {
		note_outcome(o, &p, done, sent, seq);
		p.name = name.n ? strndup((const char *)name.p, name.n)
				: NULL;
		if (done)
			load_done(o, p.sealed.id);
		else
			load_put(o, &p, at, envelope);
		free(p.name);
	}
	json_free(doc);
	return rc;
}

/* What cannot be read must not keep the rest from being sent. */
static int load_record(void *arg, uint64_t at, struct bytes record,
		       struct err *e)
{
	struct outbox *o = arg;
	if (load_one(o, at, record, e) < 0)
		mount_log(o->m, "a record of the outbox was left out: %s",
			  e->why);
	return 0;
}

static bool is_needed(const struct outbox *o, const char *blob)
{
	const struct post *p = o->first;
	while (p && strcmp(p->blob, blob) != 0)
		p = p->next;
	return p != NULL;
}

/* Sealed, and killed before its record was written: it is sealed again. */
static void sweep_blobs(struct outbox *o)
{
	int fd = openat(o->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return;
	for (struct dirent *de; (de = readdir(d));)
		if (strncmp(de->d_name, ".tmp-", 5) == 0 &&
		    !is_needed(o, de->d_name))
			unlinkat(o->blobs, de->d_name, 0);
	closedir(d);
}

int outbox_load(struct outbox *o, struct err *e)
{
	uint64_t cut = 0;
	o->outcomes = calloc(OUTCOME_SLOTS, sizeof(struct outcome *));
	if (!o->outcomes)
		return err_set(e, ERR_MEMORY, "out of memory");
	o->journal = store_journal(o->m->store, JOURNAL, load_record,
				   o, &cut, e);
	if (!o->journal)
		return -1;
	if (cut)
		mount_log(o->m, "the outbox had a damaged end of %llu bytes: of "
			  "a commit that was never answered, or, where a disk "
			  "lies, of what was queued: look for failed in out/",
			  (unsigned long long)cut);
	else
		sweep_blobs(o);
	return 0;
}

struct outbox_outcome outbox_outcome(struct outbox *o, const char *draft)
{
	const struct outcome *k = outcome_of(o, draft);
	return k ? k->o : (struct outbox_outcome){ 0 };
}

bool outbox_adopt(struct outbox *o, const char *draft, struct outgoing *f)
{
	bool found = false;
	for (struct post *p = o->first; p; p = p->next)
		if (strcmp(p->draft, draft) == 0 && !p->file) {
			p->file = f;
			out_hold(o->m, f);
			found = true;
		}
	return found;
}

void outbox_renew(struct outbox *o)
{
	struct err e;
	uint64_t cut;
	int dir = o->m->store->dir;
	o->written = 0;
	if (syncfs(dir) < 0 ||
	    renameat(dir, JOURNAL, dir, JOURNAL ".old") < 0)
		return;
	struct journal *fresh = store_journal(o->m->store, JOURNAL, NULL, NULL,
					      &cut, &e);
	if (!fresh) {
		mount_failed(o->m, &e);
		unlinkat(dir, JOURNAL, 0);
		renameat(dir, JOURNAL ".old", dir, JOURNAL);
		return;
	}
	unlinkat(dir, JOURNAL ".old", 0);
	journal_close(o->journal);
	o->journal = fresh;
}

void outbox_drop_outcomes(struct outbox *o)
{
	for (size_t s = 0; o->outcomes && s < OUTCOME_SLOTS; s++)
		for (struct outcome *k = o->outcomes[s], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	free(o->outcomes);
	o->outcomes = NULL;
}

void outbox_compact(struct outbox *o)
{
	outbox_drop_outcomes(o);
	if (!o->first)
		outbox_renew(o);
}
