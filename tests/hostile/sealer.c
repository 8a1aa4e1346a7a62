/* SPDX-License-Identifier: MIT
 *
 * Signs what a test of the relay posts.  A line in, a line out; seeds and
 * hashes are 64 hex digits, "-" stands for what is not given.
 *
 *	manifest SEED MODE CREATED EXPIRES MAX	-> signed manifest
 *		MODE: relay, execute, or open: execute without approval
 *	join SEED ROLE PARTICIPANT NAME [RUNNER[,LABEL...]]
 *						-> signed join (SEED: owner's)
 *	item PARTICIPANT KIND TYPE CREATED ID SHA256 SIZE [ID:SHA256,...]
 *						-> envelope, with refs
 *	progress PARTICIPANT JOB SEQ STREAM N	-> a frame of N bytes of output
 *	pub PARTICIPANT				-> its public key
 *	blob PARTICIPANT OWNER TYPE MIME NAME FILE OUT -> envelope
 *		FILE's bytes sealed as an item, the blob into OUT
 *	payload PARTICIPANT OWNER KIND CREATED FILE OUT [ID:SHA256,...]
 *						-> envelope
 *		the same with a payload that is FILE's bytes and no body
 *	invite SEED BASE ROLE			-> the link (SEED: owner's)
 *
 * join and item are about the manifest made last.  Nothing is checked: a
 * hostile peer signs what it likes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/enc.h"
#include "core/invite.h"
#include "core/host/file.h"
#include "core/payload.h"
#include "core/progress.h"
#include "core/seal.h"
#include "core/session.h"

#define FILE_MAX (64 << 20)

static struct manifest m;

static void seed_of(uint8_t out[32], const char *hex)
{
	if (enc_hex_decode(out, 32, bytes_str(hex)) < 0) {
		fprintf(stderr, "sealer: not a seed: %s\n", hex);
		exit(2);
	}
}

static void put(struct buf *b)
{
	puts(buf_cstr(b));
	fflush(stdout);
	buf_free(b);
}

static void make_manifest(char **w)
{
	uint8_t owner[32], seed[32];
	struct buf b = { 0 };
	struct err e = { 0 };
	seed_of(owner, w[1]);
	m = (struct manifest){ .max_item_bytes = atoll(w[5]) };
	for (int i = 0; i < ROLES; i++) {
		session_role_seed(seed, owner, (enum role)i);
		prim_pub(m.pub[i], seed);
	}
	key_session_id(m.session_id, m.pub[ROLE_OWNER]);
	bool images = strcmp(w[2], "images") == 0;
	m.mode = images || strcmp(w[2], "relay") == 0 ? MODE_RELAY
						      : MODE_EXECUTE;
	m.created_at_ms = atoll(w[3]);
	m.expires_at_ms = w[4][0] == '-' ? MANIFEST_FOREVER : atoll(w[4]);
	for (int i = 0; i < TYPE_IMAGE + images; i++) {
		m.allowed[i] = true;
		m.order[m.allowed_n++] = (enum item_type)i;
	}
	m.job = (struct job_limits){ .runtime = "python3.11", .timeout_s = 60,
				     .memory_mb = 512,
				     .approve_runners =
					     strcmp(w[2], "open") != 0 };
	if (manifest_build(&b, &m, owner, &e) < 0)
		fprintf(stderr, "sealer: %s\n", e.why);
	put(&b);
}

static void set_runner(struct runner_info *r, char *host, char *words)
{
	*r = (struct runner_info){ .host = host, .name = "r" };
	if (!words)
		return;
	char *word = strtok(words, ",");
	snprintf(r->name, sizeof r->name, "%s", word ? word : "r");
	while ((word = strtok(NULL, ",")) && r->label_n < LABELS_MAX)
		snprintf(r->labels[r->label_n++], LABEL_MAX + 1, "%s", word);
}

static void make_join(char **w)
{
	uint8_t owner[32], seed[32], role_seed[32];
	struct buf cert = { 0 }, b = { 0 };
	struct err e = { 0 };
	struct join j = { .created_at_ms = 1, .kind = KIND_CLI,
			  .display_name = w[4] };
	seed_of(owner, w[1]);
	seed_of(seed, w[3]);
	if (role_parse(&j.cert.role, bytes_str(w[2])) < 0)
		exit(2);
	j.cert.issued_at_ms = 1;
	prim_pub(j.cert.pub, seed);
	if (j.cert.role == ROLE_RUNNER) {
		j.kind = KIND_RUNNER;
		j.has_runner = true;
		set_runner(&j.runner, w[4], w[5]);
	}
	session_role_seed(role_seed, owner, j.cert.role);
	if (cert_build(&cert, &j.cert, &m, role_seed, &e) < 0 ||
	    join_build(&b, &j, buf_bytes(&cert), &m, seed, &e) < 0)
		fprintf(stderr, "sealer: %s\n", e.why);
	buf_free(&cert);
	put(&b);
}

static enum item_kind kind_of(const char *word)
{
	int i = ITEM_TEXT;
	while (i < ITEM_EVENT && strcmp(item_kind_word((enum item_kind)i),
					word) != 0)
		i++;
	return (enum item_kind)i;
}

static void set_refs(struct item_header *h, char *words)
{
	static struct item_ref refs[ITEM_REFS_MAX];
	h->refs = refs;
	for (char *word = strtok(words, ","); word && h->ref_n < ITEM_REFS_MAX;
	     word = strtok(NULL, ",")) {
		struct item_ref *ref = &refs[h->ref_n++];
		memset(ref, 0, sizeof *ref);
		memcpy(ref->id, word, ITEM_ID);
		seed_of(ref->sha256, word + ITEM_ID + 1);
	}
}

static void make_item(char **w)
{
	uint8_t seed[32], sha[32];
	struct buf head = { 0 }, b = { 0 };
	struct item_header h = { .created_at_ms = atoll(w[4]),
				 .size = atoll(w[7]) };
	seed_of(seed, w[1]);
	seed_of(sha, w[6]);
	h.kind = kind_of(w[2]);
	h.type = type_parse(bytes_str(w[3]));
	if (w[5][0] == '-' && !w[5][1])
		item_new_id(h.id);
	else
		snprintf(h.id, sizeof h.id, "%s", w[5]);
	memcpy(h.session_id, m.session_id, sizeof h.session_id);
	prim_pub(h.author, seed);
	if (w[8])
		set_refs(&h, w[8]);
	item_put_header(&head, &h);
	envelope_build(&b, buf_bytes(&head), sha, seed);
	buf_free(&head);
	put(&b);
}

static void make_pub(char **w)
{
	uint8_t seed[32], pub[32];
	struct buf b = { 0 };
	seed_of(seed, w[1]);
	prim_pub(pub, seed);
	enc_b64(&b, pub, sizeof pub);
	put(&b);
}

static void make_progress(char **w)
{
	uint8_t seed[32];
	struct buf b = { 0 }, covered = { 0 };
	struct progress p = { .seq = strtoull(w[3], NULL, 10) };
	size_t n = strtoul(w[5], NULL, 10) + BLOB_OVERHEAD;
	seed_of(seed, w[1]);
	snprintf(p.job, sizeof p.job, "%s", w[2]);
	memcpy(p.session_id, m.session_id, sizeof p.session_id);
	p.stream = strcmp(w[4], "stderr") == 0 ? PROGRESS_STDERR :
						 PROGRESS_STDOUT;
	if (buf_room(&p.frame, n))
		prim_random(p.frame.data, n);
	p.frame.len = n;
	progress_put_signed(&covered, &p);
	key_sign(p.sig, seed, KEY_PROGRESS, buf_bytes(&covered));
	progress_put(&b, &p);
	progress_free(&p);
	buf_free(&covered);
	put(&b);
}

static void make_blob(char **w)
{
	uint8_t seed[32], owner[32];
	struct session_keys keys;
	struct buf b = { 0 }, blob = { 0 }, envelope = { 0 };
	struct err e = { 0 };
	struct item_header h = { .created_at_ms = m.created_at_ms + 1,
				 .kind = ITEM_FILE,
				 .type = type_parse(bytes_str(w[3])) };
	seed_of(seed, w[1]);
	seed_of(owner, w[2]);
	session_from_owner(&keys, owner);
	item_new_id(h.id);
	memcpy(h.session_id, m.session_id, sizeof h.session_id);
	prim_pub(h.author, seed);
	payload_put_file(&b, bytes_str(w[4]), bytes_str(w[5]));
	if (file_read(AT_FDCWD, w[6], FILE_MAX, &blob, &e) != 0)
		exit(3);
	buf_add(&b, blob.data, blob.len);
	buf_reset(&blob);
	h.size = (int64_t)b.len;
	if (seal_blob(&blob, &envelope, &h, buf_bytes(&b), keys.session_key,
		      seed, NULL, &e) < 0 ||
	    file_write(AT_FDCWD, w[7], buf_bytes(&blob), 0600, &e) < 0)
		fprintf(stderr, "sealer: %s\n", e.why);
	buf_free(&b);
	buf_free(&blob);
	put(&envelope);
}

static void make_payload(char **w)
{
	uint8_t seed[32], owner[32], len[4];
	struct session_keys keys;
	struct buf b = { 0 }, meta = { 0 }, blob = { 0 }, envelope = { 0 };
	struct err e = { 0 };
	struct item_header h = { .created_at_ms = atoll(w[4]),
				 .kind = kind_of(w[3]),
				 .type = type_parse(bytes_str(
					strcmp(w[3], "job") ? "-" : "py")) };
	seed_of(seed, w[1]);
	seed_of(owner, w[2]);
	session_from_owner(&keys, owner);
	item_new_id(h.id);
	memcpy(h.session_id, m.session_id, sizeof h.session_id);
	prim_pub(h.author, seed);
	if (w[7])
		set_refs(&h, w[7]);
	if (file_read(AT_FDCWD, w[5], FILE_MAX, &meta, &e) != 0)
		exit(3);
	for (int i = 0; i < 4; i++)
		len[i] = (uint8_t)(meta.len >> (24 - 8 * i));
	buf_add(&b, len, sizeof len);
	buf_add(&b, meta.data, meta.len);
	h.size = (int64_t)b.len;
	if (seal_blob(&blob, &envelope, &h, buf_bytes(&b), keys.session_key,
		      seed, NULL, &e) < 0 ||
	    file_write(AT_FDCWD, w[6], buf_bytes(&blob), 0600, &e) < 0)
		fprintf(stderr, "sealer: %s\n", e.why);
	buf_free(&b);
	buf_free(&meta);
	buf_free(&blob);
	put(&envelope);
}

static void make_invite(char **w)
{
	uint8_t owner[32];
	enum role role;
	struct buf b = { 0 };
	struct err e = { 0 };
	seed_of(owner, w[1]);
	if (role_parse(&role, bytes_str(w[3])) < 0 ||
	    invite_build(&b, w[2], owner, role, &e) < 0)
		exit(2);
	put(&b);
}

int main(void)
{
	static char line[16384];
	char *w[10];
	if (prim_init() < 0)
		return 1;
	while (fgets(line, sizeof line, stdin)) {
		int n = 0;
		for (char *p = strtok(line, " \n"); p && n < 9;
		     p = strtok(NULL, " \n"))
			w[n++] = p;
		w[n] = NULL;
		if (n == 6 && strcmp(w[0], "manifest") == 0)
			make_manifest(w);
		else if ((n == 5 || n == 6) && strcmp(w[0], "join") == 0)
			make_join(w);
		else if ((n == 8 || n == 9) && strcmp(w[0], "item") == 0)
			make_item(w);
		else if (n == 6 && strcmp(w[0], "progress") == 0)
			make_progress(w);
		else if (n == 2 && strcmp(w[0], "pub") == 0)
			make_pub(w);
		else if (n == 8 && strcmp(w[0], "blob") == 0)
			make_blob(w);
		else if ((n == 7 || n == 8) && strcmp(w[0], "payload") == 0)
			make_payload(w);
		else if (n == 4 && strcmp(w[0], "invite") == 0)
			make_invite(w);
		else
			return 2;
	}
	return 0;
}
