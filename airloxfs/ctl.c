/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/ctl.h"
#include "airloxfs/deliver.h"
#include "airloxfs/in.h"
#include "airloxfs/out.h"
#include "airloxfs/text.h"

static int run_line(struct mount *m, struct node *n, const char *p,
		    size_t len,
		    int (*verb)(struct mount *m, struct node *n, char *line,
				struct err *e))
{
	char line[CTL_LINE_MAX];
	struct err e;
	if (len == 0)
		return 0;
	if (len >= sizeof line || memchr(p, 0, len)) {
		err_set(&e, ERR_VERB, "a verb is one line of text: cat the "
			"file to see which there are");
	} else {
		memcpy(line, p, len);
		line[len] = 0;
		if (verb(m, n, line, &e) == 0)
			return 0;
	}
	mount_failed(m, &e);
	return err_errno(&e);
}

int ctl_lines(struct mount *m, struct node *n, const void *p, size_t len,
	      int (*verb)(struct mount *m, struct node *n, char *line,
			  struct err *e))
{
	const char *at = p, *end = at + len;
	int err = 0;
	while (!err && at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl ? nl : end;
		err = run_line(m, n, at, (size_t)(stop - at), verb);
		at = nl ? nl + 1 : end;
	}
	return err;
}

static int do_send(struct mount *m, const char *arg, struct err *e)
{
	return out_send(m, arg, e);
}

static int do_retry(struct mount *m, const char *arg, struct err *e)
{
	return out_retry(m, arg, e);
}

static int do_fetch(struct mount *m, const char *arg, struct err *e)
{
	char *end;
	unsigned long long seq = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end)
		return err_set(e, ERR_VERB, "fetch takes the number of an "
			       "item: fetch 12");
	return in_fetch(m, seq, e);
}

static int do_reconnect(struct mount *m, const char *arg, struct err *e)
{
	(void)arg, (void)e;
	deliver_reconnect(m);
	return 0;
}

#define WRITERS (1u << ROLE_OWNER | 1u << ROLE_SENDER)
#define READERS (WRITERS | 1u << ROLE_OBSERVER)

static const struct verb {
	const char *name, *arg;		/* arg: "" where it takes none */
	unsigned roles;
	int (*run)(struct mount *m, const char *arg, struct err *e);
} verbs[] = {
	{ "send", "NAME", WRITERS, do_send },
	{ "retry", "NAME|all", WRITERS, do_retry },
	{ "fetch", "SEQ", READERS, do_fetch },
	{ "reconnect", "", READERS | 1u << ROLE_RUNNER, do_reconnect },
};
#define VERBS (sizeof verbs / sizeof *verbs)

static bool may(const struct mount *m, const struct verb *v)
{
	return v->roles >> m->peer->invite.role & 1;
}

static int verb(struct mount *m, struct node *n, char *line, struct err *e)
{
	(void)n;
	char *arg = strchr(line, ' ');
	if (arg)
		*arg++ = 0;
	for (size_t i = 0; i < VERBS; i++) {
		const struct verb *v = &verbs[i];
		if (strcmp(v->name, line) != 0 || !may(m, v))
			continue;
		if ((v->arg[0] != 0) != (arg && *arg))
			return err_set(e, ERR_VERB, "write it as: %s %s",
				       v->name, v->arg);
		return v->run(m, arg ? arg : "", e);
	}
	return err_set(e, ERR_VERB, "ctl does not know that verb: cat ctl "
		       "lists those it knows");
}

static int ctl_open(struct mount *m, struct handle *h)
{
	h->direct = true;
	for (size_t i = 0; i < VERBS; i++)
		if (may(m, &verbs[i]))
			buf_addf(&h->bytes, "%s%s%s\n", verbs[i].name,
				 verbs[i].arg[0] ? " " : "", verbs[i].arg);
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static int ctl_write(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	return ctl_lines(m, h->node, p, n, verb);
}

const struct node_ops ctl_ops = {
	.open = ctl_open, .read = text_read, .write = ctl_write,
	.truncate = fs_truncate_nothing,
};
