/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/store.h"
#include "core/enc.h"
#include "core/host/file.h"
#include "core/json.h"
#include "core/manifest.h"

char *store_root(const char *cache_root, struct err *e)
{
	if (!cache_root)
		return file_home("XDG_STATE_HOME", ".local/state", "airloxfs",
				 e);
	struct buf b = { 0 };
	buf_addf(&b, "%s/state", cache_root);
	return buf_steal(&b);
}

static int take_lock(struct store *s, const char *mount_path, char **where,
		     struct err *e)
{
	s->lock_fd = file_lock(s->dir, "lock", e);
	if (s->lock_fd < 0) {
		struct buf b = { 0 };
		if (file_read(s->dir, "mount", 4096, &b, NULL) == 0)
			*where = buf_steal(&b);
		buf_free(&b);
		return -1;
	}
	return file_write(s->dir, "mount", bytes_str(mount_path), 0600, e);
}

static int open_dirs(struct store *s, const char *root, struct err *e)
{
	struct buf b = { 0 };
	const char *role = strrchr(s->path, '/') + 1;
	buf_addf(&b, "%s/%s", root, s->session_id);
	char *parent = buf_steal(&b);
	int rc = -1;
	cleanup_fd int up = -1;
	if (!parent)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (file_mkdirs(parent, e) == 0 &&
	    (up = open(parent, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) < 0)
		err_sys(e, "cannot open %s", parent);
	else if (up >= 0 && (s->dir = file_make_dir(up, role, e)) >= 0 &&
		 (s->drafts = file_make_dir(s->dir, "drafts", e)) >= 0)
		rc = 0;
	free(parent);
	return rc;
}

struct store *store_open(const char *cache_root, const struct invite *v,
			 const char *mount_path, char **where, struct err *e)
{
	*where = NULL;
	struct store *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	s->dir = s->drafts = s->lock_fd = -1;
	s->session_key = prim_secret_alloc(sizeof v->keys.session_key);
	char *root = s->session_key ? store_root(cache_root, e) : NULL;
	if (!s->session_key)
		err_set(e, ERR_MEMORY, "out of memory");
	if (!root)
		goto fail;
	memcpy(s->session_key, v->keys.session_key,
	       sizeof v->keys.session_key);
	strcpy(s->session_id, v->session_id);
	struct buf b = { 0 };
	buf_addf(&b, "%s/%s/%s", root, v->session_id, role_word(v->role));
	s->path = buf_steal(&b);
	if (!s->path || open_dirs(s, root, e) < 0 ||
	    take_lock(s, mount_path, where, e) < 0)
		goto fail;
	free(root);
	return s;
fail:
	free(root);
	store_close(s);
	return NULL;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->drafts >= 0)
		close(s->drafts);
	if (s->dir >= 0)
		close(s->dir);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	prim_secret_free(s->session_key);
	free(s->path);
	free(s);
}

void store_discard_empty(struct store *s)
{
	if (unlinkat(s->dir, "drafts", AT_REMOVEDIR) < 0)
		return;
	if (faccessat(s->dir, "identity", F_OK, 0) == 0 ||
	    faccessat(s->dir, "index", F_OK, 0) == 0)
		return;
	unlinkat(s->dir, "mount", 0);
	unlinkat(s->dir, "lock", 0);
	char *slash = strrchr(s->path, '/');
	if (rmdir(s->path) == 0) {
		*slash = 0;
		rmdir(s->path);
		*slash = '/';
	}
}

struct vault *store_draft_new(struct store *s, struct err *e)
{
	uint8_t raw[10];
	char id[24] = "d-";
	prim_random(raw, sizeof raw);
	enc_hex(id + 2, raw, sizeof raw);
	return vault_create(s->drafts, id, s->session_key, s->session_id, e);
}

struct vault *store_draft_open(struct store *s, const char *id, struct err *e)
{
	return vault_open(s->drafts, id, s->session_key, s->session_id, e);
}

void store_draft_remove(struct store *s, const char *id)
{
	vault_unlink(s->drafts, id, NULL);
}

void store_drafts(struct store *s, void (*each)(void *arg, const char *id),
		  void *arg)
{
	int fd = dup(s->drafts);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	rewinddir(d);
	for (struct dirent *ent; (ent = readdir(d));)
		if (strncmp(ent->d_name, "d-", 2) == 0)
			each(arg, ent->d_name);
	closedir(d);
}

struct vault *store_vault(struct store *s, const char *name, bool fresh,
			  struct err *e)
{
	if (fresh)
		vault_unlink(s->dir, name, NULL);
	struct vault *v = fresh ? NULL :
		vault_open(s->dir, name, s->session_key, s->session_id, e);
	if (v)
		return v;
	/* Damaged or not there: a log is not worth refusing the mount. */
	vault_unlink(s->dir, name, NULL);
	return vault_create(s->dir, name, s->session_key, s->session_id, e);
}

struct journal *store_journal(struct store *s, const char *name,
			      int (*each)(void *arg, uint64_t at,
					  struct bytes record, struct err *e),
			      void *arg, uint64_t *cut, struct err *e)
{
	return journal_open(s->dir, name, s->session_key, s->session_id, each,
			    arg, cut, e);
}

/* --- the identity --- */

static int keep_record(void *arg, uint64_t at, struct bytes record,
		       struct err *e)
{
	(void)at, (void)e;
	struct buf *b = arg;
	buf_reset(b);
	buf_add(b, record.p, record.n);
	return 0;
}

int store_save_identity(struct store *s, const struct identity *id,
			struct err *e)
{
	cleanup_buf struct buf old = { 0 }, b = { 0 };
	uint64_t cut;
	struct journal *j = store_journal(s, "identity", keep_record, &old,
					  &cut, e);
	if (!j)
		return -1;
	buf_add_str(&b, "{");
	json_put_key(&b, "base_url");
	json_put_string(&b, bytes_str(id->base_url ? id->base_url : ""));
	json_put_key(&b, "seed");
	json_put_b64(&b, id->seed, sizeof id->seed);
	json_put_key(&b, "token");
	json_put_string(&b, bytes_str(id->token));
	buf_add_str(&b, "}");
	int rc = 0;
	if (!bytes_eq(buf_bytes(&old), buf_bytes(&b)) &&
	    (journal_append(j, buf_bytes(&b), &(uint64_t){ 0 }, e) < 0 ||
	     journal_sync(j, e) < 0))
		rc = -1;
	journal_close(j);
	return rc;
}

static int parse_identity(struct bytes in, struct identity *id)
{
	struct err e;
	struct json *doc = json_parse(in, &e);
	struct json_reader r;
	if (!doc)
		return 1;
	json_open(&r, doc, "identity");
	struct bytes base = json_take_string(&r, "base_url");
	json_take_fixed(&r, "seed", id->seed, sizeof id->seed);
	struct bytes token = json_take_string(&r, "token");
	int rc = json_close(&r, &e) < 0 || token.n > REST_TOKEN_MAX;
	if (!rc) {
		memcpy(id->token, token.p, token.n);
		id->token[token.n] = 0;
		id->base_url = strndup((const char *)base.p, base.n);
	}
	json_free(doc);
	return rc;
}

int store_load_identity(void *store, struct identity *id)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t cut;
	struct err e;
	struct journal *j = store_journal(store, "identity", keep_record, &b,
					  &cut, &e);
	if (!j)
		return 1;
	journal_close(j);
	return b.len ? parse_identity(buf_bytes(&b), id) : 1;
}

int store_save_manifest(struct store *s, struct bytes signed_manifest,
			struct err *e)
{
	cleanup_buf struct buf old = { 0 };
	if (store_load_manifest(s, &old) == 0 &&
	    bytes_eq(buf_bytes(&old), signed_manifest))
		return 0;
	return file_write(s->dir, "manifest.json", signed_manifest, 0600, e);
}

int store_load_manifest(void *store, struct buf *out)
{
	const struct store *s = store;
	struct err e;
	return file_read(s->dir, "manifest.json", MANIFEST_MAX, out, &e) == 0
		? 0 : 1;
}

void store_statfs(struct store *s, struct statvfs *out)
{
	struct statvfs st;
	if (fstatvfs(s->drafts, &st) < 0)
		return;
	out->f_blocks = st.f_blocks;
	out->f_bfree = st.f_bfree;
	out->f_bavail = st.f_bavail;
	out->f_bsize = st.f_bsize;
	out->f_frsize = st.f_frsize;
}

bool store_remove(struct store *s)
{
	bool last = false;
	char *slash = strrchr(s->path, '/');
	*slash = 0;
	int up = open(s->path, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (up >= 0) {
		file_remove_tree(up, slash + 1, NULL);
		close(up);
		last = rmdir(s->path) == 0;
	}
	*slash = '/';
	return last;
}
