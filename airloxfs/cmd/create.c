/* SPDX-License-Identifier: MIT
 *
 * create: a new session on a relay.  Its owner key is made here, and goes
 * nowhere but into the owner's link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/links.h"
#include "core/host/tell.h"

#define MB (INT64_C(1024) * 1024)

struct creating {
	struct common c;
	const char *profile;
	const char *relay, *ttl, *max_mb, *runtime, *timeout, *memory, *file;
	struct flag_list types, packages;
	bool execute, network, no_out, no_approval;

	struct manifest m;
	struct invite owner;	/* what the new session's owner holds */
	struct clock clock;
};

/* --- from flags to a manifest --- */

static void set_default(const char **flag, const char *value)
{
	if (!*flag)
		*flag = value;
}

/* What no flag said.  host-runner: for a machine that stays and works for
 * others, as long as its owner approves it. */
static int fill_defaults(struct creating *k, struct err *e)
{
	bool host = k->profile && !strcmp(k->profile, "host-runner");

	if (k->profile && !host)
		return err_set(e, ERR_USAGE, "--profile: host-runner");
	if (host && k->no_approval)
		return err_set(e, ERR_USAGE, "--profile host-runner asks for "
			       "approval; leave --no-approval out");
	k->execute |= host;
	set_default(&k->ttl, host ? "never" : "1h");
	set_default(&k->max_mb, host ? "100" : "25");
	set_default(&k->runtime, "python3.12");
	set_default(&k->timeout, host ? "30m" : "60s");
	set_default(&k->memory, host ? "4096" : "512");
	return 0;
}

static int number(const char *flag, const char *text, int64_t min, int64_t max,
		  int64_t *out, struct err *e)
{
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno || end == text || *end || v < min || v > max)
		return err_set(e, ERR_USAGE, "%s: a number from %lld to %lld",
			       flag, (long long)min, (long long)max);
	*out = v;
	return 0;
}

/* Calls `take` with each part of comma-separated texts. */
static int each_part(const struct flag_list *l, struct manifest *m,
		     int (*take)(struct manifest *m, struct bytes part,
				 struct err *e), struct err *e)
{
	for (int i = 0; i < l->n; i++)
		for (const char *s = l->v[i]; *s;) {
			size_t n = strcspn(s, ", ");
			struct bytes part = { (const uint8_t *)s, n };
			if (n && take(m, part, e) < 0)
				return -1;
			s += n + (s[n] != 0);
		}
	return 0;
}

static int take_type(struct manifest *m, struct bytes word, struct err *e)
{
	enum item_type t = type_parse(word);
	if (t == TYPE_NONE)
		return err_set(e, ERR_USAGE, "--types: of text, py, md, zip, "
			       "image");
	if (!m->allowed[t])
		m->order[m->allowed_n++] = t;
	m->allowed[t] = true;
	return 0;
}

static int take_package(struct manifest *m, struct bytes name, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	struct job_limits *j = &m->job;
	if (manifest_package(&b, name) < 0)
		return err_set(e, ERR_USAGE, "--package: not a package name: "
			       "%.*s", (int)name.n, (const char *)name.p);
	if (manifest_has_package(m, name))
		return 0;
	void *v = realloc(j->packages, (j->package_n + 1) * sizeof(char *));
	if (!v)
		return err_set(e, ERR_MEMORY, "out of memory");
	j->packages = v;
	j->packages[j->package_n] = buf_steal(&b);
	if (!j->packages[j->package_n])
		return err_set(e, ERR_MEMORY, "out of memory");
	j->package_n++;
	return 0;
}

static int fill_types(struct creating *k, struct err *e)
{
	static const struct flag_list all = { { "text,py,md,zip,image" }, 1 };
	return each_part(k->types.n ? &k->types : &all, &k->m, take_type, e);
}

static int fill_job(struct creating *k, struct err *e)
{
	struct job_limits *j = &k->m.job;
	int64_t ms;
	if (!k->execute) {
		if (k->network || k->packages.n || k->no_out || k->no_approval)
			return err_set(e, ERR_USAGE, "--network, --package, "
				       "--no-out-files and --no-approval need "
				       "--execute");
		return 0;
	}
	k->m.mode = MODE_EXECUTE;
	if (strlen(k->runtime) >= sizeof j->runtime)
		return err_set(e, ERR_USAGE, "--runtime: like python3.12");
	strcpy(j->runtime, k->runtime);
	if (clock_parse_duration(bytes_str(k->timeout), &ms) < 0 ||
	    ms < 1000 || ms > 3600 * 1000)
		return err_set(e, ERR_USAGE, "--job-timeout: from 1s to 1h");
	j->timeout_s = ms / 1000;
	j->network = k->network;
	j->return_out = !k->no_out;
	j->approve_runners = !k->no_approval;
	if (number("--job-memory", k->memory, 32, 65536, &j->memory_mb, e) < 0)
		return -1;
	return each_part(&k->packages, &k->m, take_package, e);
}

static int fill_ttl(struct creating *k, struct err *e)
{
	int64_t ttl;
	if (clock_parse_duration(bytes_str(k->ttl), &ttl) < 0 || ttl <= 0 ||
	    (ttl != CLOCK_FOREVER && ttl > MANIFEST_TTL_MAX_MS))
		return err_set(e, ERR_USAGE, "--ttl: like 30m, 1h or 1d, at "
			       "most 30d, or never");
	k->m.created_at_ms = clock_relay_ms(&k->clock);
	k->m.expires_at_ms = ttl == CLOCK_FOREVER ? MANIFEST_FOREVER :
		k->m.created_at_ms + ttl;
	return 0;
}

static void fill_keys(struct creating *k)
{
	uint8_t seed[PRIM_SEED];
	struct invite *v = &k->owner;
	prim_random(v->keys.role_seed, PRIM_SEED);
	memcpy(seed, v->keys.role_seed, PRIM_SEED);
	session_from_owner(&v->keys, seed);
	v->role = ROLE_OWNER;
	for (int i = 0; i < ROLES; i++) {
		uint8_t role[PRIM_SEED];
		session_role_seed(role, seed, (enum role)i);
		prim_pub(k->m.pub[i], role);
		prim_wipe(role, sizeof role);
	}
	key_session_id(k->m.session_id, k->m.pub[ROLE_OWNER]);
	strcpy(v->session_id, k->m.session_id);
	prim_wipe(seed, sizeof seed);
}

static int fill_base(struct creating *k, struct err *e)
{
	cleanup_buf struct buf base = { 0 };
	const char *relay = k->relay ? k->relay : k->c.setting->relay;
	if (!relay)
		return err_set(e, ERR_USAGE, "which relay? give --relay URL, "
			       "or set AIRLOX_RELAY");
	cmd_allow_plain(&k->c);
	if (invite_base(&base, bytes_str(relay), e) < 0) {
		e->code = ERR_USAGE;
		return err_prefix(e, "--relay");
	}
	k->owner.base_url = buf_steal(&base);
	if (!k->owner.base_url)
		return err_set(e, ERR_MEMORY, "out of memory");
	cmd_warn_plain(k->owner.base_url);
	return 0;
}

/* --- to the relay --- */

/* A session of a wrong clock is over before it began, or never. */
static int check_clock(struct creating *k, struct wire *w, struct err *e)
{
	char span[24];
	if (wire_health(w, e) < 0)
		return -1;
	int64_t skew = clock_skew_ms(&k->clock);
	if (llabs(skew) <= CLOCK_SKEW_MAX_MS)
		return 0;
	clock_span(span, llabs(skew));
	return err_set(e, ERR_CLOCK, "this machine's clock is %s %s the "
		       "relay's; set it right first", span,
		       skew > 0 ? "behind" : "ahead of");
}

static int write_owner_file(struct creating *k, struct err *e)
{
	cleanup_buf struct buf link = { 0 };
	if (!k->file)
		return 0;
	if (invite_build(&link, k->owner.base_url, k->owner.keys.role_seed,
			 ROLE_OWNER, e) < 0)
		return -1;
	buf_add_byte(&link, '\n');
	return file_write_new(AT_FDCWD, k->file, buf_bytes(&link), 0600, e);
}

static int post(struct creating *k, struct wire *w, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	if (manifest_build(&text, &k->m, k->owner.keys.role_seed, e) < 0 ||
	    write_owner_file(k, e) < 0)
		return -1;
	if (wire_create(w, buf_bytes(&text), e) == 0)
		return 0;
	if (k->file)
		unlink(k->file);
	return -1;
}

/* The owner takes part at once, as the published client's does. */
static int join(struct creating *k, struct err *e)
{
	struct peer_options o;
	struct invite v = k->owner;
	v.base_url = strdup(v.base_url);
	if (!v.base_url)
		return err_set(e, ERR_MEMORY, "out of memory");
	cmd_options(&o, &k->c);
	struct peer *p = peer_open(&v, &o, e);
	peer_free(p);
	return p ? 0 : -1;
}

static int create(struct creating *k, struct err *e)
{
	fill_keys(k);
	if (fill_defaults(k, e) < 0 || fill_base(k, e) < 0 ||
	    fill_types(k, e) < 0 || fill_job(k, e) < 0 ||
	    number("--max-item-mb", k->max_mb, 1, 1024, &k->m.max_item_bytes,
		   e) < 0)
		return -1;
	k->m.max_item_bytes *= MB;
	struct wire *w = wire_new(k->owner.base_url, k->m.session_id, NULL,
				  &k->clock, e);
	int r = w && check_clock(k, w, e) == 0 && fill_ttl(k, e) == 0 &&
		post(k, w, e) == 0 ? 0 : -1;
	wire_free(w);
	return r < 0 ? -1 : join(k, e);
}

static void say_limits(const struct manifest *m)
{
	const struct job_limits *j = &m->job;

	printf("jobs     %s, at most %lld s and %lld MB, %s, %s\n"
	       "items    at most %lld MiB\n\n", j->runtime,
	       (long long)j->timeout_s, (long long)j->memory_mb,
	       j->network ? "network" : "no network",
	       j->approve_runners ? "runners need your approval" :
				    "runners need no approval",
	       (long long)(m->max_item_bytes / MB));
}

static int show(struct creating *k, struct err *e)
{
	char span[24];
	if (!k->c.json) {
		clock_span(span, k->m.expires_at_ms == MANIFEST_FOREVER ?
			   CLOCK_FOREVER :
			   k->m.expires_at_ms - k->m.created_at_ms);
		tell_say("created %s, lasts %s\n", k->m.session_id, span);
		if (k->execute)
			say_limits(&k->m);
	}
	return links_print(&k->owner, &k->m, k->file, k->c.json, e);
}

int cmd_create(struct setting *set, int argc, char **argv)
{
	struct creating k = { .c = { .setting = set } };
	const struct flag flags[] = {
		{ "--relay", FLAG_TEXT, &k.relay, "URL",
		  "the relay (AIRLOX_RELAY)" },
		{ "--profile", FLAG_TEXT, &k.profile, "NAME",
		  "host-runner: never ends, jobs of 30m and 4096 MB, items "
		  "of 100" },
		{ "--execute", FLAG_SET, &k.execute, NULL,
		  "let runners run Python in this session" },
		{ "--ttl", FLAG_TEXT, &k.ttl, "TIME",
		  "how long it lasts: 30m, 1h (default), 1d, never" },
		{ "--types", FLAG_LIST, &k.types, "LIST",
		  "of text,py,md,zip,image (default: all)" },
		{ "--max-item-mb", FLAG_TEXT, &k.max_mb, "N",
		  "largest item, in MiB (default 25)" },
		{ "--runtime", FLAG_TEXT, &k.runtime, "PYTHON",
		  "of jobs (default python3.12)" },
		{ "--job-timeout", FLAG_TEXT, &k.timeout, "TIME",
		  "longest time a job may take (default 60s)" },
		{ "--job-memory", FLAG_TEXT, &k.memory, "N",
		  "memory of a job, in MiB (default 512)" },
		{ "--network", FLAG_SET, &k.network, NULL,
		  "let jobs reach the network" },
		{ "--package", FLAG_LIST, &k.packages, "NAME",
		  "a package that jobs may use; repeat, or use commas" },
		{ "--no-out-files", FLAG_SET, &k.no_out, NULL,
		  "do not return the files that jobs write" },
		{ "--no-approval", FLAG_SET, &k.no_approval, NULL,
		  "let runners take jobs without your approval" },
		{ "--owner-invite-file", FLAG_TEXT, &k.file, "FILE",
		  "write the owner's link to this new file, 0600" },
		{ "--as", FLAG_TEXT, &k.c.as, "NAME",
		  "your display name (AIRLOX_NAME; default owner)" },
		{ "--description", FLAG_TEXT, &k.c.description, "TEXT",
		  "what you are or do (AIRLOX_DESCRIPTION)" },
		{ "--cache-dir", FLAG_TEXT, &k.c.cache_dir, "DIR",
		  "instead of ~/.cache/airlox (AIRLOX_CACHE_DIR)" },
		CMD_PLAIN_FLAG(k.c),
		{ "--json", FLAG_SET, &k.c.json, NULL, "print JSON" },
		{ 0 }
	};
	struct args a;
	struct err e;
	int over = cmd_begin(&a, flags, argc, argv, "airloxfs create [FLAGS]",
			     "Create a session and print its invite links.");
	if (over >= 0)
		return over;
	if (a.n)
		return cmd_misuse("too many arguments");
	int r = create(&k, &e);
	if (r == 0)
		r = show(&k, &e);
	manifest_free(&k.m);
	invite_free(&k.owner);
	return r < 0 ? tell_fail(&e) : r;
}
