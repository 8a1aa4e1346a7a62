/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/cert.h"
#include "core/clear.h"
#include "core/json.h"

#define NAME_CHARS 64
#define DESCRIPTION_CHARS 280
#define HOST_CHARS 128

static const char *const kinds[] = {
	[KIND_SDK] = "sdk", [KIND_CLI] = "cli", [KIND_WEB] = "web",
	[KIND_RUNNER] = "runner",
};
static const char *const sandboxes[] = {
	[SANDBOX_LOCAL] = "local", [SANDBOX_DOCKER] = "docker",
	[SANDBOX_KUBERNETES] = "kubernetes",
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

const char *client_kind_word(enum client_kind kind)
{
	return (unsigned)kind < COUNT(kinds) ? kinds[kind] : "";
}

/* The index of the word, or -1. */
static int word_index(const char *const *words, size_t n, struct bytes word)
{
	for (size_t i = 0; i < n; i++)
		if (bytes_eq(word, bytes_str(words[i])))
			return (int)i;
	return -1;
}

bool label_ok(struct bytes s)
{
	if (s.n == 0 || s.n > LABEL_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		bool mark = c == '.' || c == '_' || c == '-';
		if (!alnum && !(mark && i > 0))
			return false;
	}
	return true;
}

static void take_session(struct json_reader *r, const struct manifest *m)
{
	struct bytes id = json_take_string(r, "session_id");

	if (!bytes_eq(id, bytes_str(m->session_id)))
		json_fail(r, "session_id", "is of another session");
}

/* --- certificates --- */

struct cert_text {
	struct bytes body;
	uint8_t sig[PRIM_SIG];
};

/* Form only. */
static int take_cert(struct cert *c, struct cert_text *text,
		     const struct json *v, const struct manifest *m,
		     struct err *e)
{
	struct json_reader outer, r;

	json_open(&outer, v, "signed certificate");
	const struct json *body = json_take_object(&outer, "cert");
	json_take_fixed(&outer, "sig", text->sig, PRIM_SIG);
	if (json_close(&outer, e) < 0)
		return -1;
	text->body = body->raw;
	json_open(&r, body, "certificate");
	c->issued_at_ms = json_take_int(&r, "issued_at_ms", 0, JSON_INT_MAX);
	key_take(&r, "participant_pub", c->pub);
	if (role_parse(&c->role, json_take_string(&r, "role")) < 0)
		json_fail(&r, "role", "is unknown");
	take_session(&r, m);
	json_take_int(&r, "v", 1, 1);
	return json_close(&r, e);
}

/* A role's key certifies its own role and no other. */
static int verify_cert(const struct cert *c, const struct cert_text *text,
		       const struct manifest *m, struct err *e)
{
	return key_verify(text->sig, m->pub[c->role], KEY_CERT, text->body, e);
}

int cert_parse(struct cert *c, struct bytes signed_cert,
	       const struct manifest *m, struct err *e)
{
	struct cert_text text;

	*c = (struct cert){ 0 };
	struct json *doc = json_parse(signed_cert, e);
	if (!doc)
		return err_prefix(e, "certificate");
	int r = take_cert(c, &text, doc, m, e);
	if (r == 0)
		r = verify_cert(c, &text, m, e);
	json_free(doc);
	return r;
}

static void put_sig(struct buf *b, const uint8_t sig[PRIM_SIG])
{
	json_put_key(b, "sig");
	json_put_b64(b, sig, PRIM_SIG);
	buf_add_byte(b, '}');
}

static void put_session(struct buf *b, const struct manifest *m)
{
	json_put_key(b, "session_id");
	json_put_string(b, bytes_str(m->session_id));
	json_put_key(b, "v");
	json_put_int(b, 1);
}

int cert_build(struct buf *out, const struct cert *c, const struct manifest *m,
	       const uint8_t role_seed[PRIM_SEED], struct err *e)
{
	cleanup_buf struct buf body = { 0 };
	uint8_t sig[PRIM_SIG], pub[PRIM_PUB];

	prim_pub(pub, role_seed);
	if (memcmp(pub, m->pub[c->role], PRIM_PUB) != 0)
		return err_set(e, ERR_SIGNATURE, "the link's key is not the "
			       "session's key of a %s", role_word(c->role));
	buf_add_byte(&body, '{');
	json_put_key(&body, "issued_at_ms");
	json_put_int(&body, c->issued_at_ms);
	json_put_key(&body, "participant_pub");
	json_put_b64(&body, c->pub, PRIM_PUB);
	json_put_key(&body, "role");
	json_put_string(&body, bytes_str(role_word(c->role)));
	put_session(&body, m);
	buf_add_byte(&body, '}');
	key_sign(sig, role_seed, KEY_CERT, buf_bytes(&body));
	buf_add_str(out, "{\"cert\":");
	buf_add(out, body.data, body.len);
	put_sig(out, sig);
	if (buf_failed(&body) || buf_failed(out))
		return err_set(e, ERR_MEMORY, "out of memory");
	return 0;
}

/* --- joins --- */

/* What a join says in words, before it is known who says it: the published
 * client looks at the signatures first. */
struct join_words {
	struct bytes description, display_name, host, name;
	bool has_description;
	const struct json *labels;
};

static int take_runner(struct runner_info *info, struct join_words *words,
		       const struct json *v, struct err *e)
{
	struct json_reader r;

	json_open(&r, v, "runner");
	words->host = json_take_string(&r, "host");
	words->labels = json_take_array(&r, "labels");
	for (const struct json *at = words->labels ? words->labels->child
						   : NULL; at; at = at->next)
		if (at->type != JSON_STRING)
			json_fail(&r, "labels", "are not strings");
	words->name = json_take_string(&r, "name");
	info->network_unblocked = json_take_bool(&r, "network_unblocked");
	int box = word_index(sandboxes, COUNT(sandboxes),
			     json_take_string(&r, "sandbox"));
	if (box < 0)
		json_fail(&r, "sandbox", "is unknown");
	else
		info->sandbox = (enum sandbox)box;
	return json_close(&r, e);
}

static void take_kind(struct join *j, struct json_reader *r)
{
	int kind = word_index(kinds, COUNT(kinds), json_take_string(r, "kind"));

	if (kind < 0)
		json_fail(r, "kind", "is unknown");
	else
		j->kind = (enum client_kind)kind;
}

/* Form only; `cert` is the certificate inside. */
static int take_join(struct join *j, struct join_words *words,
		     const struct json *body, const struct json **cert,
		     const struct manifest *m, struct err *e)
{
	struct json_reader r;

	json_open(&r, body, "join");
	*cert = json_take_object(&r, "cert");
	j->created_at_ms = json_take_int(&r, "created_at_ms", 0, JSON_INT_MAX);
	words->has_description = r.next && bytes_eq(r.next->key,
						    bytes_str("description"));
	if (words->has_description)
		words->description = json_take_string(&r, "description");
	words->display_name = json_take_string(&r, "display_name");
	take_kind(j, &r);
	const struct json *runner = json_take(&r, "runner");
	take_session(&r, m);
	json_take_int(&r, "v", 1, 1);
	if (json_close(&r, e) < 0)
		return -1;
	j->has_runner = !json_is_null(runner);
	return j->has_runner ? take_runner(&j->runner, words, runner, e) : 0;
}

/* Display text as an owned string (it holds no NUL). */
static int keep_display(char **out, struct bytes s, size_t max_chars,
			const char *what, struct err *e)
{
	if (clear_check(s, max_chars, what, e) < 0)
		return -1;
	*out = strndup((const char *)s.p, s.n);
	return *out ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}

static int keep_runner(struct runner_info *info,
		       const struct join_words *words, struct err *e)
{
	if (!label_ok(words->name))
		return err_set(e, ERR_INVALID, "join: the runner's name is "
			       "none");
	memcpy(info->name, words->name.p, words->name.n);
	if (words->labels->count > LABELS_MAX)
		return err_set(e, ERR_INVALID, "join: more than 16 labels");
	for (const struct json *v = words->labels->child; v; v = v->next) {
		if (!label_ok(v->str))
			return err_set(e, ERR_INVALID, "join: a label of the "
				       "runner is none");
		memcpy(info->labels[info->label_n++], v->str.p, v->str.n);
	}
	return keep_display(&info->host, words->host, HOST_CHARS,
			    "the runner's host", e);
}

static int keep_words(struct join *j, const struct join_words *words,
		      struct err *e)
{
	bool is_runner = j->cert.role == ROLE_RUNNER;

	if (is_runner != (j->kind == KIND_RUNNER) ||
	    is_runner != j->has_runner)
		return err_set(e, ERR_INVALID, "join: role runner, kind runner "
			       "and runner info come together");
	if (keep_display(&j->display_name, words->display_name, NAME_CHARS,
			 "display_name", e) < 0)
		return -1;
	if (words->has_description &&
	    keep_display(&j->description, words->description,
			 DESCRIPTION_CHARS, "description", e) < 0)
		return -1;
	return j->has_runner ? keep_runner(&j->runner, words, e) : 0;
}

static int read_join(struct join *j, const struct json *doc,
		     const struct manifest *m, struct err *e)
{
	struct join_words words = { 0 };
	const struct json *cert;
	struct cert_text text;
	struct json_reader r;
	uint8_t sig[PRIM_SIG];

	json_open(&r, doc, "signed join");
	const struct json *body = json_take_object(&r, "join");
	json_take_fixed(&r, "sig", sig, sizeof sig);
	if (json_close(&r, e) < 0 ||
	    take_join(j, &words, body, &cert, m, e) < 0 ||
	    take_cert(&j->cert, &text, cert, m, e) < 0 ||
	    verify_cert(&j->cert, &text, m, e) < 0 ||
	    key_verify(sig, j->cert.pub, KEY_JOIN, body->raw, e) < 0)
		return -1;
	return keep_words(j, &words, e);
}

int join_parse(struct join *j, struct bytes signed_join,
	       const struct manifest *m, struct err *e)
{
	*j = (struct join){ 0 };
	struct json *doc = json_parse(signed_join, e);
	if (!doc)
		return err_prefix(e, "join");
	int r = read_join(j, doc, m, e);
	json_free(doc);
	if (r < 0)
		join_free(j);
	return r;
}

void join_free(struct join *j)
{
	if (!j)
		return;
	free(j->description);
	free(j->display_name);
	free(j->runner.host);
	*j = (struct join){ 0 };
}

static void put_str(struct buf *b, const char *key, const char *v)
{
	json_put_key(b, key);
	json_put_string(b, bytes_str(v ? v : ""));
}

static void put_runner(struct buf *b, const struct runner_info *info)
{
	buf_add_byte(b, '{');
	put_str(b, "host", info->host);
	json_put_key(b, "labels");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < info->label_n; i++) {
		json_put_sep(b);
		json_put_string(b, bytes_str(info->labels[i]));
	}
	buf_add_byte(b, ']');
	put_str(b, "name", info->name);
	json_put_key(b, "network_unblocked");
	buf_add_str(b, info->network_unblocked ? "true" : "false");
	put_str(b, "sandbox", sandboxes[info->sandbox]);
	buf_add_byte(b, '}');
}

static void put_join(struct buf *b, const struct join *j,
		     struct bytes signed_cert, const struct manifest *m)
{
	buf_add_byte(b, '{');
	json_put_key(b, "cert");
	buf_add(b, signed_cert.p, signed_cert.n);
	json_put_key(b, "created_at_ms");
	json_put_int(b, j->created_at_ms);
	if (j->description)
		put_str(b, "description", j->description);
	put_str(b, "display_name", j->display_name);
	put_str(b, "kind", kinds[j->kind]);
	json_put_key(b, "runner");
	if (j->has_runner)
		put_runner(b, &j->runner);
	else
		buf_add_str(b, "null");
	put_session(b, m);
	buf_add_byte(b, '}');
}

int join_build(struct buf *out, const struct join *j,
	       struct bytes signed_cert, const struct manifest *m,
	       const uint8_t seed[PRIM_SEED], struct err *e)
{
	cleanup_buf struct buf body = { 0 }, text = { 0 };
	uint8_t sig[PRIM_SIG];
	struct join again;

	put_join(&body, j, signed_cert, m);
	key_sign(sig, seed, KEY_JOIN, buf_bytes(&body));
	buf_add_str(&text, "{\"join\":");
	buf_add(&text, body.data, body.len);
	put_sig(&text, sig);
	if (buf_failed(&body) || buf_failed(&text))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (text.len > JOIN_MAX)
		return err_set(e, ERR_INVALID, "join: longer than 8 KiB");
	if (join_parse(&again, buf_bytes(&text), m, e) < 0)
		return -1;
	join_free(&again);
	buf_add(out, text.data, text.len);
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}
