/* SPDX-License-Identifier: MIT
 *
 * `lock` guards everything but fd, key and dir; it is never held over an
 * fdatasync, so that appends go on while one is on its way.
 *
 * After a failed fdatasync the kernel forgets the pages that it could not
 * write, and a second one would succeed without them.  So what was not synced
 * is then read back, held against its tags, and written again: what opens is
 * what was appended. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/aead.h"
#include "core/host/file.h"
#include "core/host/journal.h"
#include "core/prim.h"

#define MAGIC "airlox-journal 1\n"
#define MAGIC_N (sizeof MAGIC - 1)
#define LENGTH 4
#define EXTRA (AEAD_NONCE + AEAD_TAG)

struct journal {
	int fd;
	uint8_t key[AEAD_KEY];
	pthread_mutex_t lock;
	pthread_cond_t synced_more;
	uint64_t *at;		/* where each record starts, by ordinal */
	size_t n, cap;
	uint64_t end;		/* of the last whole record */
	bool torn;		/* the file has more than that */
	uint64_t synced;	/* durable up to here */
	bool syncing;		/* somebody is in fdatasync */
	int sync_errno;		/* of the newest that failed */
	uint64_t failures;	/* how many did */
	bool unsure;		/* pages from `synced` on may be forgotten */
};

static struct aead *record_aead(const struct journal *j, uint64_t ordinal,
				const uint8_t *nonce, bool seal)
{
	uint8_t aad[8];

	for (int i = 0; i < 8; i++)
		aad[i] = (uint8_t)(ordinal >> (56 - 8 * i));
	return (seal ? aead_seal_new : aead_open_new)(j->key, nonce, aad,
						      sizeof aad);
}

static int record_seal(const struct journal *j, uint64_t ordinal,
		       struct bytes record, struct buf *out)
{
	buf_add_u32be(out, (uint32_t)(record.n + EXTRA));
	uint8_t *to = buf_room(out, record.n + EXTRA);
	if (!to)
		return -1;
	prim_random(to, AEAD_NONCE);
	struct aead *a = record_aead(j, ordinal, to, true);
	to += AEAD_NONCE;
	int r = a && aead_update(a, to, record.p, record.n) == 0 &&
		aead_seal_final(a, to + record.n) == 0 ? 0 : -1;
	aead_free(a);
	out->len += record.n + EXTRA;
	return r;
}

/* What follows the length, opened where it is. */
static int record_open(const struct journal *j, uint64_t ordinal,
		       struct buf *sealed, struct bytes *record)
{
	size_t n = sealed->len - EXTRA;
	uint8_t *text = sealed->data + AEAD_NONCE;
	struct aead *a = record_aead(j, ordinal, sealed->data, false);
	int r = a && aead_update(a, text, text, n) == 0 &&
		aead_open_final(a, text + n) == 0 ? 0 : -1;

	aead_free(a);
	*record = (struct bytes){ text, n };
	return r;
}

/* The sealed bytes of the record at `at`: 0, or 1 where none is whole before
 * `end`. */
static int record_get(const struct journal *j, uint64_t at, uint64_t end,
		      struct buf *out, struct err *e)
{
	uint8_t be[LENGTH];

	if (end - at < LENGTH)
		return 1;
	if (file_get_at(j->fd, be, LENGTH, at, e) < 0)
		return -1;
	size_t n = load_u32be(be);
	if (n < EXTRA || n > JOURNAL_RECORD_MAX + EXTRA ||
	    n > end - at - LENGTH)
		return 1;
	buf_reset(out);
	if (!buf_room(out, n))
		return err_set(e, ERR_MEMORY, "no memory for a record");
	out->len = n;
	return file_get_at(j->fd, out->data, n, at + LENGTH, e);
}

static int remember(struct journal *j, uint64_t at)
{
	if (j->n == j->cap) {
		size_t cap = j->cap ? 2 * j->cap : 64;
		uint64_t *p = realloc(j->at, cap * sizeof *p);
		if (!p)
			return -1;
		j->at = p;
		j->cap = cap;
	}
	j->at[j->n++] = at;
	return 0;
}

/* --- open --- */

typedef int each_fn(void *arg, uint64_t at, struct bytes record,
		    struct err *e);

static int replay(struct journal *j, uint64_t size, each_fn *each, void *arg,
		  struct err *e)
{
	cleanup_buf struct buf sealed = { 0 };
	struct bytes record;

	for (;;) {
		int r = record_get(j, j->end, size, &sealed, e);
		if (r < 0)
			return -1;
		if (r > 0 || record_open(j, j->n, &sealed, &record) < 0)
			return 0;
		uint64_t next = j->end + LENGTH + sealed.len;
		if (remember(j, j->end) < 0)
			return err_set(e, ERR_MEMORY, "no memory for an index");
		if (each && each(arg, j->end, record, e) < 0)
			return -1;
		j->end = next;
	}
}

/* A file that holds less than the magic was being made. */
static int begin(struct journal *j, int dir_fd, uint64_t size, struct err *e)
{
	char magic[MAGIC_N];
	size_t n = size < MAGIC_N ? (size_t)size : MAGIC_N;

	if (file_get_at(j->fd, magic, n, 0, e) < 0)
		return -1;
	if (memcmp(magic, MAGIC, n) != 0)
		return err_set(e, ERR_INVALID, "it is no journal of this "
			       "version; move it away to begin a new one");
	j->end = MAGIC_N;
	if (size >= MAGIC_N)
		return 0;
	if (ftruncate(j->fd, 0) < 0)
		return err_sys(e, "cannot cut it");
	if (file_put_at(j->fd, MAGIC, MAGIC_N, 0, e) < 0)
		return -1;
	if (fdatasync(j->fd) < 0)
		return err_sys(e, "cannot make it durable");
	return file_fsync_dir(dir_fd, e);
}

static int load(struct journal *j, int dir_fd, each_fn *each, void *arg,
		uint64_t *cut, struct err *e)
{
	struct stat st;

	if (fstat(j->fd, &st) < 0)
		return err_sys(e, "cannot look at it");
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "it is not a regular file");
	uint64_t size = (uint64_t)st.st_size;
	if (begin(j, dir_fd, size, e) < 0)
		return -1;
	if (size < MAGIC_N) {
		*cut = size;
		return 0;
	}
	if (replay(j, size, each, arg, e) < 0)
		return -1;
	*cut = size - j->end;
	if (*cut && ftruncate(j->fd, (off_t)j->end) < 0)
		return err_sys(e, "cannot cut its damaged end");
	return 0;
}

static struct journal *journal_new(const char *name,
				   const uint8_t session_key[32],
				   const char *session_id)
{
	struct journal *j = calloc(1, sizeof *j);
	cleanup_buf struct buf label = { 0 };

	buf_addf(&label, "journal/%s", name);
	const char *s = buf_cstr(&label);
	if (!j || !s) {
		free(j);
		return NULL;
	}
	session_local_key(j->key, sizeof j->key, session_key, session_id, s);
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->synced_more, NULL);
	j->fd = -1;
	return j;
}

struct journal *journal_open(int dir_fd, const char *name,
			     const uint8_t session_key[32],
			     const char *session_id, each_fn *each, void *arg,
			     uint64_t *cut, struct err *e)
{
	struct journal *j = journal_new(name, session_key, session_id);
	uint64_t dropped = 0;

	if (!j) {
		err_set(e, ERR_MEMORY, "no memory for %s", name);
		return NULL;
	}
	j->fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW |
		       O_NONBLOCK | O_CLOEXEC, 0600);
	if (j->fd < 0) {
		err_sys(e, "cannot open %s", name);
	} else if (load(j, dir_fd, each, arg, &dropped, e) < 0) {
		err_prefix(e, "%s", name);
	} else {
		if (cut)
			*cut = dropped;
		return j;
	}
	journal_close(j);
	return NULL;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	pthread_cond_destroy(&j->synced_more);
	pthread_mutex_destroy(&j->lock);
	free(j->at);
	prim_wipe(j->key, sizeof j->key);
	free(j);
}

/* --- append, sync, read --- */

static int append_locked(struct journal *j, struct bytes record, uint64_t *at,
			 struct err *e)
{
	cleanup_buf struct buf sealed = { 0 };

	if (j->torn && ftruncate(j->fd, (off_t)j->end) < 0)
		return err_sys(e, "cannot cut a torn record");
	j->torn = false;
	if (record_seal(j, j->n, record, &sealed) < 0 ||
	    remember(j, j->end) < 0)
		return err_set(e, ERR_MEMORY, "no memory for a record");
	if (file_put_at(j->fd, sealed.data, sealed.len, j->end, e) < 0) {
		j->n--;
		j->torn = ftruncate(j->fd, (off_t)j->end) < 0;
		return -1;
	}
	if (at)
		*at = j->end;
	j->end += sealed.len;
	return 0;
}

int journal_append(struct journal *j, struct bytes record, uint64_t *at,
		   struct err *e)
{
	if (record.n > JOURNAL_RECORD_MAX)
		return err_set(e, ERR_SIZE, "a record is too large");
	pthread_mutex_lock(&j->lock);
	int r = append_locked(j, record, at, e);
	pthread_mutex_unlock(&j->lock);
	return r;
}

/* Whole records from `synced` on, once more to where they are. */
static int rewrite(struct journal *j, struct err *e)
{
	cleanup_buf struct buf sealed = { 0 };
	size_t i = j->n;

	while (i && j->at[i - 1] >= j->synced)
		i--;
	for (; i < j->n; i++) {
		cleanup_buf struct buf copy = { 0 };
		struct bytes record;
		int r = record_get(j, j->at[i], j->end, &sealed, e);
		if (r < 0)
			return -1;
		buf_add_u32be(&copy, (uint32_t)sealed.len);
		buf_add(&copy, sealed.data, sealed.len);
		if (r > 0 || buf_failed(&copy) ||
		    record_open(j, i, &sealed, &record) < 0)
			return err_set(e, ERR_SYS, "the disk lost a record: "
				       "mount again");
		if (file_put_at(j->fd, copy.data, copy.len, j->at[i], e) < 0)
			return -1;
	}
	return 0;
}

/* The first to come syncs for all that is there; who comes meanwhile waits,
 * and the first of them syncs for all of those. */
static int sync_locked(struct journal *j, struct err *e)
{
	uint64_t end = j->end;

	if (j->unsure && rewrite(j, e) < 0)
		return -1;
	j->unsure = false;
	j->syncing = true;
	pthread_mutex_unlock(&j->lock);
	int failed = fdatasync(j->fd) < 0 ? errno : 0;
	pthread_mutex_lock(&j->lock);
	j->syncing = false;
	if (failed) {
		j->sync_errno = failed;
		j->failures++;
		j->unsure = true;
	} else {
		j->synced = end;
	}
	pthread_cond_broadcast(&j->synced_more);
	return 0;
}

int journal_sync(struct journal *j, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&j->lock);
	uint64_t want = j->end, failures = j->failures;
	while (rc == 0 && j->synced < want && j->failures == failures) {
		if (j->syncing)
			pthread_cond_wait(&j->synced_more, &j->lock);
		else
			rc = sync_locked(j, e);
	}
	bool failed = rc == 0 && j->synced < want;
	int error = j->sync_errno;
	pthread_mutex_unlock(&j->lock);
	if (!failed)
		return rc;
	errno = error;
	return err_sys(e, "cannot make a record durable");
}

static int ordinal_of(struct journal *j, uint64_t at, uint64_t *ordinal,
		      uint64_t *end)
{
	size_t low = 0, high;

	pthread_mutex_lock(&j->lock);
	*end = j->end;
	for (high = j->n; low < high;) {
		size_t mid = low + (high - low) / 2;
		if (j->at[mid] < at)
			low = mid + 1;
		else
			high = mid;
	}
	bool found = low < j->n && j->at[low] == at;
	pthread_mutex_unlock(&j->lock);
	*ordinal = low;
	return found ? 0 : -1;
}

int journal_read(struct journal *j, uint64_t at, struct buf *out,
		 struct err *e)
{
	cleanup_buf struct buf sealed = { 0 };
	struct bytes record;
	uint64_t ordinal, end;

	if (ordinal_of(j, at, &ordinal, &end) < 0)
		return err_set(e, ERR_INVALID, "no record is there");
	int r = record_get(j, at, end, &sealed, e);
	if (r < 0)
		return -1;
	if (r > 0 || record_open(j, ordinal, &sealed, &record) < 0)
		return err_set(e, ERR_DECRYPT, "a record was damaged since "
			       "it was written");
	buf_add(out, record.p, record.n);
	if (buf_failed(out))
		return err_set(e, ERR_MEMORY, "no memory for a record");
	return 0;
}
