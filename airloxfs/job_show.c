/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/job_show.h"
#include "airloxfs/kept.h"
#include "airloxfs/print.h"
#include "core/clear.h"
#include "core/host/check.h"
#include "core/host/opened.h"
#include "core/host/tell.h"
#include "core/name.h"

#define PRINTED_MAX ((size_t)1 << 20)
#define SAME_NAMES 1000

/* --- output --- */

/* A terminal is not steered by what a job prints; a pipe gets every byte. */
static void put_output(FILE *to, bool tty, struct bytes s)
{
	if (!tty)
		fwrite(s.p, 1, s.n, to);
	for (size_t at = 0; tty && at < s.n;) {
		size_t from = at;
		uint32_t c = clear_next(s, &at);
		if (c == '\n' || c == '\t' || c == '\r' ||
		    (c != UINT32_MAX && c >= 0x20 && !clear_hidden(c)))
			fwrite(s.p + from, 1, at - from, to);
		else
			fputs("\xef\xbf\xbd", to);
	}
	fflush(to);
}

void job_show_live(void *arg, enum progress_stream stream, struct bytes more)
{
	struct job_printed *p = arg;
	struct buf *kept = stream == PROGRESS_STDOUT ? &p->out : &p->err;

	p->any = true;
	if (kept->len < PRINTED_MAX)
		buf_add(kept, more.p, more.n);
	put_output(stream == PROGRESS_STDOUT ? stdout : stderr, p->tty, more);
}

void job_printed_free(struct job_printed *p)
{
	buf_free(&p->out);
	buf_free(&p->err);
}

static bool is_start(struct bytes s, struct bytes all)
{
	return s.n <= all.n && (!s.n || memcmp(s.p, all.p, s.n) == 0);
}

/* What the result has beyond what was printed.  False where that is not how
 * the result begins: frames were lost, or output was left out; then its end
 * is printed all the same. */
static bool put_rest(FILE *to, bool tty, const struct buf *printed,
		     struct bytes all)
{
	cleanup_buf struct buf clean = { 0 };
	struct bytes seen = printed ? buf_bytes(printed) :
				      (struct bytes){ 0 };
	bool whole = is_start(seen, all);

	if (!whole) {
		kept_clean(&clean, seen);
		seen = buf_bytes(&clean);
		whole = is_start(seen, all);
	}
	size_t end = seen.n < KEPT_SEEN ? seen.n : KEPT_SEEN;
	size_t at = whole ? seen.n : kept_rest((struct bytes){
			seen.p + seen.n - end, end }, all);
	put_output(to, tty, (struct bytes){ all.p + at, all.n - at });
	return whole;
}

static void put_outputs(const struct job_show *s, const struct payload *p)
{
	bool tty = isatty(STDOUT_FILENO);
	const struct job_printed *was = s->printed;

	bool whole = put_rest(stdout, tty, was ? &was->out : NULL,
			      p->u.result.out_text);

	whole &= put_rest(stderr, tty, was ? &was->err : NULL,
			  p->u.result.err_text);
	if (!whole)
		tell_note("the output above is not all of it; result prints "
			  "what was kept");
}

/* --- out files --- */

/* Never over what is there: the second out.zip is "out (1).zip". */
static int name_saved(int dir, const char *tmp, struct bytes name,
		      struct buf *as, struct err *e)
{
	size_t ext = name_ext(name);

	for (int i = 0; i < SAME_NAMES; i++) {
		buf_reset(as);
		buf_add(as, name.p, ext);
		if (i)
			buf_addf(as, " (%d)", i);
		buf_add(as, name.p + ext, name.n - ext);
		const char *to = buf_cstr(as);
		if (!to)
			return err_set(e, ERR_MEMORY, "out of memory");
		if (renameat2(dir, tmp, dir, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_sys(e, "cannot save %.*s", (int)name.n,
		       (const char *)name.p);
}

static int copy_out(struct opened *o, struct incoming *in, int dir,
		    struct bytes name, struct buf *as, struct err *e)
{
	char tmp[FILE_TMP];
	cleanup_fd int fd = file_tmp(dir, tmp, e);
	if (fd < 0)
		return -1;
	int r = opened_copy(o, in, fd, e);
	if (r == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0))
		r = err_sys(e, "cannot save a file of the job");
	if (r == 0)
		r = name_saved(dir, tmp, name, as, e);
	if (r < 0)
		unlinkat(dir, tmp, 0);
	return r;
}

/* The result names an exact ciphertext: nothing else is that file. */
static int save_one(struct follow *f, int dir, const struct out_file *out,
		    struct buf *as, struct err *e)
{
	struct incoming *in = follow_file(f, out, e);
	if (!in)
		return -1;
	cleanup_fd int fd = peer_fetch(f->peer, f->feed.get, in, NULL, NULL,
				       e);
	if (fd < 0)
		return -1;
	struct opened *o = opened_new(f->peer, in, fd, check_content, NULL, e);
	if (!o)
		return -1;
	int r = 0;
	if (memcmp(o->ref.sha256, out->item.sha256, HASH_SIZE) != 0 ||
	    memcmp(in->author.pub, f->result->author.pub, PRIM_PUB) != 0)
		r = err_set(e, ERR_POLICY, "it is another file than the "
			    "result says");
	if (r == 0)
		r = copy_out(o, in, dir, out->name, as, e);
	if (r == 0 && cache_settle(f->peer->cache, &fd, 1, NULL) == 0)
		peer_ack(f->feed.get, in->env.header.id, NULL);
	opened_free(o);
	return r;
}

/* The paths as JSON strings; one that is not to be had is a warning. */
static int save_all(const struct job_show *s, struct follow *f,
		    struct buf *saved, struct err *e)
{
	const struct payload *p = &f->result->payload;
	if (!s->out_dir || !p->u.result.out_n)
		return 0;
	if (mkdir(s->out_dir, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "cannot create %s", s->out_dir);
	cleanup_fd int dir = open(s->out_dir, O_RDONLY | O_DIRECTORY |
				  O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "cannot open %s", s->out_dir);
	for (size_t i = 0; i < p->u.result.out_n; i++) {
		const struct out_file *out = &p->u.result.out[i];
		cleanup_buf struct buf as = { 0 }, path = { 0 };
		if (save_one(f, dir, out, &as, e) < 0) {
			tell_warn("%.*s: %s", (int)out->name.n,
				  (const char *)out->name.p, e->why);
			continue;
		}
		buf_addf(&path, "%s/%s", s->out_dir, buf_cstr(&as));
		if (saved->len)
			buf_add_byte(saved, ',');
		print_bytes(saved, buf_bytes(&path));
		if (!s->json)
			tell_note("saved %s", buf_cstr(&path));
	}
	return 0;
}

/* --- JSON, keys in byte order --- */

static void put_bytes(struct buf *b, const char *key, bool has,
		      struct bytes s)
{
	json_put_key(b, key);
	if (has)
		print_bytes(b, s);
	else
		buf_add_str(b, "null");
}

static void put_pub(struct buf *b, const char *key, const uint8_t *pub)
{
	json_put_key(b, key);
	if (pub)
		json_put_b64(b, pub, PRIM_PUB);
	else
		buf_add_str(b, "null");
}

static void put_out_files(struct buf *b, const struct payload *p)
{
	json_put_key(b, "out_files");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < p->u.result.out_n; i++) {
		const struct out_file *out = &p->u.result.out[i];
		json_put_sep(b);
		buf_add_byte(b, '{');
		put_bytes(b, "name", true, out->name);
		json_put_key(b, "ref");
		item_put_ref(b, &out->item);
		json_put_key_int(b, "size", out->size);
		buf_add_byte(b, '}');
	}
	buf_add_byte(b, ']');
}

static void put_result(struct buf *b, const struct follow *f,
		       const struct buf *saved)
{
	const struct payload *p = &f->result->payload;

	buf_add_byte(b, '{');
	json_put_key(b, "exit_code");
	if (p->u.result.has_exit)
		json_put_int(b, p->u.result.exit_code);
	else
		buf_add_str(b, "null");
	print_member(b, "job", f->job.ref.id);
	put_out_files(b, p);
	json_put_key_int(b, "peak_mem_mb", p->u.result.peak_mem_mb);
	put_bytes(b, "reason", p->u.result.has_reason, p->u.result.reason);
	put_pub(b, "runner", f->result->author.pub);
	json_put_key(b, "saved");
	buf_add_byte(b, '[');
	buf_add(b, saved->data, saved->len);
	buf_add_byte(b, ']');
	json_put_key_bool(b, "signed", true);
	print_member(b, "status", payload_status_word(p->u.result.status));
	put_bytes(b, "stderr", true, p->u.result.err_text);
	json_put_key_bool(b, "stderr_truncated", p->u.result.err_truncated);
	put_bytes(b, "stdout", true, p->u.result.out_text);
	json_put_key_bool(b, "stdout_truncated", p->u.result.out_truncated);
	json_put_key_int(b, "wall_ms", p->u.result.wall_ms);
	buf_add_byte(b, '}');
}

/* Nobody signed this: it is the relay's word. */
static void put_unsigned(struct buf *b, const struct follow *f,
			 const char *status)
{
	buf_addf(b, "{\"exit_code\":null");
	print_member(b, "job", f->job.ref.id);
	buf_add_str(b, ",\"out_files\":[],\"peak_mem_mb\":0");
	print_member(b, "reason", f->reason);
	put_pub(b, "runner", f->live.has_runner ? f->live.runner : NULL);
	buf_add_str(b, ",\"saved\":[],\"signed\":false");
	print_member(b, "status", status);
	buf_add_str(b, ",\"stderr\":\"\",\"stderr_truncated\":false,"
		    "\"stdout\":\"\",\"stdout_truncated\":false,"
		    "\"wall_ms\":0}");
}

/* --- the end --- */

static int exit_of(const struct payload *p)
{
	int64_t code = p->u.result.exit_code;

	if (!p->u.result.has_exit)
		return 1;
	if (p->u.result.status != RESULT_COMPLETED && code == 0)
		return 1;
	if (code < 0)
		return code >= -127 ? 128 - (int)code : 255;
	return code < 256 ? (int)code : 255;
}

static void say_result(const struct follow *f)
{
	const struct payload *p = &f->result->payload;
	cleanup_buf struct buf b = { 0 };
	struct participant *q = people_find(&f->peer->people,
					    f->result->author.pub);

	buf_addf(&b, "%s", payload_status_word(p->u.result.status));
	if (p->u.result.has_exit)
		buf_addf(&b, " with %lld", (long long)p->u.result.exit_code);
	buf_addf(&b, " on %s after %lld ms, signed by it",
		 q && q->shown_runner ? q->shown_runner : "a runner",
		 (long long)p->u.result.wall_ms);
	if (p->u.result.has_reason) {
		buf_add_str(&b, ": ");
		buf_add(&b, p->u.result.reason.p, p->u.result.reason.n);
	}
	if (p->u.result.out_truncated || p->u.result.err_truncated)
		buf_add_str(&b, "; the middle of its output was left out");
	tell_note("%s", buf_failed(&b) ? "" : buf_cstr(&b));
}

static int show_result(const struct job_show *s, struct follow *f,
		       int *status, struct err *e)
{
	cleanup_buf struct buf saved = { 0 }, doc = { 0 };
	const struct payload *p = &f->result->payload;

	*status = exit_of(p);
	if (!s->json) {
		put_outputs(s, p);
		say_result(f);
	}
	if (save_all(s, f, &saved, e) < 0)
		return -1;
	if (!s->json)
		return 0;
	put_result(&doc, f, &saved);
	return print_doc(&doc) ? err_set(e, ERR_SYS, "stopped") : 0;
}

int job_show_end(const struct job_show *s, struct follow *f, int *status,
		 struct err *e)
{
	cleanup_buf struct buf doc = { 0 };
	bool cancelled = f->reason && !strcmp(f->reason, "cancelled");

	if (f->result)
		return show_result(s, f, status, e);
	*status = 1;
	if (!s->json) {
		tell_note("%s, says the relay (no runner signed that): %s",
			  cancelled ? "cancelled" : "failed",
			  f->reason ? f->reason : "no reason given");
		return 0;
	}
	put_unsigned(&doc, f, cancelled ? "cancelled" : "failed");
	return print_doc(&doc) ? err_set(e, ERR_SYS, "stopped") : 0;
}

int job_show_state(bool json, const char *id, const char *status,
		   const char *reason, const char *message)
{
	cleanup_buf struct buf b = { 0 };

	if (!json) {
		tell_note("%s", message);
		return 0;
	}
	buf_add_byte(&b, '{');
	print_member(&b, "job", id);
	if (reason) {
		print_member(&b, "message", message);
		print_member(&b, "reason", reason);
	}
	print_member(&b, "status", status);
	buf_add_byte(&b, '}');
	return print_doc(&b);
}

/* --- runners --- */

static const char *sandbox_word(enum sandbox s)
{
	switch (s) {
	case SANDBOX_LOCAL: return "local";
	case SANDBOX_DOCKER: return "docker";
	case SANDBOX_KUBERNETES: return "kubernetes";
	}
	return "";
}

void job_put_runner(struct buf *b, const struct shown_runner *r)
{
	const struct join *j = &r->who->join;
	const struct runner_info *info = &j->runner;

	buf_add_byte(b, '{');
	json_put_key_bool(b, "approved", r->approved);
	print_member(b, "description", j->description);
	print_member(b, "host", info->host);
	print_member(b, "job", r->job[0] ? r->job : NULL);
	json_put_key(b, "labels");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < info->label_n; i++) {
		json_put_sep(b);
		print_bytes(b, bytes_str(info->labels[i]));
	}
	buf_add_byte(b, ']');
	print_member(b, "name", info->name);
	json_put_key_bool(b, "network_unblocked", info->network_unblocked);
	json_put_key_bool(b, "online", r->online);
	put_pub(b, "participant_pub", j->cert.pub);
	json_put_key_bool(b, "rejected", r->rejected);
	print_member(b, "sandbox", sandbox_word(info->sandbox));
	buf_add_byte(b, '}');
}

static const char *state_of(const struct shown_runner *r)
{
	if (r->rejected)
		return "rejected";
	if (!r->online)
		return "offline";
	if (!r->approved)
		return "awaiting";
	return r->job[0] ? "busy" : "idle";
}

void job_say_runner(const struct shown_runner *r)
{
	const struct runner_info *info = &r->who->join.runner;
	cleanup_buf struct buf b = { 0 };

	buf_addf(&b, "%-20s %-9s %s  %s on %s", r->who->shown_runner,
		 state_of(r), r->who->fingerprint,
		 sandbox_word(info->sandbox), info->host);
	for (size_t i = 0; i < info->label_n; i++)
		buf_addf(&b, "%s%s", i ? "," : "  labels ", info->labels[i]);
	if (info->network_unblocked)
		buf_add_str(&b, "  cannot block the network");
	if (r->who->join.description)
		buf_addf(&b, "  %s", r->who->join.description);
	const char *line = buf_cstr(&b);
	tell_say("%s", line ? line : "");
}
