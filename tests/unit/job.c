/* SPDX-License-Identifier: MIT
 *
 * What needs no relay of a job: a plan, who may answer, what counts, and
 * which frames of live output are believed. */
#include <fcntl.h>
#include <sys/mman.h>

#include "core/host/ids.h"
#include "core/host/live.h"
#include "core/seal.h"
#include "tests/unit/party.h"

static struct party party;
static struct err e;

/* A peer as peer_open leaves it, but for a cache and a relay. */
static struct peer *peer_new(enum role role)
{
	struct peer *p = prim_secret_alloc(sizeof *p);
	cleanup_buf struct buf link = { 0 };

	memset(p, 0, sizeof *p);
	p->ids = ids_new();
	invite_build(&link, "http://localhost:1", party.owner, role, &e);
	if (invite_parse(&p->invite, buf_bytes(&link), &e) < 0 ||
	    manifest_parse(&p->manifest, buf_bytes(&party.manifest), &e) < 0)
		printf("Bail out! %s\n", e.why);
	memcpy(p->identity.seed, party.seed[role], PRIM_SEED);
	prim_pub(p->pub, p->identity.seed);
	p->clock = (struct clock){ 0 };
	return p;
}

static struct job_input input(const char *path, struct bytes *text)
{
	return (struct job_input){ .path = bytes_str(path),
				   .body = zip_source_bytes(text) };
}

static struct job_plan *plan(const struct peer *p, struct job_input *in,
			     size_t n)
{
	struct job_spec s = { .filename = bytes_str("main.py"),
			      .code = bytes_str("print(1)\n"),
			      .input = in, .input_n = n };

	e = (struct err){ 0 };
	return job_plan_new(&s, p, NULL, &e);
}

/* An empty archive, as its bytes. */
static struct bytes none_zip = { (const uint8_t *)"PK\5\6\0\0\0\0\0\0\0\0\0\0\0"
				 "\0\0\0\0\0\0\0", 22 };

static void plans(const struct peer *p)
{
	struct bytes text = bytes_str("# x\n"), bad = { (const uint8_t *)"\xff",
							1 };
	struct job_input some[] = {
		input("a.md", &text), input("b.py", &text),
		input("data.csv", &text), input("d/c.md", &text),
		input(".hidden.py", &text), input("not.py", &bad),
		input("e.zip", &none_zip), input("not.zip", &text),
	};
	struct job_plan *j = plan(p, some, 8);

	ok(j != NULL, "a plan: %s", e.why);
	is_int(j ? job_plan_files(j) : 0, 4, "md, py and zip as items of "
	       "their own, the others in one");
	job_plan_free(j);
	j = plan(p, NULL, 0);
	is_int(j ? job_plan_files(j) : 9, 0, "no inputs, no items");
	job_plan_free(j);

	struct job_input twice[] = { input("x.md", &text),
				     input("X.md", &text) };
	ok(!plan(p, twice, 2) && e.code == ERR_EXISTS, "two of a name: %s",
	   e.why);
	struct job_input entry[] = { input("main.py", &text) };
	ok(!plan(p, entry, 1) && e.code == ERR_EXISTS, "the entry's name: %s",
	   e.why);
	struct job_input under[] = { input("main.py/x", &text) };
	ok(!plan(p, under, 1) && e.code == ERR_EXISTS, "below a file: %s",
	   e.why);
	struct job_input out[] = { input("../x", &text) };
	ok(!plan(p, out, 1) && e.code == ERR_NAME, "out of it: %s", e.why);
	job_plan_free(NULL);
}

/* More archives than places: an archive within one would not be unpacked, so
 * they come first; what is too much goes with the others. */
static void many(const struct peer *p)
{
	static char name[60][12];
	struct bytes text = bytes_str("x");
	struct job_input in[60];

	for (int i = 0; i < 60; i++) {
		snprintf(name[i], sizeof name[i], "%d.%s", i,
			 i < 40 ? "md" : "zip");
		in[i] = input(name[i], i < 40 ? &text : &none_zip);
	}
	struct job_plan *j = plan(p, in, 60);
	is_int(j ? job_plan_files(j) : 0, JOB_FILES_MAX, "60 inputs: %s",
	       e.why);
	job_plan_free(j);
}

static void limits(const struct peer *p, const struct peer *viewer)
{
	struct job_spec s = { .filename = bytes_str("a.py"),
			      .code = bytes_str("1") };
	struct bytes pandas = bytes_str("pandas"), numpy = bytes_str("NumPy");
	struct job_plan *j;

	s.timeout_s = 61;
	ok(!job_plan_new(&s, p, NULL, &e) && e.code == ERR_POLICY, "%s",
	   e.why);
	s.timeout_s = 60;
	s.memory_mb = 513;
	ok(!job_plan_new(&s, p, NULL, &e) && e.code == ERR_POLICY, "%s",
	   e.why);
	s.memory_mb = 512;
	s.requirement = &pandas;
	s.requirement_n = 1;
	ok(!job_plan_new(&s, p, NULL, &e) && e.code == ERR_POLICY, "%s",
	   e.why);
	s.requirement = &numpy;
	ok(!job_plan_new(&s, viewer, NULL, &e) && e.code == ERR_ROLE, "%s",
	   e.why);
	j = job_plan_new(&s, p, NULL, &e);
	ok(j != NULL, "within the limits: %s", e.why);
	job_plan_free(j);
	s.filename = bytes_str("a.txt");
	ok(!job_plan_new(&s, p, NULL, &e) && e.code == ERR_NAME, "%s", e.why);
}

/* Sealed, and read again from what was sealed. */
static void sealed(const struct peer *p, struct job *job,
		   const struct target *target)
{
	struct job_spec s = { .filename = bytes_str("a.py"),
			      .code = bytes_str("print('\xc3\xa9')\n"),
			      .target = *target };
	struct job_plan *j = job_plan_new(&s, p, NULL, &e);
	struct sealed out = { .blob_fd = -1 };
	int fd = memfd_create("job", 0);

	ok(job_plan_seal(j, fd, &out, &e) == 0 &&
	   job_of_plan(job, j, &out, &e) == 0, "sealed: %s", e.why);
	is_str(job->ref.id, out.id, "its id");
	ok(job->payload.u.job.timeout_s == 60 &&
	   !job->payload.u.job.has_memory, "the session's limits");
	ok(bytes_eq(job->payload.u.job.code, s.code), "its code");
	struct envelope v;
	struct buf blob = { 0 }, payload = { 0 };
	buf_room(&blob, out.blob_n);
	blob.len = (size_t)out.blob_n;
	ok(pread(fd, blob.data, blob.len, 0) == (ssize_t)blob.len &&
	   envelope_parse(&v, buf_bytes(&out.envelope), &e) == 0 &&
	   seal_open(&payload, &v, buf_bytes(&blob),
		     p->invite.keys.session_key, &e) == 0, "it opens: %s",
	   e.why);
	ok(bytes_eq((struct bytes){ payload.data + 4, payload.len - 4 },
		    buf_bytes(&job->meta)), "to what the plan says");
	envelope_free(&v);
	buf_free(&blob);
	buf_free(&payload);
	sealed_free(&out);
	close(fd);
	job_plan_free(j);
}

static void hear(struct approval_list *l, enum event_kind kind,
		 enum role author, const uint8_t *pub, int want)
{
	struct payload ev = { .kind = ITEM_EVENT };

	ev.u.event.event = kind;
	memcpy(ev.u.event.pub, pub, PRIM_PUB);
	is_int(approval_hear(l, &ev, author, &e), want, "event %d of a %s",
	       kind, role_word(author));
}

static void approvals(const struct peer *p, const struct job *job)
{
	struct approval_list l = { 0 };
	const struct cert *runner = &party.cert[ROLE_RUNNER];
	struct payload result = { .kind = ITEM_RESULT };

	result.u.result.job = job->ref;
	hear(&l, EVENT_RUNNER_APPROVE, ROLE_SENDER, runner->pub, 0);
	hear(&l, EVENT_JOB_CANCEL, ROLE_OWNER, runner->pub, 0);
	ok(!job_may_run(job, &p->manifest, &l, runner->pub) &&
	   job_accepts(job, &result, runner, &p->manifest, &l, &e) < 0,
	   "not approved: %s", e.why);
	hear(&l, EVENT_RUNNER_APPROVE, ROLE_OWNER, runner->pub, 1);
	hear(&l, EVENT_RUNNER_APPROVE, ROLE_OWNER, runner->pub, 0);
	ok(job_may_run(job, &p->manifest, &l, runner->pub) &&
	   job_accepts(job, &result, runner, &p->manifest, &l, &e) == 0,
	   "approved: %s", e.why);
	ok(job_accepts(job, &result, &party.cert[ROLE_OWNER], &p->manifest,
		       &l, &e) < 0, "an owner ran nothing: %s", e.why);
	result.u.result.job.sha256[0] ^= 1;
	ok(job_accepts(job, &result, runner, &p->manifest, &l, &e) < 0,
	   "another ciphertext: %s", e.why);
	result.u.result.job = job->ref;
	hear(&l, EVENT_RUNNER_REJECT, ROLE_OWNER, runner->pub, 1);
	hear(&l, EVENT_RUNNER_APPROVE, ROLE_OWNER, runner->pub, 0);
	ok(approval_of(&l, runner->pub) == APPROVAL_REFUSED &&
	   !job_may_run(job, &p->manifest, &l, runner->pub) &&
	   job_accepts(job, &result, runner, &p->manifest, &l, &e) < 0,
	   "a rejection is final: %s", e.why);
	approval_free(&l);
}

static int tell(struct live *l, const struct peer *p, const struct job *job,
		struct bytes body, struct buf *out)
{
	struct event ev = { .kind = PROGRESS_EVENT, .data = body };
	enum progress_stream stream;

	return live_hear(l, p, job, &ev, &stream, out, &e);
}

static void output(const struct peer *p, const struct peer *runner,
		   const struct job *job)
{
	struct approval_list l = { 0 };
	struct live live = { 0 };
	cleanup_buf struct buf first = { 0 }, third = { 0 }, forged = { 0 },
		out = { 0 };

	live_frame(&first, runner, job->ref.id, 1, PROGRESS_STDOUT,
		   bytes_str("one\n"), &e);
	live_frame(&third, runner, job->ref.id, 3, PROGRESS_STDOUT,
		   bytes_str("three\n"), &e);
	live_frame(&forged, p, job->ref.id, 2, PROGRESS_STDOUT,
		   bytes_str("two\n"), &e);
	is_int(tell(&live, p, job, buf_bytes(&first), &out), 0,
	       "before it runs: %s", e.why);
	live_runner(&live, job, &p->manifest, &l, runner->pub);
	is_int(tell(&live, p, job, buf_bytes(&first), &out), 0,
	       "on a runner that is not approved: %s", e.why);
	hear(&l, EVENT_RUNNER_APPROVE, ROLE_OWNER, runner->pub, 1);
	live_runner(&live, job, &p->manifest, &l, runner->pub);
	is_int(tell(&live, p, job, buf_bytes(&first), &out), 1, "one");
	is_int(tell(&live, p, job, buf_bytes(&first), &out), 0,
	       "not twice: %s", e.why);
	is_int(tell(&live, p, job, buf_bytes(&forged), &out), 0,
	       "not another's: %s", e.why);
	is_int(tell(&live, p, job, buf_bytes(&third), &out), 1, "three");
	is_str(buf_cstr(&out), "one\nthree\n", "what was heard");
	live.over = true;
	live.has_seq = false;
	is_int(tell(&live, p, job, buf_bytes(&first), &out), 0,
	       "after its end: %s", e.why);
	is_int(tell(&live, p, job, bytes_str("{}"), &out), 0, "no frame: %s",
	       e.why);
	approval_free(&l);
}

static void hashes(void)
{
	char hex[JOB_HEX];

	job_code_hash(hex, bytes_str("abc"));
	is_str(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
	       "f20015ad", "code_sha256 is lowercase hex");
	ok(job_input_hash(hex, NULL, NULL, 0, &e) == 0, "of no inputs");
	is_str(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
	       "7852b855", "input_sha256 of nothing");
}

static void unplaced(void)
{
	struct routed_job s = { .state = ROUTED_FAILED,
				.reason = (char *)"runner_busy" };
	enum job_posted why = JOB_TAKEN;

	ok(job_is_unplaced(&s, &why) && why == JOB_RUNNER_BUSY, "busy");
	s.reason = (char *)"runner lost";
	ok(!job_is_unplaced(&s, &why), "lost is not unplaced");
	s.state = ROUTED_DONE;
	s.reason = (char *)"runner_busy";
	ok(!job_is_unplaced(&s, &why), "nor is done");
}

int main(void)
{
	struct job job, aimed;
	struct target any = { .kind = TARGET_ANY };

	party_begin(&party, MODE_EXECUTE);
	/* clocks of peers go by the session's beginning */
	party.m.created_at_ms = clock_now_ms() - 1000;
	party.m.expires_at_ms = party.m.created_at_ms + 3600000;
	buf_reset(&party.manifest);
	manifest_build(&party.manifest, &party.m, party.owner, &e);
	struct peer *p = peer_new(ROLE_SENDER), *v = peer_new(ROLE_OBSERVER);
	struct peer *r = peer_new(ROLE_RUNNER);

	plans(p);
	many(p);
	limits(p, v);
	sealed(p, &job, &any);
	approvals(p, &job);
	output(p, r, &job);
	struct target other = { .kind = TARGET_RUNNER,
				.name = bytes_str("box") };
	memcpy(other.pub, p->pub, PRIM_PUB);
	sealed(p, &aimed, &other);
	struct approval_list l = { 0 };
	hear(&l, EVENT_RUNNER_APPROVE, ROLE_OWNER, r->pub, 1);
	ok(!job_may_run(&aimed, &p->manifest, &l, r->pub),
	   "not the one that was asked");
	approval_free(&l);
	hashes();
	unplaced();
	job_free(&job);
	job_free(&aimed);
	peer_free(p);
	peer_free(v);
	peer_free(r);
	party_end(&party);
	return done_testing();
}
