/* SPDX-License-Identifier: MIT */
#include "runner/box/verify.h"

#include <fcntl.h>
#include <string.h>

#include "core/json.h"
#include "runner/box/say.h"
#include "runner/box/slurp.h"
#include "runner/record/plain.h"

static const char verify_help[] =
	"usage: airlox-box verify FILE [--key FINGERPRINT] [--json]\n\n"
	"Whether a record is as it was signed, and by which key.\n\n"
	"  --key FINGERPRINT   fail unless that key signed it\n"
	"  --json              one line of JSON\n";
static const char show_help[] =
	"usage: airlox-box show FILE\n\n"
	"The parts of a record as text, one after the other, if it holds.\n";

struct options {
	const char *file, *key;
	bool json, help;
};

static int read_options(struct options *o, int argc, char **argv, bool verify,
			struct err *e)
{
	*o = (struct options){ 0 };
	for (int i = 1; i < argc; i++) {
		const char *s = argv[i];
		if (verify && !strcmp(s, "--key") && i + 1 < argc)
			o->key = argv[++i];
		else if (verify && !strcmp(s, "--json"))
			o->json = true;
		else if (!strcmp(s, "--help") || !strcmp(s, "-h"))
			o->help = true;
		else if (s[0] == '-' && s[1])
			return err_set(e, ERR_USAGE, "no flag %s, or its value "
				       "is missing; see airlox-box %s --help",
				       s, argv[0]);
		else if (o->file)
			return err_set(e, ERR_USAGE, "one record at a time");
		else
			o->file = s;
	}
	return o->file || o->help ? 0 :
	       err_set(e, ERR_USAGE, "which record? see airlox-box %s --help",
		       argv[0]);
}

static int check(struct proof *p, const struct options *o, struct buf *file,
		 struct err *e)
{
	bool in = !strcmp(o->file, "-");
	cleanup_fd int fd = in ? -1 : open(o->file, O_RDONLY | O_CLOEXEC);
	*p = (struct proof){ 0 };
	if (!in && fd < 0)
		err_sys(e, "cannot open it");
	else if (slurp(in ? STDIN_FILENO : fd, PROOF_FILE_MAX, file, e) == 0 &&
		 proof_check(p, buf_bytes(file), o->key, e) == 0)
		return 0;
	return err_prefix(e, "%s", in ? "stdin" : o->file);
}

/* {"key","parts","pinned","run","unaltered","why"} */
static void put_json(struct buf *b, const struct proof *p, bool holds,
		     const struct err *e)
{
	buf_addf(b, "{\"key\":\"%s\",\"parts\":%zu,\"pinned\":%s,\"run\":",
		 p->fingerprint, p->parts, p->pinned ? "true" : "false");
	json_put_string(b, p->run);
	buf_addf(b, ",\"unaltered\":%s,\"why\":", holds ? "true" : "false");
	json_put_string(b, bytes_str(holds ? "" : e->why));
	buf_add_byte(b, '}');
}

static void put_words(struct buf *b, const struct proof *p)
{
	buf_add_str(b, "unaltered since signing: run ");
	buf_add(b, p->run.p, p->run.n);
	buf_addf(b, ", %zu parts\nsigned by %s\n", p->parts, p->fingerprint);
	if (!p->pinned)
		buf_add_str(b, "signer not pinned: anyone can sign a record; "
			    "compare the fingerprint with the one you were "
			    "told, or give it with --key\n");
}

int verify_main(int argc, char **argv)
{
	struct options o;
	struct proof p;
	struct err e;
	cleanup_buf struct buf file = { 0 }, out = { 0 };
	if (read_options(&o, argc, argv, true, &e) < 0)
		return say_fail(&e);
	if (o.help) {
		say_text(bytes_str(verify_help));
		return 0;
	}
	bool holds = check(&p, &o, &file, &e) == 0;
	if (o.json) {
		put_json(&out, &p, holds, &e);
		say_json(buf_bytes(&out));
	} else if (holds) {
		put_words(&out, &p);
		say_text(buf_bytes(&out));
	}
	return holds ? 0 : o.json ? err_exit(e.code) : say_fail(&e);
}

int show_main(int argc, char **argv)
{
	struct options o;
	struct proof p;
	struct err e;
	cleanup_buf struct buf file = { 0 }, out = { 0 };
	if (read_options(&o, argc, argv, false, &e) < 0)
		return say_fail(&e);
	if (o.help) {
		say_text(bytes_str(show_help));
		return 0;
	}
	if (check(&p, &o, &file, &e) < 0 || plain_put(&out, &p, &e) < 0)
		return say_fail(&e);
	say_clean(buf_bytes(&out));
	return 0;
}
