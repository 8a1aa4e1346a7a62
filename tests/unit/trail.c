/* SPDX-License-Identifier: MIT */
#include "core/host/trail.h"
#include "core/json.h"
#include "tests/unit/party.h"

#define LINES 8

static struct party p;
static struct buf line[LINES];

static void put_join(struct buf *b, enum role role, int seq)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	struct join j = { .cert = p.cert[role], .created_at_ms = 1,
			  .kind = KIND_CLI, .display_name = (char *)"ann" };
	ok(join_build(&text, &j, buf_bytes(&p.signed_cert[role]), &p.m,
		      p.seed[role], &e) == 0, "a join: %s", e.why);
	buf_addf(b, "{\"at_ms\":2,\"display_name\":\"ann\",\"event\":"
		 "\"joined\",\"kind\":\"cli\",\"participant_pub\":");
	json_put_b64(b, p.cert[role].pub, PRIM_PUB);
	buf_addf(b, ",\"role\":\"%s\",\"seq\":%d,\"signed_join\":",
		 role_word(role), seq);
	json_put_string(b, buf_bytes(&text));
	buf_add_byte(b, '}');
	buf_free(&text);
}

static void put_item(struct buf *b, enum role role, int seq, const char *id)
{
	struct buf head = { 0 }, env = { 0 };
	uint8_t sha[HASH_SIZE] = { 7 };
	struct item_header h = { .created_at_ms = PARTY_BEGIN + 1,
				 .kind = ITEM_TEXT, .type = TYPE_NONE,
				 .size = 10 };
	memcpy(h.author, p.cert[role].pub, PRIM_PUB);
	memcpy(h.session_id, p.m.session_id, sizeof h.session_id);
	memcpy(h.id, id, ITEM_ID + 1);
	item_put_header(&head, &h);
	envelope_build(&env, buf_bytes(&head), sha, p.seed[role]);
	buf_add_str(b, "{\"at_ms\":3,\"blob_sha256\":");
	json_put_b64(b, sha, sizeof sha);
	buf_add_str(b, ",\"envelope\":");
	json_put_string(b, buf_bytes(&env));
	buf_addf(b, ",\"event\":\"posted\",\"seq\":%d}", seq);
	buf_free(&head);
	buf_free(&env);
}

static void make(void)
{
	buf_addf(&line[0], "{\"at_ms\":1,\"event\":\"created\",\"session_id\":"
		 "\"%s\",\"signed_manifest\":", p.m.session_id);
	json_put_string(&line[0], buf_bytes(&p.manifest));
	buf_add_byte(&line[0], '}');
	put_join(&line[1], ROLE_OWNER, 0);
	put_join(&line[2], ROLE_SENDER, 1);
	put_item(&line[3], ROLE_SENDER, 2, "AAAAAAAAAAAAAAAAAAAAAA");
	put_item(&line[4], ROLE_OWNER, 3, "BBBBBBBBBBBBBBBBBBBBBA");
	buf_add_str(&line[5], "{\"at_ms\":4,\"event\":\"acked\",\"item\":"
		    "\"AAAAAAAAAAAAAAAAAAAAAA\",\"participant_pub\":");
	json_put_b64(&line[5], p.cert[ROLE_OWNER].pub, PRIM_PUB);
	buf_add_byte(&line[5], '}');
	buf_add_str(&line[6], "{\"at_ms\":5,\"event\":\"revoked\","
		    "\"participants\":[");
	json_put_b64(&line[6], p.cert[ROLE_SENDER].pub, PRIM_PUB);
	buf_add_str(&line[6], "],\"role\":\"sender\",\"seq\":4}");
	buf_add_str(&line[7], "{\"at_ms\":6,\"event\":\"closed\",\"reason\":"
		    "\"x\",\"seq\":5}");
}

/* How many faults there are in these lines, by number. */
static uint32_t faults(const int *order, int n, const char *id)
{
	struct err e = { 0 };
	struct trail *t = trail_new(id, (struct bytes){ NULL, 0 }, &e);
	for (int i = 0; i < n; i++)
		trail_line(t, buf_bytes(&line[order[i]]), &e);
	uint32_t got = trail_sum(t)->faults;
	trail_free(t);
	return got;
}

static const int all[LINES] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void whole(void)
{
	struct err e = { 0 };
	struct trail *t = trail_new(p.m.session_id, buf_bytes(&p.manifest),
				    &e);
	for (int i = 0; i < LINES; i++)
		ok(trail_line(t, buf_bytes(&line[i]), &e) == 0, "line %d: %s",
		   i, e.why);
	const struct trail_sum *s = trail_sum(t);
	is_int(s->events, 6, "events");
	is_int(s->items, 2, "items");
	is_int(s->joins[ROLE_OWNER] + s->joins[ROLE_SENDER], 2, "joins");
	is_int(s->words, 3, "the relay's word");
	is_int(s->bytes, 20, "bytes");
	is_str(s->session_id, p.m.session_id, "session");
	trail_free(t);
}

static void order(void)
{
	for (int i = 0; i < LINES - 1; i++) {
		int some[LINES], n = 0;
		for (int k = 0; k < LINES; k++)
			if (k != i)
				some[n++] = all[k];
		uint32_t got = faults(some, n, NULL);
		ok(i == 5 ? got == 0 : got > 0, "without line %d: %u", i, got);
		memcpy(some, all, sizeof some);
		some[i] = i + 1;
		some[i + 1] = i;
		got = faults(some, LINES, NULL);
		ok(i == 4 || i == 5 ? got == 0 : got > 0, "lines %d and %d "
		   "swapped: %u", i, i + 1, got);
	}
	ok(faults(all, LINES, "ax_aaaaaaaaaaaaaaaaaaaaaaaaaa") > 0,
	   "of another session");
	is_int(faults(all, 3, NULL), 0, "the end cut off cannot be seen");
}

/* Each byte of each line matters, but for a time and a word of the relay. */
static void bytes(void)
{
	for (int i = 0; i < 5; i++) {
		unsigned missed = 0;
		for (size_t at = 0; at < line[i].len; at += 7) {
			uint8_t was = line[i].data[at];
			if (was >= '0' && was <= '9' && at < 12)
				continue;	/* at_ms */
			line[i].data[at] = was == 'Q' ? 'R' : 'Q';
			missed += faults(all, LINES, NULL) == 0;
			line[i].data[at] = was;
		}
		is_int(missed, 0, "no changed byte of line %d is missed", i);
	}
}

int main(void)
{
	party_begin(&p, MODE_RELAY);
	make();
	whole();
	order();
	bytes();
	for (int i = 0; i < LINES; i++)
		buf_free(&line[i]);
	party_end(&p);
	return done_testing();
}
