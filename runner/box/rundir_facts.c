/* SPDX-License-Identifier: MIT */
#include "runner/box/rundir_facts.h"

#include <string.h>

#include "core/clear.h"
#include "core/json.h"

#define STATES 4

static const char *const words[STATES] = {
	[RUNDIR_STARTING] = "starting", [RUNDIR_RUNNING] = "running",
	[RUNDIR_WAITING] = "waiting", [RUNDIR_ENDING] = "ending",
};

const char *rundir_word(enum rundir_state state) { return words[state]; }

static void put_process(struct buf *b, const char *key,
			const struct rundir_process *p)
{
	json_put_key(b, key);
	buf_add_str(b, "{");
	json_put_key_int(b, "born", p->born);
	json_put_key_int(b, "pid", p->pid);
	buf_add_str(b, "}");
}

/* A path that is no UTF-8 cannot be here as it is, and one that is not
 * absolute is of no use: it is left out. */
static void put_path(struct buf *b, const char *key, const char *path)
{
	struct bytes s = bytes_str(path);
	if (*path != '/' || !clear_utf8(s))
		s.n = 0;
	json_put_key_string(b, key, s);
}

static void put_text(struct buf *b, const char *key, const char *text)
{
	cleanup_buf struct buf clean = { 0 };
	clear_escape(&clean, bytes_str(text));
	json_put_key_string(b, key, buf_bytes(&clean));
	b->failed |= clean.failed;
}

void rundir_facts_put(struct buf *b, const struct rundir *d)
{
	buf_add_str(b, "{");
	json_put_key_int(b, "began_ms", d->began_ms);
	put_process(b, "broker", &d->broker);
	put_text(b, "command", d->command);
	put_process(b, "keeper", &d->keeper);
	put_process(b, "owner", &d->owner);
	put_text(b, "policy", d->policy);
	put_path(b, "record", d->record);
	put_path(b, "scratch", d->scratch);
	json_put_key_int(b, "since_ms", d->since_ms);
	json_put_key_string(b, "state", bytes_str(words[d->state]));
	put_text(b, "waits", d->waits);
	buf_add_str(b, "}");
}

static void take_process(struct json_reader *r, const char *key,
			 struct rundir_process *p)
{
	struct json_reader in;
	struct err e = { 0 };
	const struct json *v = json_take_object(r, key);
	if (r->bad)
		return;
	json_open(&in, v, key);
	p->born = json_take_int(&in, "born", 0, JSON_INT_MAX);
	p->pid = json_take_int(&in, "pid", 0, INT32_MAX);
	if (json_close(&in, &e) < 0)
		json_fail(r, key, "no process");
}

static void take_text(struct json_reader *r, const char *key, char *to,
		      size_t size)
{
	struct bytes s = json_take_string(r, key);
	if (r->bad)
		return;
	if (s.n >= size)
		s.n = size - 1;
	if (s.n)
		memcpy(to, s.p, s.n);
	to[s.n] = 0;
}

/* A path that was cut would be another one. */
static void take_path(struct json_reader *r, const char *key,
		      char to[PATH_MAX])
{
	struct bytes s = json_take_string(r, key);
	if (!r->bad && (s.n >= PATH_MAX || (s.n && (s.p[0] != '/' ||
						    memchr(s.p, 0, s.n)))))
		json_fail(r, key, "no path");
	if (r->bad)
		return;
	if (s.n)
		memcpy(to, s.p, s.n);
	to[s.n] = 0;
}

static void take_state(struct json_reader *r, enum rundir_state *state)
{
	struct bytes s = json_take_string(r, "state");
	for (int i = 0; i < STATES && !r->bad; i++) {
		if (bytes_eq(s, bytes_str(words[i]))) {
			*state = (enum rundir_state)i;
			return;
		}
	}
	json_fail(r, "state", "unknown");
}

int rundir_facts_read(struct rundir *d, struct bytes text, struct err *e)
{
	struct rundir in = *d;
	struct json_reader r;
	struct json *doc = json_parse(text, e);
	if (!doc)
		return -1;
	json_open(&r, doc, "run");
	in.began_ms = json_take_int(&r, "began_ms", 0, JSON_INT_MAX);
	take_process(&r, "broker", &in.broker);
	take_text(&r, "command", in.command, sizeof in.command);
	take_process(&r, "keeper", &in.keeper);
	take_process(&r, "owner", &in.owner);
	take_text(&r, "policy", in.policy, sizeof in.policy);
	take_path(&r, "record", in.record);
	take_path(&r, "scratch", in.scratch);
	in.since_ms = json_take_int(&r, "since_ms", 0, JSON_INT_MAX);
	take_state(&r, &in.state);
	take_text(&r, "waits", in.waits, sizeof in.waits);
	int rc = json_close(&r, e);
	json_free(doc);
	if (rc == 0)
		*d = in;
	return rc;
}
