/* SPDX-License-Identifier: MIT
 *
 * Why the order of the writes below is safe:
 *
 * - A header never overwrites the one that a crash would need: until a sync
 *   has made a newer one durable, every header goes to the other slot.
 * - A header is only taken if the file is as long as it says.  So the file is
 *   made long before the header says so, and cut (vault_sync) only after a
 *   durable header says less; in between the surplus is a hole.
 * - What lies past the length may be left of a write that failed or of a
 *   process that was killed.  `stale_tail` says so, and it is zeroed before
 *   the length grows over it.
 *
 * Sectors have no tag: who can write to the disk can garble 16 bytes of a
 * draft or bring old ones back, but neither read nor choose them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/host/file.h"
#include "core/host/vault_parts.h"
#include "core/prim.h"

#define SECTOR VAULT_SECTOR
#define SLOTS VAULT_SLOTS
#define PLAIN (AEAD_SECTOR - AEAD_NONCE - AEAD_TAG)
#define FIXED (8 + 8 + 4)		/* generation, length, record's length */

_Static_assert(FIXED + VAULT_RECORD_MAX <= PLAIN, "a record fits a slot");

/* --- headers --- */

struct head {
	uint64_t generation, size;
	struct buf plain;
	struct bytes record;	/* in plain */
};

static void add_u64be(struct buf *b, uint64_t x)
{
	buf_add_u32be(b, (uint32_t)(x >> 32));
	buf_add_u32be(b, (uint32_t)x);
}

static uint64_t load_u64be(const uint8_t *p)
{
	return (uint64_t)load_u32be(p) << 32 | load_u32be(p + 4);
}

/* A header is bound to its vault and its slot. */
static struct aead *head_aead(const struct vault *v, int slot,
			      const uint8_t *nonce, bool seal)
{
	char aad[64];
	int n = snprintf(aad, sizeof aad, "airlox-vault 1/%s/%d", v->id, slot);

	return (seal ? aead_seal_new : aead_open_new)(v->head_key, nonce, aad,
						      (size_t)n);
}

static int head_seal(const struct vault *v, int slot, uint8_t *out)
{
	cleanup_buf struct buf plain = { 0 };

	add_u64be(&plain, v->generation);
	add_u64be(&plain, v->size);
	buf_add_u32be(&plain, (uint32_t)v->record.len);
	buf_add(&plain, v->record.data, v->record.len);
	uint8_t *pad = buf_room(&plain, PLAIN - plain.len);
	if (!pad)
		return -1;
	memset(pad, 0, PLAIN - plain.len);
	prim_random(out, AEAD_NONCE);
	struct aead *a = head_aead(v, slot, out, true);
	out += AEAD_NONCE;
	int r = a && aead_update(a, out, plain.data, PLAIN) == 0 &&
		aead_seal_final(a, out + PLAIN) == 0 ? 0 : -1;
	aead_free(a);
	return r;
}

static int head_open(const struct vault *v, int slot, const uint8_t *in,
		     struct head *h)
{
	uint8_t *plain = buf_room(&h->plain, PLAIN);
	struct aead *a = head_aead(v, slot, in, false);
	int r = -1;

	in += AEAD_NONCE;
	if (plain && a && aead_update(a, plain, in, PLAIN) == 0 &&
	    aead_open_final(a, in + PLAIN) == 0) {
		h->plain.len = PLAIN;
		h->generation = load_u64be(plain);
		h->size = load_u64be(plain + 8);
		h->record = (struct bytes){ plain + FIXED,
					    load_u32be(plain + 16) };
		r = h->size <= VAULT_BYTES_MAX && h->generation < UINT64_MAX &&
		    h->record.n <= VAULT_RECORD_MAX ? 0 : -1;
	}
	aead_free(a);
	return r;
}

int vault_settle(struct vault *v, struct err *e)
{
	if (fdatasync(v->fd) < 0)
		return err_sys(e, "cannot make a draft durable");
	return 0;
}

int vault_flush_header(struct vault *v, struct err *e)
{
	uint8_t sector[AEAD_SECTOR];

	free(v->batch);	/* the writer pauses here */
	v->batch = NULL;
	if (!v->head_stale)
		return 0;
	if (v->kept >= 0 && !v->kept_durable) {
		if (vault_settle(v, e) < 0)
			return -1;
		v->kept_durable = true;
	}
	int slot = v->kept < 0 ? 0 : SLOTS - 1 - v->kept;
	v->generation++;
	if (head_seal(v, slot, sector) < 0)
		return err_set(e, ERR_MEMORY, "no memory to seal a draft");
	if (file_put_at(v->fd, sector, SECTOR, (uint64_t)slot * SECTOR, e) < 0)
		return -1;
	v->last = slot;
	v->head_stale = false;
	return 0;
}

int vault_sync(struct vault *v, struct err *e)
{
	uint64_t end = vault_sectors_of(v->size);

	if (vault_flush_header(v, e) < 0 || vault_settle(v, e) < 0)
		return -1;
	v->kept = v->last;
	v->kept_durable = true;
	if (v->dir >= 0) {
		if (file_fsync_dir(v->dir, e) < 0)
			return -1;
		close(v->dir);
		v->dir = -1;
	}
	if (v->sectors > end)
		return vault_set_length(v, end, e);
	return 0;
}

/* --- open and close --- */

static bool id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= VAULT_ID_MAX && id[n] == 0;
}

static int set_keys(struct vault *v, const uint8_t session_key[32],
		    const char *session_id)
{
	uint8_t key[AEAD_KEY + AEAD_XTS_KEY];
	char label[8 + VAULT_ID_MAX];

	snprintf(label, sizeof label, "vault/%s", v->id);
	session_local_key(key, sizeof key, session_key, session_id, label);
	memcpy(v->head_key, key, AEAD_KEY);
	v->xts = aead_xts_new(key + AEAD_KEY);
	prim_wipe(key, sizeof key);
	return v->xts ? 0 : -1;
}

static struct vault *vault_new(int dir_fd, const char *id, int flags,
			       const uint8_t session_key[32],
			       const char *session_id, struct err *e)
{
	struct vault *v = id_ok(id) ? calloc(1, sizeof *v) : NULL;

	if (!v) {
		err_set(e, id_ok(id) ? ERR_MEMORY : ERR_INVALID,
			"a draft cannot have this id");
		return NULL;
	}
	v->fd = v->dir = v->kept = v->last = -1;
	strcpy(v->id, id);
	if (set_keys(v, session_key, session_id) < 0) {
		err_set(e, ERR_MEMORY, "no memory for a draft");
		goto fail;
	}
	v->fd = openat(dir_fd, id, flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK |
		       O_CLOEXEC, 0600);
	if (v->fd < 0) {
		if (errno == EEXIST)
			err_set(e, ERR_EXISTS, "draft %s is there already", id);
		else
			err_sys(e, "cannot open draft %s", id);
		goto fail;
	}
	return v;
fail:
	vault_close(v);
	return NULL;
}

/* So that a full disk does not refuse a header: shrinking needs one. */
static int reserve(struct vault *v, struct err *e)
{
	if (fallocate(v->fd, 0, 0, (off_t)vault_place(0)) < 0 &&
	    (errno == ENOSPC || errno == EDQUOT))
		return err_sys(e, "cannot make room for a draft");
	return 0;
}

struct vault *vault_create(int dir_fd, const char *id,
			   const uint8_t session_key[32],
			   const char *session_id, struct err *e)
{
	struct vault *v = vault_new(dir_fd, id, O_CREAT | O_EXCL, session_key,
				    session_id, e);
	if (!v)
		return NULL;
	v->dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	v->head_stale = true;
	if (v->dir < 0) {
		err_sys(e, "cannot open the directory of draft %s", id);
	} else if (vault_set_length(v, 0, e) == 0 && reserve(v, e) == 0 &&
		   vault_flush_header(v, e) == 0) {
		return v;
	}
	unlinkat(dir_fd, id, 0);
	vault_close(v);
	return NULL;
}

/* The file's length in sectors: a piece of one, at the end, does not count,
 * and is cut off when the file is known to be ours. */
static int measure(struct vault *v, struct err *e)
{
	struct stat st;

	if (fstat(v->fd, &st) < 0)
		return err_sys(e, "cannot look at draft %s", v->id);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "draft %s is not a file", v->id);
	if (st.st_size < (off_t)vault_place(0))
		return err_set(e, ERR_DECRYPT, "draft %s is cut short", v->id);
	v->sectors = (uint64_t)st.st_size / SECTOR - SLOTS;
	return 0;
}

/* A header that does not fit the file must not come back when the file has
 * grown: then the one that was taken is written anew, over it. */
static int take_head(struct vault *v, const struct head h[SLOTS],
		     const bool opened[SLOTS], struct err *e)
{
	int best = -1;

	for (int i = 0; i < SLOTS; i++) {
		if (!opened[i])
			continue;
		if (h[i].generation > v->generation)
			v->generation = h[i].generation;
		if (vault_sectors_of(h[i].size) <= v->sectors &&
		    (best < 0 || h[i].generation > h[best].generation))
			best = i;
	}
	if (best < 0)
		return err_set(e, ERR_DECRYPT, "draft %s is damaged, or not "
			       "of this session", v->id);
	v->kept = v->last = best;
	v->size = h[best].size;
	v->stale_tail = true;
	v->head_stale = v->generation != h[best].generation;
	buf_add(&v->record, h[best].record.p, h[best].record.n);
	if (buf_failed(&v->record))
		return err_set(e, ERR_MEMORY, "no memory for a draft");
	return vault_flush_header(v, e);
}

static int load(struct vault *v, struct err *e)
{
	struct head h[SLOTS] = { 0 };
	bool opened[SLOTS] = { false };
	uint8_t slots[SLOTS * AEAD_SECTOR];

	if (measure(v, e) < 0 ||
	    file_get_at(v->fd, slots, sizeof slots, 0, e) < 0)
		return -1;
	for (int i = 0; i < SLOTS; i++)
		opened[i] = head_open(v, i, slots + i * AEAD_SECTOR,
				      &h[i]) == 0;
	int r = take_head(v, h, opened, e);
	if (r == 0)
		r = vault_set_length(v, v->sectors, e);
	for (int i = 0; i < SLOTS; i++)
		buf_free(&h[i].plain);
	return r;
}

struct vault *vault_open(int dir_fd, const char *id,
			 const uint8_t session_key[32],
			 const char *session_id, struct err *e)
{
	struct vault *v = vault_new(dir_fd, id, 0, session_key, session_id, e);

	if (v && load(v, e) < 0) {
		vault_close(v);
		return NULL;
	}
	return v;
}

void vault_close(struct vault *v)
{
	if (!v)
		return;
	if (v->fd >= 0)
		close(v->fd);
	if (v->dir >= 0)
		close(v->dir);
	aead_xts_free(v->xts);
	buf_free(&v->record);
	free(v->batch);
	prim_wipe(v->head_key, sizeof v->head_key);
	free(v);
}

int vault_unlink(int dir_fd, const char *id, struct err *e)
{
	if (!id_ok(id))
		return err_set(e, ERR_INVALID, "a draft cannot have this id");
	if (unlinkat(dir_fd, id, 0) < 0)
		return err_sys(e, "cannot remove draft %s", id);
	return 0;
}

/* --- what it is --- */

const char *vault_id(const struct vault *v) { return v->id; }
uint64_t vault_size(const struct vault *v) { return v->size; }

struct bytes vault_record(const struct vault *v)
{
	return buf_bytes(&v->record);
}

int vault_set_record(struct vault *v, struct bytes record, struct err *e)
{
	struct buf copy = { 0 };	/* record may be a part of the old */

	if (record.n > VAULT_RECORD_MAX)
		return err_set(e, ERR_SIZE, "the record of a draft is too "
			       "large");
	buf_add(&copy, record.p, record.n);
	if (buf_failed(&copy))
		return err_set(e, ERR_MEMORY, "no memory for a draft");
	buf_free(&v->record);
	v->record = copy;
	v->head_stale = true;
	return 0;
}
