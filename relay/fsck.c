/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "relay/fsck.h"
#include "relay/load.h"
#include "relay/state.h"

static int check_mark(int lock, const char *dir, bool look, struct err *e)
{
	static const char mark[] = "airlox-relay data, version 1\n";
	char have[sizeof mark] = "";
	ssize_t n = pread(lock, have, sizeof have - 1, 0);
	if (n == 0 && !look && pwrite(lock, mark, sizeof mark - 1, 0) < 0)
		return err_sys(e, "cannot write %s/lock", dir);
	if (n > 0 && strcmp(have, mark) != 0)
		return err_set(e, ERR_SYS, "%s is not a data directory of "
			       "this version", dir);
	return 0;
}

int fsck_open_data(const char *dir, bool look, struct err *e)
{
	if (!look && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "cannot make %s", dir);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot open %s", dir);
	int lock = openat(fd, "lock", O_CLOEXEC |
			  (look ? O_RDONLY : O_RDWR | O_CREAT), 0600);
	if (lock < 0)
		return err_sys(e, "cannot open %s/lock", dir);
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_LOCKED, "another relay is running on "
			       "%s; stop it, or %s", dir, look ?
			       "look at a copy" : "give another --data");
	if (check_mark(lock, dir, look, e) < 0)
		return -1;
	return fd;	/* both stay open for the life of the process */
}

struct looking {
	struct state st;
	FILE *out;
	size_t items, jobs, blobs, faults;
};

static void say(struct looking *lk, const struct session *s,
		const struct item *it, const char *what)
{
	fprintf(lk->out, "session %s, item %s, event %llu: %s\n", s->id, it->id,
		(unsigned long long)it->seq, what);
	lk->faults++;
}

/* NULL, or what is wrong with the file; its hash if nothing is. */
static const char *hash_file(struct looking *lk, const struct item *it,
			     uint8_t got[HASH_SIZE])
{
	struct err e;
	struct stat sb;
	uint8_t part[65536];
	int fd = blob_open(lk->st.blobs, &it->file, &e);
	if (fd < 0 || fstat(fd, &sb) < 0) {
		if (fd >= 0)
			close(fd);
		return "its blob is missing";
	}
	const char *why = NULL;
	if ((uint64_t)sb.st_size != it->blob_n + BLOB_HEAD_N)
		why = "its blob has another length";
	else if (blob_check_head(fd) < 0)
		why = "its blob was written by another version";
	struct hash *h = hash_new();
	off_t at = BLOB_HEAD_N;
	for (ssize_t n = 1; !why && n > 0; at += n) {
		n = pread(fd, part, sizeof part, at);
		if (n < 0 || !h)
			why = "its blob cannot be read";
		else
			hash_add(h, part, (size_t)n);
	}
	if (h)
		hash_final(h, got);
	hash_free(h);
	close(fd);
	return why;
}

static const char *hash_small(struct looking *lk, const struct item *it,
			      uint8_t got[HASH_SIZE])
{
	cleanup_buf struct buf b = { 0 };
	struct err e;
	if (store_blob(lk->st.store, &it->loc, &b, &e) < 0)
		return "its blob cannot be read";
	hash_sha256(got, b.data, b.len);
	return NULL;
}

/* The signature over header and blob, from the envelope as it was posted. */
static const char *check_envelope(struct bytes data, const struct item *it)
{
	struct err e;
	struct json_reader r;
	struct envelope v;
	const char *why = NULL;
	struct json *doc = json_parse(data, &e);
	if (!doc)
		return "its record is no JSON";
	json_open(&r, doc, "item");
	struct bytes text = json_take_string(&r, "envelope");
	if (json_close(&r, &e) < 0 || envelope_parse(&v, text, &e) < 0) {
		json_free(doc);
		return "its envelope is malformed";
	}
	if (strcmp(v.header.id, it->id) != 0 ||
	    envelope_verify(&v, it->sha256, &e) < 0)
		why = "its signature is not right";
	envelope_free(&v);
	json_free(doc);
	return why;
}

static void look_at_item(struct looking *lk, struct session *s,
			 const struct item *it)
{
	cleanup_buf struct buf b = { 0 };
	uint8_t got[HASH_SIZE] = { 0 };
	struct fact f;
	struct err e;
	lk->items++;
	lk->jobs += it->job != NULL;
	if (store_read(lk->st.store, &s->rec[s->event[it->seq]], &b, &e) < 0 ||
	    fact_parse(&f, buf_bytes(&b), &e) < 0) {
		say(lk, s, it, "its record cannot be read");
		return;
	}
	const char *why = check_envelope(f.data, it);
	if (!why && it->present) {
		lk->blobs++;
		why = it->file.name ? hash_file(lk, it, got) :
				      hash_small(lk, it, got);
		if (!why && memcmp(got, it->sha256, HASH_SIZE) != 0)
			why = "its blob is not what was signed";
	}
	if (why)
		say(lk, s, it, why);
}

static void look_at_all(struct looking *lk)
{
	for (size_t i = 0; i < lk->st.bucket_n; i++)
		for (struct session *s = lk->st.bucket[i]; s; s = s->next)
			for (uint32_t k = 0; !s->closed && k < s->bucket_n;
			     k++)
				for (struct item *it = s->item[k]; it;
				     it = it->next)
					look_at_item(lk, s, it);
}

static int open_all(struct looking *lk, const char *dir, struct err *e)
{
	struct stat sb;
	int fd = fsck_open_data(dir, true, e);
	if (fd < 0)
		return -1;
	if (fstatat(fd, "log", &sb, 0) < 0 || fstatat(fd, "blobs", &sb, 0) < 0)
		return err_sys(e, "%s is no data directory of a relay", dir);
	if (state_init(&lk->st, &limit_defaults, e) < 0)
		return -1;
	lk->st.store = store_open(fd, e);
	lk->st.blobs = blobs_open(fd, e);
	if (!lk->st.store || !lk->st.blobs)
		return -1;
	store_look_only(lk->st.store);
	blobs_look_only(lk->st.blobs);
	lk->st.look = true;
	return 0;
}

int fsck_run(const char *dir, FILE *out, struct err *e)
{
	static struct looking lk;
	lk = (struct looking){ .out = out };
	if (open_all(&lk, dir, e) < 0)
		return -1;
	if (load_state(&lk.st, e) < 0) {
		fprintf(out, "%s\n", e->why);
		return err_set(e, ERR_INVALID, "%s cannot be used as it is",
			       dir);
	}
	look_at_all(&lk);
	fprintf(out, "%zu sessions, %zu items, %zu jobs, %zu blobs: "
		"%zu faults\n", lk.st.session_n, lk.items, lk.jobs,
		lk.blobs, lk.faults);
	store_close(lk.st.store);
	state_free(&lk.st);
	blobs_close(lk.st.blobs);
	return lk.faults ? err_set(e, ERR_INVALID, "of what was acknowledged, "
				   "%zu items are lost", lk.faults) : 0;
}
