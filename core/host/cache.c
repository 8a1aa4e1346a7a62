/* SPDX-License-Identifier: MIT
 *
 * Another program writes here too, and its user may not be careful: names are
 * checked, symlinks refused, files read with a cap. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "core/enc.h"
#include "core/host/cache.h"
#include "core/json.h"

#define IDENTITY_MAX (16 * 1024)
#define REFRESH_CHUNK ((size_t)256 * 1024)

char *cache_root(const char *root, struct err *e)
{
	if (!root)
		return file_home("XDG_CACHE_HOME", ".cache", "airlox", e);
	char *copy = strdup(root);
	if (!copy)
		err_set(e, ERR_MEMORY, "out of memory");
	return copy;
}

static int open_root(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot open %s", path);
	return fd;
}

struct cache *cache_open(const char *root, const char *session_id,
			 struct err *e)
{
	cleanup_free char *base = cache_root(root, e);
	struct cache *c = calloc(1, sizeof *c);
	cleanup_fd int top = -1;

	if (!base || !c) {
		free(c);
		return NULL;
	}
	c->dir = c->blobs = -1;
	if (asprintf(&c->path, "%s/%s", base, session_id) < 0)
		c->path = NULL;
	if (!c->path)
		err_set(e, ERR_MEMORY, "out of memory");
	else if (file_mkdirs(base, e) == 0 &&
		 (top = open_root(base, e)) >= 0 &&
		 (c->dir = file_make_dir(top, session_id, e)) >= 0 &&
		 (c->blobs = file_make_dir(c->dir, "blobs", e)) >= 0) {
		if (fchmod(c->dir, 0700) == 0)
			return c;
		err_sys(e, "cannot make %s private", c->path);
	}
	cache_free(c);
	return NULL;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	if (c->dir >= 0)
		close(c->dir);
	if (c->blobs >= 0)
		close(c->blobs);
	free(c->path);
	free(c);
}

int cache_load_manifest(struct cache *c, struct buf *out, struct err *e)
{
	return file_read(c->dir, "manifest.json", MANIFEST_MAX, out, e);
}

int cache_save_manifest(struct cache *c, struct bytes signed_manifest,
			struct err *e)
{
	return file_write(c->dir, "manifest.json", signed_manifest, 0644, e);
}

/* --- identity --- */

static void identity_name(char name[32], enum role role)
{
	snprintf(name, 32, "identity-%s.json", role_word(role));
}

static const char *member(const cJSON *doc, const char *name)
{
	const char *s = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(doc, name));
	return s ? s : "";
}

static int identity_read(struct identity *id, const cJSON *doc)
{
	const char *seed = member(doc, "participant_seed");
	const char *token = member(doc, "token");
	const char *role = member(doc, "role"), *base = member(doc, "base_url");
	enum role named = id->role;

	if (enc_hex_decode(id->seed, PRIM_SEED, bytes_str(seed)) < 0 ||
	    !*token || strlen(token) > REST_TOKEN_MAX ||
	    (*role && role_parse(&named, bytes_str(role)) < 0) ||
	    named != id->role)
		return -1;
	strcpy(id->token, token);
	id->base_url = *base ? strdup(base) : NULL;
	return *base && !id->base_url ? -1 : 0;
}

static void wipe_strings(cJSON *doc)
{
	for (cJSON *v = doc ? doc->child : NULL; v; v = v->next)
		if (v->valuestring)
			prim_wipe(v->valuestring, strlen(v->valuestring));
}

int cache_load_identity(struct cache *c, enum role role, struct identity *id,
			struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	char name[32];

	*id = (struct identity){ .role = role };
	identity_name(name, role);
	int r = file_read(c->dir, name, IDENTITY_MAX, &text, e);
	if (r)
		return r;
	cJSON *doc = cJSON_ParseWithLength((const char *)text.data, text.len);
	r = identity_read(id, doc);
	wipe_strings(doc);
	cJSON_Delete(doc);
	if (r < 0) {
		identity_free(id);
		return err_set(e, ERR_INVALID, "%s/%s is damaged; remove it to "
			       "join as a new participant", c->path, name);
	}
	return 0;
}

int cache_save_identity(struct cache *c, const struct identity *id,
			struct err *e)
{
	cleanup_buf struct buf out = { 0 };
	char name[32], seed[2 * PRIM_SEED + 1];

	enc_hex(seed, id->seed, PRIM_SEED);
	buf_addf(&out, "{\"participant_seed\":\"%s\",\"token\":", seed);
	json_put_string(&out, bytes_str(id->token));
	buf_addf(&out, ",\"role\":\"%s\"", role_word(id->role));
	if (id->base_url) {
		buf_add_str(&out, ",\"base_url\":");
		json_put_string(&out, bytes_str(id->base_url));
	}
	buf_add_byte(&out, '}');
	prim_wipe(seed, sizeof seed);
	if (buf_failed(&out))
		return err_set(e, ERR_MEMORY, "out of memory");
	identity_name(name, id->role);
	return file_write(c->dir, name, buf_bytes(&out), 0600, e);
}

void identity_free(struct identity *id)
{
	free(id->base_url);
	prim_wipe(id, sizeof *id);
}

/* --- blobs --- */

int cache_open_blob(struct cache *c, const char *item_id, struct err *e)
{
	struct stat st;
	if (!item_is_id(bytes_str(item_id)))
		return err_set(e, ERR_INVALID, "that is no item id");
	int fd = openat(c->blobs, item_id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
			O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	/* a link is as good as nothing: the next fetch replaces it */
	if (fd < 0 && errno != ENOENT && errno != ELOOP)
		return err_sys(e, "cannot open the blob of item %s", item_id);
	if (fd >= 0)
		close(fd);
	return err_set(e, ERR_NOT_FOUND, "item %s is not in the cache",
		       item_id);
}

int cache_stage(struct cache *c, struct cache_stage *s, struct err *e)
{
	s->fd = file_begin(c->blobs, s->tmp, e);
	return s->fd < 0 ? -1 : 0;
}

int cache_keep(struct cache *c, struct cache_stage *s, const char *item_id,
	       struct err *e)
{
	if (!item_is_id(bytes_str(item_id)))
		return err_set(e, ERR_INVALID, "that is no item id");
	return file_keep(c->blobs, s->fd, s->tmp, item_id, e);
}

/* After a failed sync the kernel calls pages clean that it could not write: so
 * that the next try writes them, they are written once more as they are read.
 * Were they lost, a read of the item sees it by its hashes. */
static void refresh(int fd)
{
	char path[32];
	cleanup_free uint8_t *chunk = malloc(REFRESH_CHUNK);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	cleanup_fd int out = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;
	if (!chunk || out < 0)
		return;
	for (uint64_t at = 0; (n = pread(fd, chunk, REFRESH_CHUNK,
					 (off_t)at)) > 0; at += (uint64_t)n)
		if (file_put_at(out, chunk, (size_t)n, at, NULL) < 0)
			return;
}

/* The first sync takes the others' metadata along, so that many at once cost
 * little more than one. */
int cache_settle(struct cache *c, const int *fds, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (fdatasync(fds[i]) < 0) {
			err_sys(e, "an item cannot be made durable");
			for (; i < n; i++)
				refresh(fds[i]);
			return -1;
		}
	if (n && fsync(c->blobs) < 0)
		return err_sys(e, "an item cannot be made durable");
	return 0;
}

void cache_drop(struct cache *c, struct cache_stage *s)
{
	file_discard(c->blobs, s->tmp);
}

void cache_remove_blob(struct cache *c, const char *item_id)
{
	if (item_is_id(bytes_str(item_id)))
		unlinkat(c->blobs, item_id, 0);
}

uint64_t cache_used(const struct cache *c)
{
	uint64_t used = 0;
	struct stat st;
	int fd = openat(c->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return 0;
	for (struct dirent *de; (de = readdir(d));)
		if (fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			used += (uint64_t)st.st_size;
	closedir(d);
	return used;
}

struct old_blob {
	struct timespec at;
	uint64_t n;
	char id[ITEM_ID + 1];
};

static int by_age(const void *a, const void *b)
{
	const struct timespec *x = &((const struct old_blob *)a)->at;
	const struct timespec *y = &((const struct old_blob *)b)->at;
	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static size_t list_blobs(DIR *d, struct old_blob **out,
			 bool (*may)(void *arg, const char *item_id),
			 void *arg)
{
	size_t n = 0, cap = 0;
	struct stat st;
	for (struct dirent *de; (de = readdir(d));) {
		if (!item_is_id(bytes_str(de->d_name)) ||
		    fstatat(dirfd(d), de->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || !may(arg, de->d_name))
			continue;
		if (n == cap) {
			cap = cap ? 2 * cap : 64;
			void *v = realloc(*out, cap * sizeof **out);
			if (!v)
				break;
			*out = v;
		}
		struct old_blob *b = &(*out)[n++];
		b->at = st.st_mtim;
		b->n = (uint64_t)st.st_size;
		strcpy(b->id, de->d_name);
	}
	return n;
}

uint64_t cache_make_room(struct cache *c, uint64_t n,
			 bool (*may)(void *arg, const char *item_id),
			 void *arg)
{
	struct old_blob *v = NULL;
	uint64_t gone = 0;
	int fd = openat(c->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return 0;
	size_t count = list_blobs(d, &v, may, arg);
	if (count)
		qsort(v, count, sizeof *v, by_age);
	for (size_t i = 0; i < count && gone < n; i++)
		if (unlinkat(c->blobs, v[i].id, 0) == 0)
			gone += v[i].n;
	free(v);
	closedir(d);
	return gone;
}

/* --- the end --- */

bool cache_leave(struct cache *c, enum role role)
{
	static const enum role roles[] = { ROLE_OWNER, ROLE_SENDER,
					   ROLE_OBSERVER, ROLE_RUNNER };
	char name[32];
	bool last = true;
	identity_name(name, role);
	unlinkat(c->dir, name, 0);
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		identity_name(name, roles[i]);
		last &= faccessat(c->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	}
	return last;
}

int cache_remove(const char *root, const char *session_id, struct err *e)
{
	cleanup_free char *base = cache_root(root, e);
	if (!base)
		return -1;
	cleanup_fd int top = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return errno == ENOENT ? 0 : err_sys(e, "cannot open %s", base);
	if (!key_is_session_id(bytes_str(session_id)))
		return err_set(e, ERR_INVALID, "that is no session id");
	return file_remove_tree(top, session_id, e);
}

static bool is_over(int top, const char *name, int64_t now_ms)
{
	cleanup_buf struct buf text = { 0 };
	struct manifest m;
	cleanup_fd int dir = file_open_dir(top, name, NULL);
	if (dir < 0 || file_read(dir, "manifest.json", MANIFEST_MAX, &text,
				 NULL) != 0 ||
	    manifest_parse(&m, buf_bytes(&text), NULL) < 0)
		return false;
	bool over = !strcmp(m.session_id, name) &&
		    m.expires_at_ms != MANIFEST_FOREVER &&
		    m.expires_at_ms <= now_ms;
	manifest_free(&m);
	return over;
}

void cache_sweep(const char *root, int64_t now_ms)
{
	cleanup_free char *base = cache_root(root, NULL);
	DIR *d = base ? opendir(base) : NULL;
	if (!d)
		return;
	for (struct dirent *de; (de = readdir(d));)
		if (key_is_session_id(bytes_str(de->d_name)) &&
		    is_over(dirfd(d), de->d_name, now_ms))
			file_remove_tree(dirfd(d), de->d_name, NULL);
	closedir(d);
}
