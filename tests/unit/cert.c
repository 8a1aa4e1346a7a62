/* SPDX-License-Identifier: MIT */
#include "tests/unit/party.h"

static void certificates(struct party *p)
{
	struct buf out = { 0 };
	struct err e = { 0 };
	struct cert c;

	for (int i = 0; i < ROLES; i++)
		ok(cert_parse(&c, buf_bytes(&p->signed_cert[i]), &p->m,
			      &e) == 0 && c.role == (enum role)i &&
		   memcmp(c.pub, p->cert[i].pub, 32) == 0 &&
		   c.issued_at_ms == PARTY_BEGIN + i,
		   "a certificate of a %s", role_word((enum role)i));
	uint8_t sender[32];
	session_role_seed(sender, p->owner, ROLE_SENDER);
	ok(cert_build(&out, &p->cert[ROLE_RUNNER], &p->m, sender, &e) < 0,
	   "a sender's key makes no runner: %s", e.why);
	buf_free(&out);
	struct buf *text = &p->signed_cert[ROLE_OBSERVER];
	ok(party_edit(text, "\"observer\"", "\"sender\"") &&
	   cert_parse(&c, buf_bytes(text), &p->m, &e) < 0 &&
	   e.code == ERR_SIGNATURE, "a role changed: %s", e.why);
}

static int round_trip(struct party *p, struct join *j, struct buf *out,
		      struct err *e)
{
	j->cert = p->cert[j->cert.role];
	return join_build(out, j, buf_bytes(&p->signed_cert[j->cert.role]),
			  &p->m, p->seed[j->cert.role], e);
}

static void join_of_sender(struct party *p)
{
	struct join j = { .cert.role = ROLE_SENDER, .created_at_ms = 5,
			  .display_name = (char *)"ann", .kind = KIND_CLI,
			  .description = (char *)"\xc3\xa9t\xc3\xa9" }, back;
	struct buf out = { 0 };
	struct err e = { 0 };

	ok(round_trip(p, &j, &out, &e) == 0, "a join: %s", e.why);
	ok(join_parse(&back, buf_bytes(&out), &p->m, &e) == 0, "is read");
	is_str(back.display_name, "ann", "with its name");
	is_str(back.description, "\xc3\xa9t\xc3\xa9", "and description");
	ok(!back.has_runner && back.kind == KIND_CLI &&
	   back.cert.role == ROLE_SENDER, "and kind and role");
	join_free(&back);
	ok(party_edit(&out, "\"ann\"", "\"bob\"") &&
	   join_parse(&back, buf_bytes(&out), &p->m, &e) < 0 &&
	   e.code == ERR_SIGNATURE, "a name changed: %s", e.why);
	buf_free(&out);
	j.display_name = (char *)" ann";
	ok(round_trip(p, &j, &out, &e) < 0 && e.code == ERR_INVALID,
	   "a name that is no display text: %s", e.why);
	j.display_name = (char *)"ann";
	j.kind = KIND_RUNNER;
	ok(round_trip(p, &j, &out, &e) < 0 && e.code == ERR_INVALID,
	   "a sender is no runner: %s", e.why);
	buf_free(&out);
}

static void join_of_runner(struct party *p)
{
	struct join j = { .cert.role = ROLE_RUNNER, .kind = KIND_RUNNER,
			  .display_name = (char *)"r", .has_runner = true },
		    back;
	struct buf out = { 0 };
	struct err e = { 0 };

	j.runner = (struct runner_info){ .host = (char *)"box", .name = "r-1",
		.labels = { "gpu", "x86_64" }, .label_n = 2,
		.sandbox = SANDBOX_DOCKER };
	ok(round_trip(p, &j, &out, &e) == 0, "a runner's join: %s", e.why);
	ok(join_parse(&back, buf_bytes(&out), &p->m, &e) == 0, "is read");
	is_int(back.runner.label_n, 2, "two labels");
	is_str(back.runner.labels[1], "x86_64", "the second");
	is_str(back.runner.host, "box", "host");
	is_int(back.runner.sandbox, SANDBOX_DOCKER, "sandbox");
	join_free(&back);
	buf_reset(&out);
	strcpy(j.runner.labels[0], "GPU");
	ok(round_trip(p, &j, &out, &e) < 0 && e.code == ERR_INVALID,
	   "a label in capitals: %s", e.why);
	j.has_runner = false;
	ok(round_trip(p, &j, &out, &e) < 0 && e.code == ERR_INVALID,
	   "a runner says what it is: %s", e.why);
	buf_free(&out);
}

static void labels(void)
{
	char s[66];

	memset(s, 'a', sizeof s);
	s[64] = 0;
	ok(!label_ok(bytes_str(s)), "64 bytes are too many");
	s[63] = 0;
	ok(label_ok(bytes_str(s)), "63 are not");
	ok(label_ok(bytes_str("0.x_y-z")), "marks inside");
	ok(!label_ok(bytes_str(".x")) && !label_ok(bytes_str("")) &&
	   !label_ok(bytes_str("A")) && !label_ok(bytes_str("a b")),
	   "and what is none");
}

int main(void)
{
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	join_of_sender(&p);
	join_of_runner(&p);
	certificates(&p);
	labels();
	join_free(NULL);
	party_end(&p);
	return done_testing();
}
