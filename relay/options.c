/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "relay/http.h"
#include "relay/loop.h"
#include "relay/options.h"

const char options_help[] =
"Usage: airlox-relay --data DIR | --ephemeral [OPTION...]\n"
"Relay for end-to-end encrypted sessions: ciphertext and signatures only.\n"
"\n"
"  --listen ADDR:PORT     or unix:PATH; port 0 picks one (127.0.0.1:8440)\n"
"  --data DIR             where sessions are kept\n"
"  --ephemeral            keep them in memory: they end with the process\n"
"  --threads N            reactors, 1 to 4 (one per core)\n"
"  --max-item-bytes N     largest item a session may allow\n"
"  --max-session-bytes N  blobs held for one session\n"
"  --max-items N          items of one session\n"
"  --max-participants N   of one session\n"
"  --max-sessions N       in all\n"
"  --max-ttl SECONDS      longest life of a session\n"
"  --no-never             take no sessions without an end\n"
"  --help, --version\n"
"\n"
"Each option can be given as a variable: AIRLOX_LISTEN, AIRLOX_DATA,\n"
"AIRLOX_EPHEMERAL=1, AIRLOX_MAX_ITEM_BYTES, ...  The first line on standard\n"
"output is \"listening on http://ADDR:PORT\".  SIGTERM and SIGINT end it.\n";

enum kind { TEXT, FLAG, NUMBER, COUNT };

struct option {
	const char *flag, *env;
	enum kind kind;
	void *to;
	int64_t min, max;
};

static int set(const struct option *op, const char *value, struct err *e)
{
	int64_t v;
	if (op->kind == TEXT) {
		*(const char **)op->to = value;
		return 0;
	}
	if (op->kind == FLAG) {
		*(bool *)op->to = strcmp(value, "0") != 0;
		return 0;
	}
	if (http_number(bytes_str(value), &v) < 0 || v < op->min ||
	    v > op->max)
		return err_set(e, ERR_USAGE, "%s takes a number from %lld to "
			       "%lld", op->flag, (long long)op->min,
			       (long long)op->max);
	if (op->kind == NUMBER)
		*(int64_t *)op->to = v;
	else
		*(uint32_t *)op->to = (uint32_t)v;
	return 0;
}

static int read_environment(const struct option *op, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const char *v = op[i].env ? getenv(op[i].env) : NULL;
		if (v && *v && set(&op[i], v, e) < 0)
			return -1;
	}
	return 0;
}

/* --flag VALUE or --flag=VALUE.  Gives how many arguments it took. */
static int read_one(const struct option *op, size_t n, char **argv,
		    struct err *e)
{
	size_t len = strcspn(argv[0], "=");
	for (size_t i = 0; i < n; i++) {
		if (strlen(op[i].flag) != len ||
		    memcmp(op[i].flag, argv[0], len) != 0)
			continue;
		if (op[i].kind == FLAG)
			return argv[0][len] ? 0 : set(&op[i], "1", e) + 1;
		const char *v = argv[0][len] ? argv[0] + len + 1 : argv[1];
		if (!v || !*v)
			return err_set(e, ERR_USAGE, "%s needs a value",
				       op[i].flag);
		if (set(&op[i], v, e) < 0)
			return -1;
		return argv[0][len] ? 1 : 2;
	}
	return err_set(e, ERR_USAGE, "unknown option %s; see --help", argv[0]);
}

int options_read(struct options *o, int argc, char **argv, struct err *e)
{
	bool no_never = false;
	struct limits *l = &o->limits;
	*o = (struct options){ .listen = "127.0.0.1:8440",
			       .limits = limit_defaults };
	const struct option op[] = {
		{ "--listen", "AIRLOX_LISTEN", TEXT, &o->listen, 0, 0 },
		{ "--data", "AIRLOX_DATA", TEXT, &o->data, 0, 0 },
		{ "--ephemeral", "AIRLOX_EPHEMERAL", FLAG, &o->ephemeral, 0,
		  0 },
		{ "--threads", "AIRLOX_THREADS", NUMBER, &o->threads, 1,
		  LOOPS_MAX },
		{ "--max-item-bytes", "AIRLOX_MAX_ITEM_BYTES", NUMBER,
		  &l->item_bytes, 1, INT64_C(1) << 30 },
		{ "--max-session-bytes", "AIRLOX_MAX_SESSION_BYTES", NUMBER,
		  &l->session_bytes, 1, INT64_C(1) << 50 },
		{ "--max-items", "AIRLOX_MAX_ITEMS", COUNT, &l->items, 1,
		  10000000 },
		{ "--max-participants", "AIRLOX_MAX_PARTICIPANTS", COUNT,
		  &l->participants, 1, 10000 },
		{ "--max-sessions", "AIRLOX_MAX_SESSIONS", COUNT, &l->sessions,
		  1, 1000000 },
		{ "--max-ttl", "AIRLOX_MAX_TTL", NUMBER, &l->ttl_ms, 1,
		  30 * 24 * 3600 },
		{ "--no-never", "AIRLOX_NO_NEVER", FLAG, &no_never, 0, 0 },
		{ "--help", NULL, FLAG, &o->help, 0, 0 },
		{ "--version", NULL, FLAG, &o->version, 0, 0 },
	};
	size_t n = sizeof op / sizeof op[0];
	l->ttl_ms = 0;
	if (read_environment(op, n, e) < 0)
		return -1;
	for (int i = 1; i < argc;) {
		int took = read_one(op, n, argv + i, e);
		if (took < 1)
			return took < 0 ? -1 :
			       err_set(e, ERR_USAGE, "bad use of %s", argv[i]);
		i += took;
	}
	l->ttl_ms = l->ttl_ms ? l->ttl_ms * 1000 : limit_defaults.ttl_ms;
	l->never = !no_never;
	if (o->help || o->version)
		return 0;
	if (o->ephemeral == (o->data != NULL))
		return err_set(e, ERR_USAGE, "give either --data DIR or "
			       "--ephemeral; see --help");
	return 0;
}
