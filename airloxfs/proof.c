/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "airloxfs/print.h"
#include "airloxfs/proof.h"
#include "core/host/tell.h"

#define FAULTS_TOLD 20
#define SENTENCES_MAX 8

struct sentences {
	char text[SENTENCES_MAX][240];
	int n;
};

static void add(struct sentences *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void add(struct sentences *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->text[s->n++], sizeof s->text[0], fmt, ap);
	va_end(ap);
}

static void tell_fault(struct proof *p, const struct err *e)
{
	uint32_t line = trail_sum(p->trail)->lines;
	if (p->told++ >= FAULTS_TOLD)
		return;
	if (!p->json) {
		tell_say("line %u: %s", line, e->why);
		return;
	}
	json_put_sep(&p->faults);
	buf_addf(&p->faults, "{\"line\":%u", line);
	print_member(&p->faults, "why", e->why);
	buf_add_byte(&p->faults, '}');
}

static void check_line(struct proof *p, struct bytes line)
{
	struct err e;
	if (trail_line(p->trail, line, &e) < 0)
		tell_fault(p, &e);
}

int proof_take(struct proof *p, const void *bytes, size_t n, struct err *e)
{
	const uint8_t *from = bytes, *end;
	while ((end = memchr(from, '\n', n))) {
		size_t m = (size_t)(end - from);
		buf_add(&p->line, from, m);
		check_line(p, buf_bytes(&p->line));
		buf_reset(&p->line);
		from += m + 1;
		n -= m + 1;
	}
	buf_add(&p->line, from, n);
	if (p->line.len > TRAIL_LINE_MAX || buf_failed(&p->line))
		return err_set(e, ERR_INVALID, "this is no audit trail: a line "
			       "without an end");
	return 0;
}

static void say_proved(struct sentences *s, const struct trail_sum *t)
{
	char size[16];
	unsigned all = 0;
	for (int i = 0; i < ROLES; i++)
		all += t->joins[i];
	tell_bytes(size, (uint64_t)t->bytes);
	add(s, "the settings of %s are signed by its owner's key",
	    t->session_id);
	add(s, "%u participants (owner %u, sender %u, runner %u, observer "
	    "%u) hold keys that the key of their role has certified", all,
	    t->joins[ROLE_OWNER], t->joins[ROLE_SENDER],
	    t->joins[ROLE_RUNNER], t->joins[ROLE_OBSERVER]);
	add(s, "%u items (%s) are each signed by one of them, over kind, "
	    "size, time and the exact ciphertext", t->items, size);
}

static void say_not_proved(struct sentences *s, const struct proof *p,
			   const struct trail_sum *t)
{
	if (!p->pinned)
		add(s, "that this is your session: give its invite, or "
		    "--session ID");
	if (t->events)
		add(s, "that nothing was left out: events are numbered from 0 "
		    "to %llu without a gap, but the numbers are not signed, "
		    "and nothing tells of a later one",
		    (unsigned long long)t->events - 1);
	add(s, "order, times, and the %u lines without a signature "
	    "(acknowledgements, departures, ...): they are the relay's word, "
	    "and some may be missing", t->words);
	add(s, "what the items say, and who it is that holds a key");
}

static void print_list(const char *title, const struct sentences *s)
{
	tell_say("%s", title);
	for (int i = 0; i < s->n; i++)
		tell_say("  - %s", s->text[i]);
}

static void put_list(struct buf *b, const char *key, const struct sentences *s)
{
	json_put_key(b, key);
	buf_add_byte(b, '[');
	for (int i = 0; i < s->n; i++) {
		json_put_sep(b);
		json_put_string(b, bytes_str(s->text[i]));
	}
	buf_add_byte(b, ']');
}

static int print_json(const struct proof *p, const struct sentences *yes,
		      const struct sentences *no)
{
	const struct trail_sum *t = trail_sum(p->trail);
	cleanup_buf struct buf b = { 0 };
	buf_addf(&b, "{\"events\":%llu,\"fault_count\":%u,\"faults\":[",
		 (unsigned long long)t->events, t->faults);
	buf_add(&b, p->faults.data, p->faults.len);
	buf_addf(&b, "],\"items\":%u,\"lines\":%u", t->items, t->lines);
	put_list(&b, "not_proved", no);
	buf_addf(&b, ",\"participants\":{\"observer\":%u,\"owner\":%u,"
		 "\"runner\":%u,\"sender\":%u}", t->joins[ROLE_OBSERVER],
		 t->joins[ROLE_OWNER], t->joins[ROLE_RUNNER],
		 t->joins[ROLE_SENDER]);
	put_list(&b, "proved", yes);
	print_member(&b, "session_id", *t->session_id ? t->session_id : NULL);
	buf_addf(&b, ",\"verified\":%s}", t->faults ? "false" : "true");
	return print_doc(&b);
}

static int print_text(const struct trail_sum *t, const struct sentences *yes,
		      const struct sentences *no)
{
	if (t->faults > FAULTS_TOLD)
		tell_say("and %u more", t->faults - FAULTS_TOLD);
	if (!t->faults) {
		tell_say("verified: %u lines of %s", t->lines, t->session_id);
		print_list("proved:", yes);
		print_list("not proved:", no);
	}
	return tell_flush();
}

int proof_end(struct proof *p)
{
	const struct trail_sum *t = trail_sum(p->trail);
	struct sentences yes = { .n = 0 }, no = { .n = 0 };
	struct err e;
	if (p->line.len)	/* cut off amid a line */
		check_line(p, buf_bytes(&p->line));
	if (t->lines == 0) {
		err_set(&e, ERR_INVALID, "the trail is empty");
		return tell_fail(&e);
	}
	if (!t->faults) {
		say_proved(&yes, t);
		say_not_proved(&no, p, t);
	}
	int rc = p->json ? print_json(p, &yes, &no) : print_text(t, &yes, &no);
	if (rc || !t->faults)
		return rc;
	err_set(&e, ERR_INVALID, "%u faults: this trail does not hold",
		t->faults);
	return tell_fail(&e);
}

void proof_free(struct proof *p)
{
	trail_free(p->trail);
	buf_free(&p->line);
	buf_free(&p->faults);
}
