/* SPDX-License-Identifier: MIT
 *
 * send text, send file: one item each, posted before the command ends. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/cmd.h"
#include "airloxfs/print.h"
#include "core/host/check.h"
#include "core/host/draft.h"
#include "core/host/tell.h"

#define GIVE_UP_MS 60000

struct sending {
	struct peer *peer;
	struct draft_post post;
	struct tell_progress progress;
	bool json;
	struct buf doc;		/* what was sent, as JSON */
};

static void moved(void *arg, uint64_t done)
{
	tell_progress(arg, done);
}

static int sending_open(struct sending *s, struct common *c, char *arg,
			struct err *e)
{
	*s = (struct sending){ .json = c->json };
	s->peer = cmd_open(c, arg, e);
	s->post.wire = s->peer ? peer_wire(s->peer, e) : NULL;
	s->post.give_up_ms = GIVE_UP_MS;
	s->post.moved = moved;
	s->post.moved_arg = &s->progress;
	return s->post.wire ? 0 : -1;
}

static void sending_close(struct sending *s)
{
	wire_free(s->post.wire);
	peer_free(s->peer);
	buf_free(&s->doc);
}

static int post(struct sending *s, struct draft *d, struct item_ref *ref,
		struct err *e)
{
	struct sealed sealed = { .blob_fd = -1 };
	uint64_t seq;
	s->progress.total = (uint64_t)draft_size(d);
	int r = draft_send(d, s->peer, &s->post, &sealed, &seq, e);
	tell_progress_end(&s->progress);
	*ref = sealed.ref;
	sealed_free(&sealed);
	return r;
}

/* --- text --- */

static int send_text(struct sending *s, const char *arg, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	struct draft d = { 0 };
	struct item_ref ref;
	if (strcmp(arg, "-") != 0)
		buf_add_str(&text, arg);
	else if (file_read_fd(STDIN_FILENO, DRAFT_TEXT_MAX, &text, e) < 0)
		return -1;
	s->progress.what = "sending";
	int r = draft_text(&d, s->peer, buf_bytes(&text), e);
	if (r == 0)
		r = post(s, &d, &ref, e);
	draft_free(&d);
	if (r < 0)
		return -1;
	if (!s->json) {
		tell_say("sent %s", ref.id);
		return 0;
	}
	buf_add_str(&s->doc, "{\"sent\":");
	item_put_ref(&s->doc, &ref);
	buf_add_byte(&s->doc, '}');
	return print_doc(&s->doc);
}

static int cmd_text(struct setting *set, int argc, char **argv)
{
	struct common c = { .setting = set };
	const struct flag flags[] = { CMD_FLAGS(c), { 0 } };
	struct sending s = { 0 };
	struct args a;
	struct err e;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs send text [FLAGS] [INVITE] TEXT",
			     "Send a message; - reads it from stdin.");
	if (over >= 0)
		return over;
	char *arg = cmd_take_invite(&c, &a, 1);
	if (a.n != 1)
		return cmd_misuse(a.n ? "one text at a time; quote it" :
				  "no text");
	int r = sending_open(&s, &c, arg, &e);
	if (r == 0)
		r = send_text(&s, a.v[0], &e);
	sending_close(&s);
	return r < 0 ? tell_fail(&e) : r ? r : tell_flush();
}

/* --- files --- */

static int send_file(struct sending *s, const char *path, struct err *e)
{
	static const struct draft_look look = { check_content_whole,
						check_image };
	struct draft d = { 0 };
	struct zip_source body;
	struct item_ref ref;
	struct stat st;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY |
				 O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "cannot open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s is not a regular file", path);
	s->progress.what = path;
	int r = draft_source_fd(&body, &fd, e);
	if (r == 0)
		r = draft_file(&d, s->peer, bytes_str(path), &body, &look,
			       e);
	if (r == 0)
		r = post(s, &d, &ref, e);
	draft_free(&d);
	if (r < 0)
		return err_prefix(e, "%s", path);
	if (!s->json) {
		tell_say("sent %s as %s", path, ref.id);
		return 0;
	}
	buf_add_str(&s->doc, s->doc.len ? ",{" : "{");
	print_member(&s->doc, "path", path);
	json_put_key(&s->doc, "ref");
	item_put_ref(&s->doc, &ref);
	buf_add_byte(&s->doc, '}');
	return 0;
}

static int print_sent(struct sending *s, const char *failed,
		      const struct err *e)
{
	cleanup_buf struct buf doc = { 0 };
	buf_add_byte(&doc, '{');
	if (failed) {
		print_member(&doc, "error", e->why);
		print_member(&doc, "failed", failed);
	}
	json_put_key(&doc, "sent");
	buf_add_byte(&doc, '[');
	buf_add(&doc, s->doc.data, s->doc.len);
	buf_add_str(&doc, "]}");
	return print_doc(&doc);
}

static int send_files(struct sending *s, const struct args *a, struct err *e)
{
	int i = 0;
	while (i < a->n && send_file(s, a->v[i], e) == 0)
		i++;
	const char *failed = i < a->n ? a->v[i] : NULL;
	int r = s->json ? print_sent(s, failed, e) : 0;
	return failed ? -1 : r;
}

static int cmd_file(struct setting *set, int argc, char **argv)
{
	struct common c = { .setting = set };
	const struct flag flags[] = { CMD_FLAGS(c), { 0 } };
	struct sending s = { 0 };
	struct args a;
	struct err e;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs send file [FLAGS] [INVITE] FILE...",
			     "Send files, each as an item of its own.");
	if (over >= 0)
		return over;
	/* one argument is a file where the invite comes from elsewhere; the
	 * first of several is the invite only if it is a link */
	bool elsewhere = c.invite || set->invite;
	char *arg = cmd_take_invite(&c, &a, elsewhere ? a.n : 1);
	if (a.n == 0)
		return cmd_misuse("no file");
	int r = sending_open(&s, &c, arg, &e);
	if (r == 0)
		r = send_files(&s, &a, &e);
	sending_close(&s);
	return r < 0 ? tell_fail(&e) : r ? r : tell_flush();
}

int cmd_send(struct setting *s, int argc, char **argv)
{
	static const char usage[] =
		"usage: airloxfs send text [FLAGS] [INVITE] TEXT\n"
		"       airloxfs send file [FLAGS] [INVITE] FILE...\n";
	if (argc > 1 && !strcmp(argv[1], "text"))
		return cmd_text(s, argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "file"))
		return cmd_file(s, argc - 1, argv + 1);
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return tell_flush();
	}
	return cmd_misuse("send what: text or file");
}
