/* SPDX-License-Identifier: MIT */
#include "runner/box/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/clear.h"
#include "runner/box/place.h"
#include "runner/box/slurp.h"
#include "runner/box/state.h"
#include "runner/policy/show.h"
#include "runner/record/page.h"

#define SAID_BYTES 16384u
#define SAID_MS 100

static int64_t wall_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A directory that is not there may be when the box has ended. */
static int open_place(struct account *a, const char *file, struct err *e)
{
	struct err why = { 0 };
	a->place = *file ? place_open(file, false, &why) : -1;
	if (a->place >= 0)
		return place_check(a->place, file, e);
	if (!why.code || why.code == ERR_NOT_FOUND)
		return 0;
	*e = why;
	return -1;
}

int account_open(struct account *a, const struct rundir *d, struct err *e)
{
	*a = (struct account){ .egress = -1, .place = -1, .dir = d->dir };
	strcpy(a->run, d->run);
	if (open_place(a, d->record, e) < 0)
		return -1;
	a->egress = openat(d->dir, RUNDIR_EGRESS, O_RDONLY | O_CLOEXEC);
	if (a->egress < 0)
		return err_sys(e, "cannot read the broker's account");
	a->chain = chain_new(d->dir, RUNDIR_RECORD, a->run, e);
	return a->chain ? 0 : -1;
}

/* What is printed in pieces is one part, where they follow each other. */
static void flush_said(struct account *a)
{
	struct err e = { 0 };
	if (!a->said.len || a->failed)
		return;
	if (chain_say(a->chain, a->said_ms, a->said_by, buf_bytes(&a->said),
		      &e) < 0 || buf_failed(&a->said)) {
		a->failed = true;
		a->why = e;
	}
	buf_reset(&a->said);
}

static void add(struct account *a, enum part_kind kind, struct bytes data)
{
	struct err e = { 0 };
	flush_said(a);
	if (chain_add(a->chain, kind, wall_ms(), data, &e) < 0 && !a->failed) {
		a->failed = true;
		a->why = e;
	}
}

static void put_clean(struct buf *out, const char *s)
{
	cleanup_buf struct buf clean = { 0 };
	struct bytes text = bytes_str(s);
	if (!clear_utf8(text)) {
		clear_escape(&clean, text);
		text = buf_bytes(&clean);
	}
	json_put_string(out, text);
	out->failed |= clean.failed;
}

static void put_limits(struct buf *b, const struct plan_limits *l)
{
	json_put_key(b, "limits");
	buf_add_byte(b, '{');
	json_put_key_int(b, "disk_bytes", (int64_t)l->disk_bytes);
	json_put_key_int(b, "memory_bytes", (int64_t)l->memory_bytes);
	json_put_key_int(b, "processes", l->tasks);
	json_put_key_int(b, "time_ms", l->timeout_ms);
	buf_add_byte(b, '}');
}

void account_begin(struct account *a, const struct account_facts *f)
{
	cleanup_buf struct buf b = { 0 }, rules = { 0 };
	const char *const *command = f->command;
	if (!a->chain)
		return;
	show_rules(&rules, f->policy);
	buf_add_str(&b, "{");
	json_put_key(&b, "argv");
	buf_add_byte(&b, '[');
	for (; *command; command++) {
		json_put_sep(&b);
		put_clean(&b, *command);
	}
	buf_add_byte(&b, ']');
	json_put_key(&b, "bubblewrap");
	put_clean(&b, f->bubblewrap);
	put_limits(&b, f->limits);
	json_put_key(&b, "policy");
	json_put_string(&b, buf_bytes(&rules));
	json_put_key(&b, "version");
	put_clean(&b, "airlox-box " AIRLOX_VERSION);
	buf_add_byte(&b, '}');
	if (!buf_failed(&b) && !buf_failed(&rules))
		add(a, PART_RUN, buf_bytes(&b));
}

void account_part(struct account *a, enum part_kind kind, struct bytes data)
{
	if (a->chain)
		add(a, kind, data);
}

void account_notice(struct account *a, struct bytes text)
{
	cleanup_buf struct buf b = { 0 }, clean = { 0 };
	if (!clear_utf8(text)) {
		clear_escape(&clean, text);
		text = buf_bytes(&clean);
	}
	buf_add_byte(&b, '{');
	json_put_key_string(&b, "text", text);
	buf_add_byte(&b, '}');
	if (!buf_failed(&b) && !buf_failed(&clean))
		account_part(a, PART_NOTICE, buf_bytes(&b));
}

void account_say(struct account *a, const char *stream, struct bytes text)
{
	if (!a->chain || a->failed || !text.n)
		return;
	if (strcmp(a->said_by, stream) != 0)
		flush_said(a);
	if (!a->said.len) {
		a->said_ms = wall_ms();
		snprintf(a->said_by, sizeof a->said_by, "%s", stream);
	}
	buf_add(&a->said, text.p, text.n);
	if (a->said.len >= SAID_BYTES)
		flush_said(a);
}

static void add_lines(struct account *a)
{
	size_t from = 0;
	for (;;) {
		const uint8_t *p = a->rest.data + from;
		size_t left = a->rest.len - from;
		const uint8_t *lf = left ? memchr(p, '\n', left) : NULL;
		if (!lf)
			break;
		if (a->skip)
			a->skip--;
		else
			add(a, PART_EGRESS,
			    (struct bytes){ p, (size_t)(lf - p) });
		from += (size_t)(lf - p) + 1;
	}
	buf_consume(&a->rest, from);
}

void account_note(void *account, const char *kind, struct bytes data)
{
	struct account *a = account;
	if (a->chain)
		add(a, !strcmp(kind, "session") ? PART_SESSION :
		    !strcmp(kind, "file") ? PART_FILE : PART_NOTICE, data);
}

void account_follow(struct account *a)
{
	if (a->session)
		session_follow(a->session, account_note, a);
	if (a->said.len && wall_ms() - a->said_ms >= SAID_MS)
		flush_said(a);
	while (a->chain) {
		uint8_t *to = buf_room(&a->rest, 16384);
		ssize_t n = to ? read(a->egress, to, 16384) : -1;
		if (n <= 0)
			return;
		a->rest.len += (size_t)n;
		add_lines(a);
	}
}

void account_end(struct account *a, const struct box_end *end, int code,
		 const char *limits)
{
	static const char *const how[] = {
		[BOX_EXITED] = "exited", [BOX_TIMED_OUT] = "timed out",
		[BOX_MEMORY] = "over its memory", [BOX_DISK] = "over its disk",
		[BOX_KILLED] = "stopped", [BOX_BROKEN] = "not started",
	};
	cleanup_buf struct buf b = { 0 };
	if (!a->chain)
		return;
	account_follow(a);
	buf_add_str(&b, "{");
	json_put_key(&b, "exit");
	json_put_int(&b, code);
	json_put_key(&b, "limits_by");
	put_clean(&b, limits);
	json_put_key(&b, "peak_bytes");
	json_put_int(&b, (int64_t)end->peak_bytes);
	json_put_key(&b, "reason");
	put_clean(&b, how[end->how]);
	json_put_key(&b, "wall_ms");
	json_put_int(&b, (int64_t)end->wall_ms);
	buf_add_byte(&b, '}');
	if (!buf_failed(&b))
		add(a, PART_END, buf_bytes(&b));
}

/* --- what a killed command line left --- */

static void add_incomplete(struct account *a, const struct chain_left *left)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "{");
	json_put_key_string(&b, "text", bytes_str(
		"this record is incomplete: the command line of the run was "
		"killed, and the box with it; what was printed or changed "
		"after the last part is not in it. It was finished later, by "
		"airlox-box reap"));
	buf_add_str(&b, "}");
	if (!buf_failed(&b))
		add(a, PART_NOTICE, buf_bytes(&b));
	buf_free(&b);
	buf_add_str(&b, "{");
	json_put_key_int(&b, "exit", 128 + SIGKILL);
	json_put_key_string(&b, "reason", bytes_str("its command line was "
						    "killed"));
	json_put_key_int(&b, "wall_ms", left->last_ms - left->first_ms);
	buf_add_str(&b, "}");
	if (!buf_failed(&b))
		add(a, PART_END, buf_bytes(&b));
}

int account_finish(struct account *a, const struct rundir *d, struct err *e)
{
	struct chain_left left;
	*a = (struct account){ .egress = -1, .place = -1, .dir = d->dir };
	strcpy(a->run, d->run);
	a->chain = chain_resume(d->dir, RUNDIR_RECORD, d->run, &left, e);
	if (!a->chain)
		return -1;
	if (left.ended)
		return 0;
	a->egress = openat(d->dir, RUNDIR_EGRESS, O_RDONLY | O_CLOEXEC);
	a->skip = left.egress;
	if (a->egress >= 0)
		account_follow(a);
	add_incomplete(a, &left);
	if (!a->failed)
		return 0;
	*e = a->why;
	return -1;
}

/* What a box may have left on the way is not followed. */
static int write_page(const struct account *a, const char *file,
		      struct bytes page, struct err *e)
{
	cleanup_fd int late = a->place < 0 ? place_open(file, true, e) : -1;
	if (a->place < 0 && late < 0)
		return -1;
	return place_write(a->place < 0 ? late : a->place, file, page, e);
}

static int make_page(struct account *a, struct buf *page, struct err *e)
{
	cleanup_buf struct buf lines = { 0 };
	cleanup_fd int state = state_open(e);
	cleanup_fd int chain = openat(a->dir, RUNDIR_RECORD, O_RDONLY | O_CLOEXEC);
	if (state < 0)
		return -1;
	if (chain < 0)
		return err_sys(e, "the record is gone");
	struct signer *s = signer_open(state, "key", e);
	int rc = s ? slurp(chain, CHAIN_BYTES_MAX + (1u << 20), &lines, e) : -1;
	if (rc == 0)
		rc = page_put(page, bytes_str(a->run), buf_bytes(&lines), s, e);
	signer_free(s);
	return rc;
}

int account_write(struct account *a, const char *file, struct buf *name,
		  struct err *e)
{
	cleanup_buf struct buf page = { 0 };
	if (file)
		buf_add_str(name, file);
	else
		buf_addf(name, "airlox-%s.html", a->run);
	const char *to = buf_cstr(name);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (make_page(a, &page, e) < 0 ||
	    write_page(a, to, buf_bytes(&page), e) < 0)
		return -1;
	if (!a->failed)
		return 0;
	*e = a->why;
	return err_prefix(e, "a part of the record is missing");
}

void account_free(struct account *a)
{
	chain_free(a->chain);
	if (a->egress >= 0)
		close(a->egress);
	if (a->place >= 0)
		close(a->place);
	buf_free(&a->rest);
	buf_free(&a->said);
	*a = (struct account){ .egress = -1, .place = -1 };
}
