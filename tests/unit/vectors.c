/* SPDX-License-Identifier: MIT
 *
 * Runs every case of vector files against core/ (vectors/README.md): prints
 * each disagreement and closes with "N passed, N failed". */
#include "core/progress_seal.h"
#include "tests/unit/vectors_item.h"

/* Accepted by the published client; we refuse them, on purpose. */
static bool is_stricter(const char *name)
{
	static const char *const names[] = {
		"same_dup", "fifo", "chardev", "dir_file_clash",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void section_keys(const struct world *w)
{
	static const struct { const char *word; enum key_context context; }
	contexts[] = {
		{ "manifest", KEY_MANIFEST }, { "cert", KEY_CERT },
		{ "join", KEY_JOIN }, { "item", KEY_ITEM },
		{ "progress", KEY_PROGRESS },
	};
	const cJSON *c;
	uint8_t seed[32], pub[32], sig[64];
	char fingerprint[KEY_FINGERPRINT];

	cJSON_ArrayForEach(c, loose_get(w->file, "keys")) {
		struct buf msg = { 0 };
		const char *word = loose_str(c, "context");
		size_t i = 0;

		begin("keys", c, loose_str(c, "fingerprint"));
		while (i < 4 && strcmp(contexts[i].word, word) != 0)
			i++;
		expect(loose_fixed(seed, 32, c, "seed") == 0 &&
		       loose_b64(&msg, c, "message") == 0, "case");
		prim_pub(pub, seed);
		expect_b64("public", loose_str(c, "public"), pub, 32);
		key_fingerprint(fingerprint, pub);
		expect_text("fingerprint", loose_str(c, "fingerprint"),
			    bytes_str(fingerprint));
		key_sign(sig, seed, contexts[i].context, buf_bytes(&msg));
		expect_b64("signature", loose_str(c, "signature"), sig, 64);
		expect(key_verify(sig, pub, contexts[i].context,
				  buf_bytes(&msg), NULL) == 0, "verification");
		buf_free(&msg);
		end();
	}
}

static void section_canonical_text(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "canonical_text")) {
		struct buf text = { 0 }, out = { 0 };
		struct payload p;

		begin("canonical_text", c, loose_str(c, "payload"));
		loose_bytes(&text, loose_str(c, "text"));
		payload_put_text(&out, buf_bytes(&text));
		expect_b64("payload", loose_str(c, "payload"), out.data,
			   out.len);
		struct bytes meta = { out.data + 4, out.len - 4 };
		if (payload_parse(&p, meta, 0, NULL) < 0)
			disagree("read back", "a text", "nothing");
		else
			expect(bytes_eq(p.u.text.text, buf_bytes(&text)),
			       "text read back");
		payload_free(&p);
		buf_free(&text);
		buf_free(&out);
		end();
	}
}

/* --- who one is --- */

static void section_certs(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "certs")) {
		struct err e = { 0 };
		struct cert cert;

		begin("certs", c, "?");
		judge(c, cert_parse(&cert, bytes_str(loose_str(c, "cert")),
				    &w->execute, &e), &e);
		end();
	}
}

static void expect_cert(const struct world *w, const struct cert *cert,
			const char *text)
{
	struct buf out = { 0 };
	struct err e = { 0 };
	uint8_t seed[32];

	session_role_seed(seed, w->owner_seed, cert->role);
	if (cert_build(&out, cert, &w->execute, seed, &e) < 0)
		disagree("certificate made again", "one", e.why);
	else
		expect_text("certificate made again", text, buf_bytes(&out));
	buf_free(&out);
}

static void section_participants(const struct world *w)
{
	const cJSON *c;
	uint8_t seed[32], pub[32];

	cJSON_ArrayForEach(c, w->participants) {
		const char *text = loose_str(c, "cert");
		struct err e = { 0 };
		struct cert cert;

		begin("participants", NULL, c->string);
		expect(loose_fixed(seed, 32, c, "seed") == 0, "seed");
		prim_pub(pub, seed);
		expect_b64("public", loose_str(c, "public"), pub, 32);
		if (cert_parse(&cert, bytes_str(text), &w->execute, &e) < 0) {
			disagree("certificate", "ok", e.why);
		} else {
			expect_text("role", c->string,
				    bytes_str(role_word(cert.role)));
			expect(prim_equal(cert.pub, pub, 32), "its key");
			expect_cert(w, &cert, text);
		}
		end();
	}
}

/* The join again, if its participant's seed is in the file. */
static void expect_join(const struct world *w, const struct join *j,
			const char *text)
{
	const cJSON *who = loose_get(w->participants, role_word(j->cert.role));
	struct buf cert = { 0 }, out = { 0 };
	uint8_t seed[32], pub[32], role_seed[32];
	struct err e = { 0 };

	if (loose_fixed(seed, 32, who, "seed") < 0)
		return;
	prim_pub(pub, seed);
	if (!prim_equal(pub, j->cert.pub, 32))
		return;
	session_role_seed(role_seed, w->owner_seed, j->cert.role);
	if (cert_build(&cert, &j->cert, &w->execute, role_seed, &e) < 0 ||
	    join_build(&out, j, buf_bytes(&cert), &w->execute, seed, &e) < 0)
		disagree("join made again", "one", e.why);
	else
		expect_text("join made again", text, buf_bytes(&out));
	buf_free(&cert);
	buf_free(&out);
}

static void section_joins(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "joins")) {
		const char *text = loose_str(c, "join");
		struct buf in = { 0 };
		struct err e = { 0 };
		struct join j;

		begin("joins", c, "?");
		loose_bytes(&in, text);
		if (judge(c, join_parse(&j, buf_bytes(&in), &w->execute, &e),
			  &e))
			expect_join(w, &j, text);
		join_free(&j);
		buf_free(&in);
		end();
	}
}

/* --- the session --- */

static void section_manifests(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "manifests")) {
		struct err e = { 0 };
		struct manifest m;

		begin("manifests", c, "?");
		judge(c, manifest_parse(&m, bytes_str(loose_str(c, "signed")),
					&e), &e);
		manifest_free(&m);
		end();
	}
}

static void section_invites(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "invites")) {
		struct buf url = { 0 };
		struct err e = { 0 };
		struct invite v;

		begin("invites", c, "?");
		loose_bytes(&url, loose_str(c, "url"));
		if (judge(c, invite_parse(&v, buf_bytes(&url), &e), &e)) {
			expect_text("base_url", loose_str(c, "base_url"),
				    bytes_str(v.base_url));
			expect_text("role", loose_str(c, "role"),
				    bytes_str(role_word(v.role)));
			expect_text("session_id", loose_str(c, "session_id"),
				    bytes_str(v.session_id));
		}
		if (v.role == ROLE_OWNER && v.base_url)
			expect(prim_equal(v.keys.session_key, w->session_key,
					  32), "session key");
		invite_free(&v);
		buf_free(&url);
		end();
	}
}

static void take_limits(struct job_limits *job, const cJSON *c)
{
	const cJSON *list = loose_get(c, "packages"), *name;

	job->approve_runners = cJSON_IsTrue(loose_get(c, "approve_runners"));
	job->network = cJSON_IsTrue(loose_get(c, "network"));
	job->return_out = cJSON_IsTrue(loose_get(c, "return_out"));
	job->memory_mb = loose_int(c, "memory_mb");
	job->timeout_s = loose_int(c, "timeout_s");
	snprintf(job->runtime, sizeof job->runtime, "%s",
		 loose_str(c, "runtime"));
	job->packages = calloc((size_t)cJSON_GetArraySize(list) + 1,
			       sizeof *job->packages);
	cJSON_ArrayForEach(name, list)
		job->packages[job->package_n++] = strdup(name->valuestring);
}

static void take_params(struct manifest *m, const cJSON *c)
{
	const cJSON *type, *ttl = loose_get(c, "ttl_ms");

	cJSON_ArrayForEach(type, loose_get(c, "allowed_types")) {
		m->order[m->allowed_n] =
			type_parse(bytes_str(type->valuestring));
		m->allowed[m->order[m->allowed_n++]] = true;
	}
	m->mode = strcmp(loose_str(c, "mode"), "execute") == 0 ? MODE_EXECUTE
							       : MODE_RELAY;
	m->created_at_ms = loose_int(c, "created_at_ms");
	m->expires_at_ms = cJSON_IsNumber(ttl) ?
			   m->created_at_ms + loose_int(c, "ttl_ms") :
			   MANIFEST_FOREVER;
	m->max_item_bytes = loose_int(c, "max_item_bytes");
	if (m->mode == MODE_EXECUTE)
		take_limits(&m->job, loose_get(c, "job_limits"));
}

static void expect_manifest(const struct world *w, const char *params,
			    const char *manifest)
{
	struct manifest m = { 0 };
	struct buf out = { 0 };
	struct err e = { 0 };
	uint8_t seed[32];

	begin("session", NULL, manifest);
	take_params(&m, loose_get(w->session, params));
	for (int i = 0; i < ROLES; i++) {
		session_role_seed(seed, w->owner_seed, (enum role)i);
		prim_pub(m.pub[i], seed);
	}
	key_session_id(m.session_id, m.pub[ROLE_OWNER]);
	if (manifest_build(&out, &m, w->owner_seed, &e) < 0)
		disagree("manifest built", "one", e.why);
	else
		expect_text("manifest built", loose_str(w->session, manifest),
			    buf_bytes(&out));
	manifest_free(&m);
	buf_free(&out);
	end();
}

static void expect_role(const struct world *w, enum role role)
{
	const char *word = role_word(role);
	const char *base = loose_str(w->session, "base_url");
	uint8_t seed[32], pub[32];
	struct buf url = { 0 };
	struct err e = { 0 };

	begin("session", NULL, word);
	session_role_seed(seed, w->owner_seed, role);
	prim_pub(pub, seed);
	expect_b64("role seed",
		   loose_str(loose_get(w->session, "role_seeds"), word), seed,
		   32);
	expect_b64("role key",
		   loose_str(loose_get(w->session, "role_pubs"), word), pub,
		   32);
	if (invite_build(&url, base, w->owner_seed, role, &e) < 0)
		disagree("invite", "one", e.why);
	else
		expect_text("invite",
			    loose_str(loose_get(w->session, "invites"), word),
			    buf_bytes(&url));
	buf_free(&url);
	end();
}

static void section_session(const struct world *w)
{
	struct session_keys keys;
	uint8_t pub[32];
	char id[SESSION_ID + 1];

	begin("session", NULL, "derived");
	session_from_owner(&keys, w->owner_seed);
	expect_b64("session_key", loose_str(w->session, "session_key"),
		   keys.session_key, 32);
	prim_pub(pub, w->owner_seed);
	key_session_id(id, pub);
	expect_text("session_id", loose_str(w->session, "session_id"),
		    bytes_str(id));
	end();
	for (int i = 0; i < ROLES; i++)
		expect_role(w, (enum role)i);
	expect_manifest(w, "params_execute", "manifest_execute");
	expect_manifest(w, "params_relay", "manifest_relay");
}

/* --- payloads and results --- */

static void section_payloads(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "payloads")) {
		struct passage x = { 0 };
		struct err e = { 0 };

		begin("payloads", c, "?");
		buf_room(&x.payload, 4);
		expect(loose_b64(&x.payload, c, "payload") == 0, "case");
		judge(c, take_payload(&x, &e), &e);
		passage_free(&x);
		end();
	}
}

static int take_meta(struct payload *p, struct buf *text, const cJSON *meta,
		     struct err *e)
{
	loose_canonical(text, meta);
	return payload_parse(p, buf_bytes(text), 0, e);
}

static int binds(const cJSON *c, const struct approvals *a, struct err *e)
{
	const cJSON *ref = loose_get(c, "job_ref");
	struct buf job_text = { 0 }, result_text = { 0 };
	struct payload job = { 0 }, result = { 0 };
	struct item_ref job_ref = { 0 };
	uint8_t author[32];

	snprintf(job_ref.id, sizeof job_ref.id, "%s", loose_str(ref, "id"));
	int r = loose_fixed(job_ref.sha256, 32, ref, "blob_sha256");
	if (r == 0)
		r = loose_fixed(author, 32, c, "author");
	if (r == 0)
		r = take_meta(&job, &job_text, loose_get(c, "job"), e);
	if (r == 0)
		r = take_meta(&result, &result_text, loose_get(c, "result"),
			      e);
	if (r == 0)
		r = result_binds(&result, author, &job, &job_ref, a, e);
	payload_free(&job);
	payload_free(&result);
	buf_free(&job_text);
	buf_free(&result_text);
	return r;
}

static void section_results(const struct world *w)
{
	const cJSON *c, *pub;

	cJSON_ArrayForEach(c, loose_get(w->file, "results")) {
		const cJSON *approved = loose_get(c, "approved");
		uint8_t list[16][PRIM_PUB];
		struct approvals a = { .approved = (const void *)list,
				       .asked = cJSON_IsArray(approved) };
		struct err e = { 0 };

		begin("results", c, "?");
		cJSON_ArrayForEach(pub, approved)
			if (a.approved_n < 16)
				enc_b64_fixed(list[a.approved_n++], PRIM_PUB,
					      bytes_str(pub->valuestring));
		judge(c, binds(c, &a, &e), &e);
		end();
	}
}

/* --- live output --- */

/* Made again with its nonce, byte for byte. */
static void expect_progress(const struct world *w, const struct progress *p,
			    struct bytes output, const char *body)
{
	struct progress again = *p;
	struct buf out = { 0 };
	struct err e = { 0 };
	uint8_t seed[32];

	again.frame = (struct buf){ 0 };
	loose_fixed(seed, 32, loose_get(w->participants, "runner"), "seed");
	if (progress_seal(&again, output, w->session_key, seed, p->frame.data,
			  &e) < 0)
		disagree("sealed again", "a frame", e.why);
	progress_put(&out, &again);
	expect_text("sealed again", body, buf_bytes(&out));
	progress_free(&again);
	buf_free(&out);
}

static void section_progress(const struct world *w)
{
	const cJSON *c;
	uint8_t runner[32];

	loose_fixed(runner, 32, loose_get(w->participants, "runner"),
		    "public");
	cJSON_ArrayForEach(c, loose_get(w->file, "progress")) {
		const char *body = loose_str(c, "body");
		struct buf out = { 0 };
		struct progress p = { 0 };
		struct err e = { 0 };

		begin("progress", c, "?");
		int r = progress_parse(&p, bytes_str(body), &e) < 0 ||
			progress_verify(&p, runner, &e) < 0 ||
			progress_open(&out, &p, w->session_key, &e) < 0 ?
			-1 : 0;
		if (judge(c, r, &e)) {
			expect_b64("output", loose_str(c, "output"), out.data,
				   out.len);
			expect_progress(w, &p, buf_bytes(&out), body);
		}
		progress_free(&p);
		buf_free(&out);
		end();
	}
}

/* --- archives --- */

static void expect_entries(const struct zip_list *list, const cJSON *entries)
{
	const cJSON *c;
	size_t i = 0;

	if (!entries)
		return;
	expect((size_t)cJSON_GetArraySize(entries) == list->n,
	       "number of entries");
	cJSON_ArrayForEach(c, entries) {
		if (i >= list->n)
			return;
		const struct zip_entry *v = &list->v[i++];
		expect_text("path", loose_str(c, "path"), bytes_str(v->path));
		expect(v->size == (uint64_t)loose_int(c, "size"), "size");
		expect(v->compressed_size ==
		       (uint64_t)loose_int(c, "compressed_size"),
		       "compressed_size");
		expect(v->is_dir == cJSON_IsTrue(loose_get(c, "is_dir")),
		       "is_dir");
	}
}

static int take_zip(struct buf *out, const char *text)
{
	struct buf packed = { 0 };

	if (strncmp(text, "gz:", 3) != 0)
		return enc_b64_decode(out, bytes_str(text));
	int r = enc_b64_decode(&packed, bytes_str(text + 3));
	if (r == 0)
		r = loose_gunzip(out, buf_bytes(&packed));
	buf_free(&packed);
	return r;
}

static void section_zips(const struct world *w)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, loose_get(w->file, "zips")) {
		struct buf file = { 0 };
		struct zip_list list = { 0 };
		struct err e = { 0 };

		begin("zips", c, "?");
		expect(take_zip(&file, loose_str(c, "zip")) == 0, "case");
		struct bytes view = buf_bytes(&file);
		struct zip_source src = zip_source_bytes(&view);
		int r = zip_check(&src, &list, &e);
		if (is_stricter(tally.name) && r < 0)
			;	/* as it should be */
		else if (judge(c, r, &e))
			expect_entries(&list, loose_get(c, "entries"));
		zip_list_free(&list);
		buf_free(&file);
		end();
	}
}

/* --- the file --- */

static int take_world(struct world *w, const cJSON *file)
{
	struct err e = { 0 };

	*w = (struct world){ .file = file };
	w->session = loose_get(file, "session");
	w->participants = loose_get(file, "participants");
	const char *execute = loose_str(w->session, "manifest_execute");
	const char *relay = loose_str(w->session, "manifest_relay");
	if (!execute || !relay ||
	    loose_fixed(w->owner_seed, 32, w->session, "owner_seed") < 0 ||
	    loose_fixed(w->session_key, 32, w->session, "session_key") < 0)
		return -1;
	if (manifest_parse(&w->execute, bytes_str(execute), &e) < 0 ||
	    manifest_parse(&w->relay, bytes_str(relay), &e) < 0) {
		printf("session: %s\n", e.why);
		return -1;
	}
	return 0;
}

static int run_file(const char *path)
{
	static void (*const sections[])(const struct world *) = {
		section_keys, section_canonical_text, section_session,
		section_participants, section_certs, section_invites,
		section_manifests, section_joins, section_items,
		section_tampered, section_payloads, section_results,
		section_zips, section_progress,
	};
	cJSON *file = loose_read(path);
	struct world w = { 0 };

	if (!file || take_world(&w, file) < 0) {
		printf("%s: not a file of vectors\n", path);
		cJSON_Delete(file);
		return -1;
	}
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
		sections[i](&w);
	manifest_free(&w.execute);
	manifest_free(&w.relay);
	cJSON_Delete(file);
	return 0;
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc < 2 || prim_init() < 0) {
		fprintf(stderr, "usage: vectors FILE...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (run_file(argv[i]) < 0)
			r = tally.failed = tally.failed + 1;
	printf("%d passed, %d failed\n", tally.passed, tally.failed);
	return r || tally.failed || tally.passed == 0;
}
