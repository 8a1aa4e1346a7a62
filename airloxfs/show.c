/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/print.h"
#include "airloxfs/show.h"
#include "core/clear.h"
#include "core/host/tell.h"
#include "core/name.h"

#define CONTENT_MAX (1024 * 1024)	/* of a file, in its JSON line */
#define SAME_NAMES 100

static const char *const status_words[] = {
	[SHOWN_OK] = "ok", [SHOWN_PENDING] = "pending",
	[SHOWN_EVICTED] = "evicted", [SHOWN_REJECTED] = "rejected",
};

int show_open(struct show *s, const char *path, bool json, struct err *e)
{
	*s = (struct show){ .json = json, .save_dir = -1, .save_path = path };
	if (!path)
		return 0;
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "cannot create %s", path);
	s->save_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->save_dir < 0 ? err_sys(e, "cannot open %s", path) : 0;
}

void show_close(struct show *s)
{
	if (s->save_dir >= 0)
		close(s->save_dir);
	s->save_dir = -1;
}

/* --- saving --- */

/* The name it has in a mount's in/; a second one of that name gets a number.
 * Never over something that is there. */
static int link_saved(struct show *s, const char *tmp, const struct shown *it,
		      struct buf *name, struct err *e)
{
	struct bytes file = it->opened->payload.u.file.name;
	for (int i = 1; i < SAME_NAMES; i++) {
		cleanup_buf struct buf author = { 0 };
		buf_reset(name);
		buf_add_str(&author, it->item->author_shown);
		if (i > 1)
			buf_addf(&author, ".%d", i);
		if (buf_failed(&author))
			break;
		name_in(name, it->seq, buf_cstr(&author), file);
		if (!buf_cstr(name))
			break;
		if (renameat2(s->save_dir, tmp, s->save_dir, buf_cstr(name),
			      RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_sys(e, "cannot save item %s", it->id);
}

static int save(struct show *s, const struct shown *it, struct buf *name,
		struct err *e)
{
	char tmp[FILE_TMP];
	cleanup_fd int fd = file_tmp(s->save_dir, tmp, e);
	if (fd < 0)
		return -1;
	int r = opened_copy(it->opened, it->item, fd, e);
	if (r == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0))
		r = err_sys(e, "cannot save item %s", it->id);
	if (r == 0)
		r = link_saved(s, tmp, it, name, e);
	if (r < 0)
		unlinkat(s->save_dir, tmp, 0);
	return r;
}

/* --- JSON, keys in byte order --- */

static void put_author(struct buf *b, const struct shown *it)
{
	json_put_key(b, "author");
	if (it->item)
		json_put_b64(b, it->item->author.pub, PRIM_PUB);
	else
		buf_add_str(b, "null");
	print_member(b, "author_name", it->author ? it->author->shown : NULL);
	print_member(b, "author_role", it->author ?
		     role_word(it->author->join.cert.role) : NULL);
}

/* A member of the meta as it stands there. */
static void put_meta_member(struct buf *b, const struct shown *it,
			    const char *key)
{
	const struct json *v = it->opened->payload.doc->child;
	while (v && !bytes_eq(v->key, bytes_str(key)))
		v = v->next;
	if (!v)
		return;
	json_put_key(b, key);
	buf_add(b, v->raw.p, v->raw.n);
}

static bool is_job(const struct shown *it)
{
	return it->opened && it->opened->payload.kind == ITEM_JOB;
}

static bool is_file(const struct shown *it)
{
	return it->opened && it->opened->payload.kind == ITEM_FILE;
}

/* What a text file says, so that an agent need not save it. */
static void put_content(struct buf *b, const struct shown *it)
{
	enum item_type type = it->item->env.header.type;
	cleanup_buf struct buf text = { 0 };
	size_t n = (size_t)it->opened->body_n;
	if ((type != TYPE_PY && type != TYPE_MD) || n > CONTENT_MAX)
		return;
	uint8_t *to = buf_room(&text, n + 1);
	if (!to || opened_read(it->opened, 0, to, n, NULL) < 0)
		return;
	text.len = n;
	json_put_key(b, "content");
	print_bytes(b, buf_bytes(&text));
}

static void put_ref(struct buf *b, const struct shown *it)
{
	json_put_key(b, "ref");
	if (it->opened) {
		item_put_ref(b, &it->opened->ref);
		return;
	}
	buf_add_byte(b, '{');
	print_member(b, "blob_sha256", "");
	print_member(b, "id", it->id);
	buf_add_byte(b, '}');
}

static void put_kind(struct buf *b, const struct shown *it)
{
	enum item_kind kind = it->item ? it->item->env.header.kind : ITEM_TEXT;
	print_member(b, "kind", it->item ? item_kind_word(kind) : NULL);
	if (it->opened && (kind == ITEM_EVENT || kind == ITEM_RESULT)) {
		json_put_key(b, "meta");
		buf_add(b, it->opened->meta.data, it->opened->meta.len);
	}
	if (is_file(it)) {
		put_meta_member(b, it, "mime");
		put_meta_member(b, it, "name");
	}
}

static void put_subkind(struct buf *b, const struct shown *it)
{
	enum item_type type = it->item ? it->item->env.header.type : TYPE_NONE;
	print_member(b, "subkind", type == TYPE_NONE ? NULL : type_word(type));
}

static void put_json(struct buf *b, const struct shown *it, const char *saved)
{
	buf_add_byte(b, '{');
	put_author(b, it);
	if (is_job(it))
		put_meta_member(b, it, "code");
	if (is_file(it))
		put_content(b, it);
	json_put_key(b, "created_at_ms");
	json_put_int(b, it->item ? it->item->env.header.created_at_ms : 0);
	if (it->status != SHOWN_OK)
		print_member(b, "error", it->why->why);
	if (is_job(it)) {
		put_meta_member(b, it, "filename");
		put_meta_member(b, it, "files");
	}
	print_member(b, "id", it->id);
	put_kind(b, it);
	put_ref(b, it);
	if (saved)
		print_member(b, "saved", saved);
	json_put_key(b, "seq");
	json_put_int(b, (int64_t)it->seq);
	if (is_file(it)) {
		json_put_key(b, "size");
		json_put_int(b, (int64_t)it->opened->body_n);
	}
	print_member(b, "status", status_words[it->status]);
	put_subkind(b, it);
	if (is_job(it))
		put_meta_member(b, it, "target");
	if (it->opened && it->opened->payload.kind == ITEM_TEXT)
		put_meta_member(b, it, "text");
	buf_add_byte(b, '}');
}

/* --- text --- */

static void put_what(struct buf *b, const struct shown *it)
{
	static const char *const events[] = {
		[EVENT_RUNNER_APPROVE] = "runner_approve",
		[EVENT_RUNNER_REJECT] = "runner_reject",
		[EVENT_JOB_CANCEL] = "job_cancel",
		[EVENT_SESSION_CLOSE] = "session_close",
	};
	const struct payload *p = &it->opened->payload;
	switch (p->kind) {
	case ITEM_TEXT:
		buf_add(b, p->u.text.text.p, p->u.text.text.n);
		break;
	case ITEM_FILE:
		buf_add_str(b, "file ");
		buf_add(b, p->u.file.name.p, p->u.file.name.n);
		buf_addf(b, " (%llu bytes)",
			 (unsigned long long)it->opened->body_n);
		break;
	case ITEM_JOB:
		buf_add_str(b, "job ");
		buf_add(b, p->u.job.filename.p, p->u.job.filename.n);
		buf_addf(b, " as %s", it->id);
		break;
	case ITEM_RESULT:
		buf_addf(b, "result of %s", p->u.result.job.id);
		break;
	case ITEM_EVENT:
		buf_addf(b, "event %s", events[p->u.event.event]);
		break;
	}
}

static int say_item(const struct shown *it, const char *saved)
{
	cleanup_buf struct buf what = { 0 }, line = { 0 };
	if (it->opened)
		put_what(&what, it);
	else
		buf_addf(&what, "%s: %s", status_words[it->status],
			 it->why->why);
	clear_escape(&line, buf_bytes(&what));
	const char *text = buf_cstr(&line);
	printf("#%-4llu ", (unsigned long long)it->seq);
	if (it->author) {
		cleanup_buf struct buf who = { 0 };
		clear_escape(&who, bytes_str(it->author->shown));
		printf("%s (%s): ", buf_cstr(&who),
		       role_word(it->author->join.cert.role));
	}
	printf("%s\n", text ? text : "");
	if (saved)
		tell_say("       saved %s", saved);
	return tell_flush();
}

int show_item(void *arg, const struct shown *it, struct err *e)
{
	struct show *s = arg;
	cleanup_buf struct buf name = { 0 }, path = { 0 }, doc = { 0 };
	if (s->save_dir >= 0 && is_file(it)) {
		if (save(s, it, &name, e) < 0)
			return -1;
		buf_addf(&path, "%s/%s", s->save_path, buf_cstr(&name));
	}
	const char *saved = path.len ? buf_cstr(&path) : NULL;
	if (!s->json)
		return say_item(it, saved) ? err_set(e, ERR_SYS, "stopped") : 0;
	put_json(&doc, it, saved);
	if (buf_failed(&doc))
		return err_set(e, ERR_MEMORY, "out of memory");
	return print_line(&doc) ? err_set(e, ERR_SYS, "stopped") : 0;
}
