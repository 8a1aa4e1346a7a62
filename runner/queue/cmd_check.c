/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/json.h"
#include "runner/queue/cmd.h"
#include "runner/tell.h"

#define PYTHON_MIN 8
#define PYTHON_MAX 20
#define SEARCH_MS 5000

struct row {
	const char *key, *label;
	char value[400];
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void set(struct row *r, const char *key, const char *label,
		const char *value)
{
	*r = (struct row){ .key = key, .label = label };
	snprintf(r->value, sizeof r->value, "%.390s", value);
}

/* All are looked for at once: what stands in PATH under such a name may be a
 * script that takes its time to say that it is none. */
struct search {
	pid_t pid;
	int from;	/* the path, or nothing */
};

static void start_search(struct search *s, const char *name)
{
	int p[2];
	*s = (struct search){ .pid = -1, .from = -1 };
	if (pipe2(p, O_CLOEXEC) < 0)
		return;
	s->pid = fork();
	if (s->pid == 0) {
		struct python *found = malloc(sizeof *found);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (found && python_find(found, name, NULL) == 0)
			dprintf(p[1], "%s", found->exe);
		_exit(0);
	}
	close(p[1]);
	s->from = p[0];
}

/* False: it did not say in time, or there is none. */
static bool end_search(struct search *s, int64_t until_ms, char *to,
		       size_t cap)
{
	int64_t left = until_ms - now_ms();
	struct pollfd p = { .fd = s->from, .events = POLLIN };
	ssize_t n = -1;
	if (s->from >= 0 && poll(&p, 1, left > 0 ? (int)left : 0) > 0)
		n = read(s->from, to, cap - 1);
	to[n > 0 ? n : 0] = 0;
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	if (s->from >= 0)
		close(s->from);
	return n > 0;
}

/* "python3.11 (/usr/bin/python3.11), ..." */
static void find_runtimes(char *to, size_t cap)
{
	struct search all[PYTHON_MAX + 1];
	char name[24], exe[PATH_MAX];
	size_t n = 0;
	int64_t until = now_ms() + SEARCH_MS;
	to[0] = 0;
	for (int i = PYTHON_MIN; i <= PYTHON_MAX; i++) {
		snprintf(name, sizeof name, "python3.%d", i);
		start_search(&all[i], name);
	}
	for (int i = PYTHON_MIN; i <= PYTHON_MAX; i++)
		if (end_search(&all[i], until, exe, sizeof exe) && n < cap)
			n += (size_t)snprintf(to + n, cap - n,
					      "%spython3.%d (%s)",
					      n ? ", " : "", i, exe);
}

/* In the order of their keys. */
static size_t fill(struct row *r, const struct site *h, const struct err *e)
{
	char text[400];
	size_t n = 0;
	bool fine = e->code == ERR_NONE;
	set(&r[n++], "bubblewrap", "bubblewrap", h->bwrap_version[0] ?
	    h->bwrap_version : "missing");
	set(&r[n++], "job_user", "jobs run as", h->job_user);
	if (h->cgroups.kind == CGROUP_NONE && h->cgroups.why_not[0])
		snprintf(text, sizeof text, "%s: %s", cgroup_word(
			 h->cgroups.kind), h->cgroups.why_not);
	else
		snprintf(text, sizeof text, "%s",
			 cgroup_word(h->cgroups.kind));
	set(&r[n++], "limits", "limits by", text);
	find_runtimes(text, sizeof text);
	set(&r[n++], "runtimes", "runtimes", text[0] ? text : "none");
	set(&r[n++], "sandbox", "sandbox", fine ? "works" : e->why);
	set(&r[n++], "scratch", "scratch", h->scratch);
	set(&r[n++], "seccomp", "seccomp",
	    h->seccomp >= 0 ? "yes" : "not tried");
	return n;
}

static void print_json(const struct row *r, size_t n, bool ok)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_byte(&b, '{');
	for (size_t i = 0; i < n; i++) {
		json_put_key(&b, r[i].key);
		json_put_string(&b, bytes_str(r[i].value));
		if (!strcmp(r[i].key, "limits")) {
			json_put_key(&b, "ok");
			buf_add_str(&b, ok ? "true" : "false");
		}
	}
	buf_add_str(&b, "}\n");
	fwrite(b.data, 1, b.len, stdout);
}

int cmd_check(int argc, char **argv)
{
	struct cmd_common c = { 0 };
	bool json = false, help;
	const struct flag flags[] = {
		{ "--json", NULL, &json, NULL, "one JSON object" },
		CMD_COMMON_FLAGS(&c), { 0 }
	};
	struct serve_options o;
	struct site h;
	struct err e = { 0 };
	struct row rows[8];
	int n;

	if (args_parse(flags, argc, argv, &n, &help, &e) < 0)
		return tell_fail(&e);
	if (help) {
		args_help("airlox-runner check [--json] [FLAGS]",
			  "Tries a sandbox and says what this host can "
			  "enforce.", flags);
		return 0;
	}
	if (n) {
		err_set(&e, ERR_USAGE, "check takes no argument");
		return tell_fail(&e);
	}
	(void)cmd_open(&c, &h, &o, &e);
	size_t count = fill(rows, &h, &e);
	if (json)
		print_json(rows, count, e.code == ERR_NONE);
	for (size_t i = 0; !json && i < count; i++)
		printf("%-12s %s\n", rows[i].label, rows[i].value);
	site_close(&h);
	return fflush(stdout) ? err_exit(ERR_SYS) : err_exit(e.code);
}
