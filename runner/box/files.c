/* SPDX-License-Identifier: MIT */
#include "runner/box/files.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/box/copy.h"
#include "runner/box/say.h"
#include "runner/box/take.h"

static int copy_one(struct files *f, struct files_tree *t, size_t i,
		    const struct scratch *s, uid_t uid, gid_t gid,
		    struct err *e)
{
	char name[32];
	struct copied c;
	t->original = open(t->file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->original < 0)
		return err_sys(e, "line %u: %s", t->file->line, t->file->path);
	snprintf(name, sizeof name, "copy-%zu", i);
	if (mkdirat(s->out, name, 0700) < 0)
		return err_sys(e, "cannot make a copy of %s", t->file->path);
	t->dir = openat(s->out, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0 || (f->root && fchown(t->dir, uid, gid) < 0))
		return err_sys(e, "cannot make a copy of %s", t->file->path);
	if (copy_in(t->original, t->dir, uid, gid, &c, e) < 0)
		return err_prefix(e, "line %u: %s", t->file->line,
				  t->file->path);
	f->copied_bytes += c.bytes;
	if (c.left_out)
		say_note("%s: %llu sockets, fifos, devices or other mounts "
			 "were not copied", t->file->path,
			 (unsigned long long)c.left_out);
	return 0;
}

/* What is no directory is compared by nobody: it is one file, and bound. */
static int open_one(struct files *f, const struct policy_file *file, size_t i,
		    const struct scratch *s, uid_t uid, gid_t gid,
		    struct err *e)
{
	struct files_tree *t = &f->tree[f->n++];
	*t = (struct files_tree){ .file = file, .at = file ? file->at :
				  "/work", .original = -1, .dir = -1 };
	if (!file) {
		t->dir = fcntl(s->work, F_DUPFD_CLOEXEC, 0);
	} else if (file->mode == POLICY_COPY) {
		if (copy_one(f, t, i, s, uid, gid, e) < 0)
			return -1;
	} else {
		t->dir = open(file->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return t->dir < 0 ? 0 : snap_take(&t->was, t->dir, NULL, e);
}

int files_open(struct files *f, const struct policy *p,
	       const struct scratch *scratch, uid_t uid, gid_t gid,
	       struct err *e)
{
	bool work = false;
	*f = (struct files){ .root = uid != (uid_t)-1 };
	f->tree = calloc(p->file_n + 1, sizeof *f->tree);
	if (!f->tree)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (size_t i = 0; i < p->file_n; i++) {
		work |= !strcmp(p->file[i].at, "/work");
		if (p->file[i].mode != POLICY_READ &&
		    open_one(f, &p->file[i], i, scratch, uid, gid, e) < 0)
			return -1;
	}
	return work ? 0 : open_one(f, NULL, 0, scratch, uid, gid, e);
}

int files_may_apply(const struct policy *p, enum files_apply how,
		    struct err *e)
{
	bool copies = false;
	for (size_t i = 0; i < p->file_n; i++)
		copies |= p->file[i].mode == POLICY_COPY;
	if (how != FILES_LEAVE && !copies)
		return err_set(e, ERR_USAGE, "--apply, and the policy copies "
			       "nothing: files with mode: copy");
	if (how == FILES_ASK && (!isatty(STDIN_FILENO) ||
				 !isatty(STDERR_FILENO)))
		return err_set(e, ERR_USAGE, "--apply asks on a terminal, and "
			       "there is none: --apply=all takes all");
	return 0;
}

/* --- after it ------------------------------------------------------------- */

__attribute__((format(printf, 2, 3)))
static void put_notice(struct account *a, const char *fmt, ...)
{
	char text[300];
	cleanup_buf struct buf b = { 0 };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	buf_add_str(&b, "{");
	json_put_key_string(&b, "text", bytes_str(text));
	buf_add_byte(&b, '}');
	if (!buf_failed(&b))
		account_note(a, "notice", buf_bytes(&b));
}

static void put_changes(struct account *a, const struct files_tree *t)
{
	for (size_t i = 0; i < t->changes.n && i < CHANGES_SAID; i++) {
		cleanup_buf struct buf b = { 0 };
		change_put(&b, &t->changes.v[i], t->at);
		if (!buf_failed(&b))
			account_note(a, "file", buf_bytes(&b));
	}
	if (t->changes.n > CHANGES_SAID)
		put_notice(a, "%zu further files changed in %s",
			  t->changes.n - CHANGES_SAID, t->at);
	if (t->changes.cut)
		put_notice(a, "more than %u files, or directories deeper than "
			  "what is compared, in %s: not all that changed is "
			  "in this record", SNAP_ENTRIES, t->at);
}

static size_t close_one(struct files *f, struct files_tree *t,
			struct account *a, enum files_apply how, int code,
			const char *aside)
{
	struct err e = { 0 };
	struct apply ap = { .original = t->original, .copy = t->dir,
			    .aside = aside, .aside_fd = -1, .root = f->root };
	size_t failed = 0;
	if (t->dir < 0)
		return 0;
	if (snap_take(&t->is, t->dir, &t->was, &e) < 0 ||
	    changes_find(&t->changes, &t->was, &t->is, &e) < 0) {
		say_note("%s was not compared: %s", t->at, e.why);
		put_notice(a, "%s was not compared: %s", t->at, e.why);
		return how != FILES_LEAVE;
	}
	if (t->original >= 0 && t->changes.n && how == FILES_LEAVE)
		say_note("%zu file%s changed in the copy of %s: the record "
			 "has how; --apply takes changes back", t->changes.n,
			 t->changes.n == 1 ? "" : "s", t->file->path);
	else if (t->original >= 0)
		failed = take_changes(&ap, &t->changes, how, t->file->path,
				      code != 0);
	if (ap.aside_fd >= 0)
		close(ap.aside_fd);
	put_changes(a, t);
	return failed;
}

size_t files_close(struct files *f, struct account *a, enum files_apply how,
		   int code, const char *run)
{
	char aside[80];
	size_t failed = 0;
	snprintf(aside, sizeof aside, "airlox-%s.aside", run);
	for (size_t i = 0; i < f->n; i++)
		failed += close_one(f, &f->tree[i], a, how, code, aside);
	return failed;
}

void files_free(struct files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct files_tree *t = &f->tree[i];
		changes_free(&t->changes);
		snap_free(&t->was);
		snap_free(&t->is);
		if (t->original >= 0)
			close(t->original);
		if (t->dir >= 0)
			close(t->dir);
	}
	free(f->tree);
	*f = (struct files){ 0 };
}
