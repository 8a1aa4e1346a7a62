/* SPDX-License-Identifier: MIT
 *
 * One table: the flags, their variables, --help. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/http.h"
#include "relay/loop.h"
#include "relay/options.h"

enum kind { TEXT, FLAG, NUMBER, COUNT, SECONDS, NETS };

struct option {
	const char *flag;
	enum kind kind;
	const char *value;	/* its name in --help, or NULL */
	void *to;
	int64_t min, max;
	const char *what;
};

#define BYTES_MAX (INT64_C(1) << 50)
#define OPTIONS 40

static size_t fill(struct option *op, struct options *o)
{
	struct limits *l = &o->limits;
	const struct option all[] = {
	{ "--listen", TEXT, "WHERE,...", &o->listen, 0, 0,
	  "ADDR:PORT, tls:ADDR:PORT or unix:PATH; port 0 picks one "
	  "(127.0.0.1:8440)" },
	{ "--data", TEXT, "DIR", &o->data, 0, 0, "where sessions are kept" },
	{ "--ephemeral", FLAG, NULL, &o->ephemeral, 0, 0,
	  "keep them in memory: they end with the process" },
	{ "--tls-cert", TEXT, "FILE", &o->cert, 0, 0,
	  "certificate chain for tls:, PEM; read again on SIGHUP" },
	{ "--tls-key", TEXT, "FILE", &o->key, 0, 0, "its key, PEM" },
	{ "--user", TEXT, "NAME", &o->user, 0, 0,
	  "run as this user, once the sockets are open" },
	{ "--threads", NUMBER, "N", &o->threads, 1, LOOPS_MAX,
	  "reactors, 1 to 4 (one per core)" },
	{ "--access-log", TEXT, "FILE", &o->access_log, 0, 0,
	  "a line for each request, without its address; - is stderr" },
	{ "--log-addresses", FLAG, NULL, &o->log_addresses, 0, 0,
	  "with the address in the access log" },
	{ "--trusted-proxies", NETS, "NETS", &l->proxies, 0, 0,
	  "whose X-Forwarded-For counts: 127.0.0.1,10.0.0.0/8,unix (none)" },
	{ "--metrics-from", NETS, "NETS", &l->metrics, 0, 0,
	  "who may read /metrics (127.0.0.1,::1)" },
	{ "--max-item-bytes", NUMBER, "N", &l->item_bytes, 1,
	  INT64_C(1) << 30, "largest item a session may allow" },
	{ "--max-session-bytes", NUMBER, "N", &l->session_bytes, 1, BYTES_MAX,
	  "blobs held for one session" },
	{ "--max-transfer-bytes", NUMBER, "N", &l->transfer_day, 0, BYTES_MAX,
	  "blobs in and out of one session, a day; 0: any" },
	{ "--max-items", COUNT, "N", &l->items, 1, 10000000,
	  "items of one session" },
	{ "--max-items-minute", COUNT, "N", &l->items_minute, 0, 10000000,
	  "of one participant, a minute; 0: any" },
	{ "--max-participants", COUNT, "N", &l->participants, 1, 10000,
	  "of one session" },
	{ "--max-sessions", COUNT, "N", &l->sessions, 1, 1000000, "in all" },
	{ "--max-sessions-hour", COUNT, "N", &l->sessions_hour, 0, 1000000,
	  "made from one address, an hour; 0: any" },
	{ "--max-address-connections", COUNT, "N", &l->address_connections, 0,
	  1000000, "of one address; 0: half of all there is room for" },
	{ "--max-address-requests", COUNT, "N", &l->address_minute, 0,
	  1000000000, "of one address, a minute; 0: any" },
	{ "--max-streams", COUNT, "N", &l->streams, 1, 1000000, "in all" },
	{ "--max-streams-each", COUNT, "N", &l->streams_each, 1, 1000000,
	  "of one participant" },
	{ "--min-free-bytes", NUMBER, "N", &l->free_bytes, 0, BYTES_MAX,
	  "of the disk; with less nothing new is taken (507)" },
	{ "--claim-s", SECONDS, "SECONDS", &l->claim_ms, 1, 3600,
	  "a job that its runner does not claim so long has failed" },
	{ "--runner-silent-s", SECONDS, "SECONDS", &l->silent_ms, 1, 3600,
	  "a runner without heartbeats so long is lost, and its job too" },
	{ "--max-ttl", SECONDS, "SECONDS", &l->ttl_ms, 1, 30 * 24 * 3600,
	  "longest life of a session" },
	{ "--no-never", FLAG, NULL, &l->never, 1, 0,
	  "take no sessions without an end" },
	{ "--help", FLAG, NULL, &o->help, 0, 0, "" },
	{ "--version", FLAG, NULL, &o->version, 0, 0, "" },
	};
	_Static_assert(sizeof all / sizeof all[0] <= OPTIONS, "room");
	memcpy(op, all, sizeof all);
	return sizeof all / sizeof all[0];
}

static void put_default(const struct option *op)
{
	if (op->kind == COUNT)
		printf(" (%u)", *(uint32_t *)op->to);
	else if (op->kind == SECONDS)
		printf(" (%lld)", (long long)*(int64_t *)op->to / 1000);
	else if (op->kind == NUMBER && *(int64_t *)op->to)
		printf(" (%lld)", (long long)*(int64_t *)op->to);
	putchar('\n');
}

void options_help(void)
{
	struct options o = { .limits = limit_defaults };
	struct option op[OPTIONS];
	size_t n = fill(op, &o);
	fputs("Usage: airlox-relay --data DIR | --ephemeral [OPTION...]\n"
	      "       airlox-relay fsck DIR\n"
	      "Relay for end-to-end encrypted sessions: ciphertext and "
	      "signatures only.\n"
	      "fsck says what is wrong with a data directory, and changes "
	      "nothing.\n\n", stdout);
	for (size_t i = 0; i < n; i++) {
		char left[48];
		snprintf(left, sizeof left, "%s%s%s", op[i].flag,
			 op[i].value ? " " : "",
			 op[i].value ? op[i].value : "");
		printf("  %-27s%s%s", left, *op[i].what ? " " : "",
		       op[i].what);
		put_default(&op[i]);
	}
	fputs("\nEach option can be given as a variable: AIRLOX_LISTEN, "
	      "AIRLOX_DATA,\nAIRLOX_EPHEMERAL=1, AIRLOX_MAX_ITEM_BYTES, ...  "
	      "The first line on standard\noutput is \"listening on "
	      "http://ADDR:PORT\".  Sockets that systemd hands over are\nused "
	      "instead of --listen.  SIGTERM and SIGINT end it.\n", stdout);
}

static int set(const struct option *op, const char *value, struct err *e)
{
	int64_t v;
	if (op->kind == TEXT) {
		*(const char **)op->to = value;
		return 0;
	}
	if (op->kind == FLAG) {
		/* min 1: what the flag turns off */
		*(bool *)op->to = (strcmp(value, "0") != 0) != (op->min == 1);
		return 0;
	}
	if (op->kind == NETS)
		return addr_set_parse(op->to, value, e) < 0 ?
		       err_prefix(e, "%s", op->flag) : 0;
	if (http_number(bytes_str(value), &v) < 0 || v < op->min ||
	    v > op->max)
		return err_set(e, ERR_USAGE, "%s takes a number from %lld to "
			       "%lld", op->flag, (long long)op->min,
			       (long long)op->max);
	if (op->kind == COUNT)
		*(uint32_t *)op->to = (uint32_t)v;
	else
		*(int64_t *)op->to = op->kind == SECONDS ? v * 1000 : v;
	return 0;
}

/* --max-items: AIRLOX_MAX_ITEMS */
static const char *variable(const struct option *op)
{
	char name[48] = "AIRLOX";
	size_t n = 6;
	for (const char *p = op->flag + 1; *p && n + 1 < sizeof name; p++)
		name[n++] = *p == '-' ? '_' : (char)toupper(*p);
	name[n] = 0;
	return getenv(name);
}

static int read_environment(const struct option *op, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const char *v = *op[i].what ? variable(&op[i]) : NULL;
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

static int check(struct options *o, struct err *e)
{
	bool tls = o->listen && strstr(o->listen, "tls:");
	if (o->help || o->version || o->fsck)
		return 0;
	if (o->ephemeral == (o->data != NULL))
		return err_set(e, ERR_USAGE, "give either --data DIR or "
			       "--ephemeral; see --help");
	if (!o->cert != !o->key || (tls && !o->cert))
		return err_set(e, ERR_USAGE, "TLS takes both --tls-cert FILE "
			       "and --tls-key FILE");
	return 0;
}

int options_read(struct options *o, int argc, char **argv, struct err *e)
{
	*o = (struct options){ .limits = limit_defaults };
	struct option op[OPTIONS];
	size_t n = fill(op, o);
	addr_set_parse(&o->limits.metrics, "127.0.0.1,::1", NULL);
	if (argc > 1 && strcmp(argv[1], "fsck") == 0) {
		o->fsck = argc == 3 && argv[2][0] != '-' ? argv[2] : NULL;
		return o->fsck ? 0 :
		       err_set(e, ERR_USAGE, "usage: airlox-relay fsck DIR");
	}
	if (read_environment(op, n, e) < 0)
		return -1;
	for (int i = 1; i < argc;) {
		int took = read_one(op, n, argv + i, e);
		if (took < 1)
			return took < 0 ? -1 :
			       err_set(e, ERR_USAGE, "bad use of %s", argv[i]);
		i += took;
	}
	return check(o, e);
}
