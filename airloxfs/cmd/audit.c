/* SPDX-License-Identifier: MIT
 *
 * audit: what the relay recorded; and, with --verify, how much of it holds
 * without believing the relay. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/print.h"
#include "airloxfs/proof.h"
#include "core/host/tell.h"

struct options {
	struct common c;
	const char *out, *session, *manifest;
	bool verify;
};

/* Where the relay's bytes go: each is optional. */
struct sink {
	int fd;			/* of --out, or -1 */
	struct proof *proof;	/* of --verify, or NULL */
	bool print;
	struct buf line;
	struct err err;
};

/* The relay's words, to a terminal: line by line and escaped. */
static int print_some(struct sink *s, const uint8_t *from, size_t n)
{
	const uint8_t *end;
	while ((end = memchr(from, '\n', n))) {
		size_t m = (size_t)(end - from);
		buf_add(&s->line, from, m);
		if (print_line(&s->line))
			return err_set(&s->err, ERR_SYS, "stopped");
		buf_reset(&s->line);
		from += m + 1;
		n -= m + 1;
	}
	buf_add(&s->line, from, n);
	return s->line.len > TRAIL_LINE_MAX || buf_failed(&s->line) ?
		err_set(&s->err, ERR_PROTO, "a line without an end") : 0;
}

static int take(void *arg, const void *p, size_t n)
{
	struct sink *s = arg;
	if (s->fd >= 0 && file_put(s->fd, p, n, &s->err) < 0)
		return -1;
	if (s->proof && proof_take(s->proof, p, n, &s->err) < 0)
		return -1;
	return s->print ? print_some(s, p, n) : 0;
}

static int begin(struct proof *p, const struct options *o, const char *id,
		 struct bytes manifest, struct err *e)
{
	p->json = o->c.json;
	p->pinned = id || manifest.n;
	p->trail = trail_new(id, manifest, e);
	return p->trail ? 0 : -1;
}

static int fetch(struct options *o, struct peer *p, struct proof *proof,
		 struct err *e)
{
	struct sink s = { .fd = -1, .proof = o->verify ? proof : NULL,
			  .print = !o->verify && !o->out };
	struct wire *w = peer_wire(p, e);
	int r = w ? 0 : -1;
	if (r == 0 && o->verify)
		r = begin(proof, o, p->manifest.session_id,
			  buf_bytes(&p->signed_manifest), e);
	if (r == 0 && o->out) {
		s.fd = open(o->out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			    0600);
		if (s.fd < 0)
			r = err_sys(e, "cannot create %s", o->out);
	}
	if (r == 0)
		r = wire_audit(w, take, &s, e);
	if (s.err.code)
		*e = s.err;
	if (s.fd >= 0 && close(s.fd) < 0 && r == 0)
		r = err_sys(e, "cannot write %s", o->out);
	if (r == 0 && s.line.len)
		r = print_line(&s.line);
	buf_free(&s.line);
	wire_free(w);
	return r;
}

static int from_relay(struct options *o, char *arg, struct proof *proof,
		      struct err *e)
{
	struct peer *p = cmd_open(&o->c, arg, e);
	int r = p ? fetch(o, p, proof, e) : -1;
	peer_free(p);
	return r;
}

/* Which session it must be: the invite's, or --session's. */
static int expected_id(struct options *o, char *arg, char id[SESSION_ID + 1],
		       struct err *e)
{
	struct invite v;
	*id = 0;
	if (o->session && !key_is_session_id(bytes_str(o->session)))
		return err_set(e, ERR_USAGE, "--session takes a session id");
	if (!arg && !o->c.invite && !o->c.setting->invite) {
		if (o->session)
			memcpy(id, o->session, SESSION_ID + 1);
		return 0;
	}
	o->c.runner_too = true;
	if (cmd_invite(&v, &o->c, arg, e) < 0)
		return -1;
	memcpy(id, v.session_id, SESSION_ID + 1);
	invite_free(&v);
	return o->session && strcmp(o->session, id) != 0 ?
	       err_set(e, ERR_USAGE, "--session and the invite name two "
		       "sessions") : 0;
}

static int read_manifest(const char *path, struct buf *out, struct err *e)
{
	if (!path)
		return 0;
	int rc = file_read(AT_FDCWD, path, MANIFEST_MAX + 1, out, e);
	if (rc > 0)
		return err_set(e, ERR_NOT_FOUND, "no file %s", path);
	if (rc == 0 && out->len && out->data[out->len - 1] == '\n')
		out->len--;
	return rc;
}

static int read_all(int fd, const char *path, struct proof *proof,
		    struct err *e)
{
	uint8_t chunk[64 * 1024];
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read %s", path);
		if (n == 0)
			return 0;
		if (proof_take(proof, chunk, (size_t)n, e) < 0)
			return -1;
	}
}

/* Nothing here asks the relay. */
static int from_file(struct options *o, char *arg, const char *path,
		     struct proof *proof, struct err *e)
{
	char id[SESSION_ID + 1];
	cleanup_buf struct buf manifest = { 0 };
	cleanup_fd int fd = -1;
	if (expected_id(o, arg, id, e) < 0 ||
	    read_manifest(o->manifest, &manifest, e) < 0 ||
	    begin(proof, o, *id ? id : NULL, buf_bytes(&manifest), e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, "cannot open %s", path);
	return read_all(fd, path, proof, e);
}

/* With --verify, what looks like an invite is one; the other is the file. */
static int sort_out(struct options *o, struct args *a, char **invite,
		    char **file)
{
	*invite = *file = NULL;
	if (!o->verify) {
		*invite = cmd_take_invite(&o->c, a, 0);
		return a->n ? -1 : 0;
	}
	for (; a->n; a->n--, a->v++) {
		char *s = *a->v;
		bool link = cmd_is_link(s) || *s == '@' || !strcmp(s, "-");
		char **to = link ? invite : file;
		if (*to)
			return -1;
		*to = s;
	}
	return 0;
}

static const char *misuse(const struct options *o, const char *file)
{
	if (!o->verify && (o->session || o->manifest))
		return "--session and --manifest belong to --verify";
	if (!file && (o->session || o->manifest))
		return "--session and --manifest are for a saved trail";
	return file && o->out ? "--out is for what comes from the relay" :
	       NULL;
}

static int run(struct options *o, struct args *a)
{
	struct proof proof = { 0 };
	struct err e;
	char *invite, *file;
	const char *why = sort_out(o, a, &invite, &file) < 0 ?
			  "too many arguments" : misuse(o, file);
	if (why)
		return cmd_misuse(why);
	int r = file ? from_file(o, invite, file, &proof, &e) :
		       from_relay(o, invite, &proof, &e);
	if (r < 0)
		r = tell_fail(&e);
	else if (o->verify)
		r = proof_end(&proof);
	proof_free(&proof);
	return r;
}

int cmd_audit(struct setting *s, int argc, char **argv)
{
	struct options o = { .c = { .setting = s } };
	const struct flag flags[] = {
		CMD_FLAGS(o.c),
		{ "--out", FLAG_TEXT, &o.out, "FILE",
		  "write it to this new file instead" },
		{ "--verify", FLAG_SET, &o.verify, NULL,
		  "check it, and say what it proves and what not" },
		{ "--session", FLAG_TEXT, &o.session, "ID",
		  "the session that a saved trail must be about" },
		{ "--manifest", FLAG_TEXT, &o.manifest, "FILE",
		  "the manifest that a saved trail must begin with" },
		{ 0 }
	};
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs audit [FLAGS] [INVITE]\n"
			     "       airloxfs audit --verify [FLAGS] [INVITE] "
			     "[FILE]",
			     "Print the audit trail as JSON lines (owner's or "
			     "observer's invite): who joined,\nposted, "
			     "acknowledged, approved, revoked, with the signed "
			     "material.  --verify checks\nevery signature of "
			     "it, of a saved FILE without asking anybody.");
	return over >= 0 ? over : run(&o, &a);
}
