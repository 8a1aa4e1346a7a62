/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "runner/box/check.h"
#include "runner/box/say.h"
#include "runner/box/slurp.h"
#include "runner/policy/show.h"
#include "runner/policy/tree.h"

static const char help[] =
	"usage: airlox-box check POLICY [--url URL] [--method M] [--json]\n\n"
	"Reads a policy, prints its rules in order, what is missing and what "
	"is risky.\n\n"
	"  --url URL     what would happen to a request, and why\n"
	"  --method M    its method (default GET)\n"
	"  --json        rules, warnings and what is missing, as JSON\n";

struct policy *check_read_fd(int fd, const char *name, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	struct policy *p = NULL;
	if (slurp(fd, TREE_BYTES_MAX, &text, e) == 0)
		p = policy_read(buf_bytes(&text), e);
	if (!p)
		err_prefix(e, "%s", name);
	return p;
}

struct policy *check_read(const char *path, struct err *e)
{
	if (!strcmp(path, "-"))
		return check_read_fd(STDIN_FILENO, "stdin", e);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return check_read_fd(fd, path, e);
	err_sys(e, "%s: cannot open it", path);
	return NULL;
}

struct options {
	const char *policy, *url, *method;
	bool json, help;
};

static int read_options(struct options *o, int argc, char **argv,
			struct err *e)
{
	*o = (struct options){ .method = "GET" };
	for (int i = 1; i < argc; i++) {
		const char *s = argv[i];
		const char **value = !strcmp(s, "--url") ? &o->url :
				     !strcmp(s, "--method") ? &o->method :
				     NULL;
		if (value && i + 1 < argc)
			*value = argv[++i];
		else if (value)
			return err_set(e, ERR_USAGE, "%s needs a value", s);
		else if (!strcmp(s, "--json"))
			o->json = true;
		else if (!strcmp(s, "--help") || !strcmp(s, "-h"))
			o->help = true;
		else if (s[0] == '-' && s[1])
			return err_set(e, ERR_USAGE, "no flag %s; see "
				       "airlox-box check --help", s);
		else if (o->policy)
			return err_set(e, ERR_USAGE, "one policy at a time");
		else
			o->policy = s;
	}
	return o->policy || o->help ? 0 :
	       err_set(e, ERR_USAGE, "which policy? see airlox-box check "
		       "--help");
}

static int check_url(const struct policy *p, const struct options *o)
{
	cleanup_buf struct buf out = { 0 };
	struct err e;
	bool allowed = false;
	if (show_url(&out, p, o->method, o->url, &allowed, &e) < 0)
		return say_fail(&e);
	say_text(buf_bytes(&out));
	return allowed ? 0 : err_exit(ERR_FORBIDDEN);
}

/* Each line behind the policy's name, on stderr. */
static void say_lines(const char *name, const char *kind, struct buf *text)
{
	char *save = NULL, *all = buf_cstr(text);
	for (char *s = all ? strtok_r(all, "\n", &save) : NULL; s;
	     s = strtok_r(NULL, "\n", &save))
		say_note("%s%s: %s", kind, name, s);
}

static int check_all(const struct policy *p, const struct options *o)
{
	cleanup_buf struct buf out = { 0 }, risks = { 0 }, missing = { 0 };
	size_t lacks = show_missing(&missing, p);
	if (o->json) {
		show_json(&out, p);
		say_json(buf_bytes(&out));
	} else {
		show_rules(&out, p);
		show_risks(&risks, p);
		say_text(buf_bytes(&out));
	}
	say_lines(o->policy, "warning: ", &risks);
	say_lines(o->policy, "", &missing);
	return lacks ? err_exit(ERR_POLICY) : 0;
}

int check_main(int argc, char **argv)
{
	struct options o;
	struct err e;
	if (read_options(&o, argc, argv, &e) < 0)
		return say_fail(&e);
	if (o.help) {
		say_text(bytes_str(help));
		return 0;
	}
	struct policy *p = check_read(o.policy, &e);
	if (!p)
		return say_fail(&e);
	int r = o.url ? check_url(p, &o) : check_all(p, &o);
	policy_free(p);
	return r;
}
