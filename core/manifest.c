/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/json.h"
#include "core/manifest.h"

#define PACKAGE_MAX 100	/* characters of a name */

static const char *const modes[] = {
	[MODE_RELAY] = "relay", [MODE_EXECUTE] = "execute",
};

/* --- package names --- */

static bool is_lower_alnum(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_separator(uint8_t c) { return c == '-' || c == '_' || c == '.'; }

int manifest_package(struct buf *out, struct bytes name)
{
	size_t before = out->len;
	bool run = false;

	if (name.n == 0 || name.n > PACKAGE_MAX)
		return -1;
	for (size_t i = 0; i < name.n; i++) {
		uint8_t c = name.p[i];
		if (c >= 'A' && c <= 'Z')
			c = (uint8_t)(c + 'a' - 'A');
		bool separator = is_separator(c);
		if (!separator && !is_lower_alnum(c))
			return -1;
		if (!separator)
			buf_add_byte(out, c);
		else if (!run)
			buf_add_byte(out, '-');
		run = separator;
	}
	return buf_failed(out) || out->data[before] == '-' ||
	       out->data[out->len - 1] == '-' ? -1 : 0;
}

static bool is_normalised(struct bytes name)
{
	cleanup_buf struct buf b = { 0 };

	return manifest_package(&b, name) == 0 &&
	       bytes_eq(buf_bytes(&b), name);
}

bool manifest_has_package(const struct manifest *m, struct bytes name)
{
	cleanup_buf struct buf b = { 0 };

	if (manifest_package(&b, name) < 0)
		return false;
	for (size_t i = 0; i < m->job.package_n; i++)
		if (bytes_eq(buf_bytes(&b), bytes_str(m->job.packages[i])))
			return true;
	return false;
}

/* --- reading --- */

static void take_types(struct manifest *m, struct json_reader *r)
{
	const struct json *list = json_take_array(r, "allowed_types");

	if (!list)
		return;
	if (list->count == 0)
		json_fail(r, "allowed_types", "is empty");
	for (const struct json *v = list->child; v; v = v->next) {
		enum item_type type = v->type == JSON_STRING ?
				      type_parse(v->str) : TYPE_NONE;
		if (type == TYPE_NONE || m->allowed[type]) {
			json_fail(r, "allowed_types",
				  "has an unknown type, or one twice");
			return;
		}
		m->allowed[type] = true;
		m->order[m->allowed_n++] = type;
	}
}

static void take_packages(struct job_limits *job, struct json_reader *r)
{
	const struct json *list = json_take_array(r, "packages");

	if (!list || list->count == 0)
		return;
	job->packages = calloc(list->count, sizeof *job->packages);
	if (!job->packages) {
		json_fail(r, "packages", "out of memory");
		return;
	}
	for (const struct json *v = list->child; v; v = v->next) {
		char *name = v->type == JSON_STRING && is_normalised(v->str) ?
			     strndup((const char *)v->str.p, v->str.n) : NULL;
		if (!name) {
			json_fail(r, "packages", "has a name that is none");
			return;
		}
		job->packages[job->package_n++] = name;
	}
}

static void take_runtime(struct job_limits *job, struct json_reader *r)
{
	static const char prefix[] = "python3.";
	const size_t n = sizeof prefix - 1;
	struct bytes s = json_take_string(r, "runtime");
	bool good = s.n > n && s.n < sizeof job->runtime &&
		    memcmp(s.p, prefix, n) == 0;

	for (size_t i = n; good && i < s.n; i++)
		good = s.p[i] >= '0' && s.p[i] <= '9';
	if (good)
		memcpy(job->runtime, s.p, s.n);
	else
		json_fail(r, "runtime", "is not python3.<number>");
}

static int take_limits(struct manifest *m, const struct json *v,
		       struct err *e)
{
	struct job_limits *job = &m->job;
	struct json_reader r;

	json_open(&r, v, "job_limits");
	job->approve_runners = json_take_bool(&r, "approve_runners");
	job->memory_mb = json_take_int(&r, "memory_mb", 32, 65536);
	job->network = json_take_bool(&r, "network");
	take_packages(job, &r);
	job->return_out = json_take_bool(&r, "return_out");
	take_runtime(job, &r);
	job->timeout_s = json_take_int(&r, "timeout_s", 1, 3600);
	return json_close(&r, e);
}

static int take_roles(struct manifest *m, const struct json *v, struct err *e)
{
	struct json_reader r;

	json_open(&r, v, "roles");
	key_take(&r, "observer", m->pub[ROLE_OBSERVER]);
	key_take(&r, "runner", m->pub[ROLE_RUNNER]);
	key_take(&r, "sender", m->pub[ROLE_SENDER]);
	return json_close(&r, e);
}

static void take_expiry(struct manifest *m, struct json_reader *r)
{
	const struct json *v = json_take(r, "expires_at_ms");

	if (json_is_null(v))
		m->expires_at_ms = MANIFEST_FOREVER;
	else if (v && v->type == JSON_INT && v->num >= 0)
		m->expires_at_ms = v->num;
	else
		json_fail(r, "expires_at_ms", "is not a time");
}

static void take_mode(struct manifest *m, struct json_reader *r)
{
	struct bytes word = json_take_string(r, "mode");

	if (bytes_eq(word, bytes_str(modes[MODE_EXECUTE])))
		m->mode = MODE_EXECUTE;
	else if (!bytes_eq(word, bytes_str(modes[MODE_RELAY])))
		json_fail(r, "mode", "is neither relay nor execute");
}

static int take_manifest(struct manifest *m, const struct json *v,
			 struct err *e)
{
	struct json_reader r;

	json_open(&r, v, "manifest");
	take_types(m, &r);
	m->created_at_ms = json_take_int(&r, "created_at_ms", 0,
					 JSON_INT_MAX);
	take_expiry(m, &r);
	const struct json *limits = json_take(&r, "job_limits");
	m->max_item_bytes = json_take_int(&r, "max_item_bytes", 1,
					  MANIFEST_ITEM_MAX);
	take_mode(m, &r);
	key_take(&r, "owner_pub", m->pub[ROLE_OWNER]);
	const struct json *roles = json_take_object(&r, "roles");
	struct bytes id = json_take_string(&r, "session_id");
	if (key_is_session_id(id))
		memcpy(m->session_id, id.p, id.n);
	else
		json_fail(&r, "session_id", "is none");
	json_take_int(&r, "v", 1, 1);
	if (json_is_null(limits) != (m->mode == MODE_RELAY))
		json_fail(&r, "job_limits", "does not go with the mode");
	if (json_close(&r, e) < 0 || take_roles(m, roles, e) < 0)
		return -1;
	return m->mode == MODE_EXECUTE ? take_limits(m, limits, e) : 0;
}

/* --- what no field says alone --- */

static bool keys_differ(const struct manifest *m)
{
	for (int i = 0; i < ROLES; i++)
		for (int j = 0; j < i; j++)
			if (memcmp(m->pub[i], m->pub[j], PRIM_PUB) == 0)
				return false;
	return true;
}

static int check(const struct manifest *m, struct err *e)
{
	char id[SESSION_ID + 1];
	int64_t life = m->expires_at_ms - m->created_at_ms;

	key_session_id(id, m->pub[ROLE_OWNER]);
	if (strcmp(id, m->session_id) != 0)
		return err_set(e, ERR_INVALID, "manifest: the session id is "
			       "not that of its owner's key");
	if (m->expires_at_ms != MANIFEST_FOREVER &&
	    (life <= 0 || life > MANIFEST_TTL_MAX_MS))
		return err_set(e, ERR_INVALID, "manifest: expires before it "
			       "begins or more than 30 days later");
	if (!keys_differ(m))
		return err_set(e, ERR_INVALID,
			       "manifest: two roles share one key");
	if (m->mode == MODE_EXECUTE && !m->allowed[TYPE_PY])
		return err_set(e, ERR_INVALID,
			       "manifest: execute mode needs the type py");
	return 0;
}

static int read_signed(struct manifest *m, const struct json *doc,
		       struct err *e)
{
	struct json_reader r;
	uint8_t sig[PRIM_SIG];

	json_open(&r, doc, "signed manifest");
	const struct json *body = json_take_object(&r, "manifest");
	json_take_fixed(&r, "sig", sig, sizeof sig);
	if (json_close(&r, e) < 0 || take_manifest(m, body, e) < 0 ||
	    check(m, e) < 0)
		return -1;
	return key_verify(sig, m->pub[ROLE_OWNER], KEY_MANIFEST, body->raw, e);
}

int manifest_parse(struct manifest *m, struct bytes signed_manifest,
		   struct err *e)
{
	*m = (struct manifest){ 0 };
	struct json *doc = json_parse(signed_manifest, e);
	if (!doc)
		return err_prefix(e, "manifest");
	int r = read_signed(m, doc, e);
	json_free(doc);
	if (r < 0)
		manifest_free(m);
	return r;
}

void manifest_free(struct manifest *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->job.package_n; i++)
		free(m->job.packages[i]);
	free(m->job.packages);
	*m = (struct manifest){ 0 };
}

/* --- writing --- */

static void put_key(struct buf *b, const char *key, const uint8_t *pub)
{
	json_put_key(b, key);
	json_put_b64(b, pub, PRIM_PUB);
}

static void put_str(struct buf *b, const char *key, const char *v)
{
	json_put_key(b, key);
	json_put_string(b, bytes_str(v));
}

static void put_limits(struct buf *b, const struct job_limits *job)
{
	buf_add_byte(b, '{');
	json_put_key_bool(b, "approve_runners", job->approve_runners);
	json_put_key_int(b, "memory_mb", job->memory_mb);
	json_put_key_bool(b, "network", job->network);
	json_put_key(b, "packages");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < job->package_n; i++) {
		json_put_sep(b);
		json_put_string(b, bytes_str(job->packages[i]));
	}
	buf_add_byte(b, ']');
	json_put_key_bool(b, "return_out", job->return_out);
	put_str(b, "runtime", job->runtime);
	json_put_key_int(b, "timeout_s", job->timeout_s);
	buf_add_byte(b, '}');
}

static void put_types(struct buf *b, const struct manifest *m)
{
	json_put_key(b, "allowed_types");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < m->allowed_n; i++) {
		json_put_sep(b);
		json_put_string(b, bytes_str(type_word(m->order[i])));
	}
	buf_add_byte(b, ']');
}

static void put_roles(struct buf *b, const struct manifest *m)
{
	json_put_key(b, "roles");
	buf_add_byte(b, '{');
	put_key(b, "observer", m->pub[ROLE_OBSERVER]);
	put_key(b, "runner", m->pub[ROLE_RUNNER]);
	put_key(b, "sender", m->pub[ROLE_SENDER]);
	buf_add_byte(b, '}');
}

static void put_manifest(struct buf *b, const struct manifest *m)
{
	buf_add_byte(b, '{');
	put_types(b, m);
	json_put_key_int(b, "created_at_ms", m->created_at_ms);
	json_put_key(b, "expires_at_ms");
	if (m->expires_at_ms == MANIFEST_FOREVER)
		buf_add_str(b, "null");
	else
		json_put_int(b, m->expires_at_ms);
	json_put_key(b, "job_limits");
	if (m->mode == MODE_EXECUTE)
		put_limits(b, &m->job);
	else
		buf_add_str(b, "null");
	json_put_key_int(b, "max_item_bytes", m->max_item_bytes);
	put_str(b, "mode", modes[m->mode]);
	put_key(b, "owner_pub", m->pub[ROLE_OWNER]);
	put_roles(b, m);
	put_str(b, "session_id", m->session_id);
	json_put_key_int(b, "v", 1);
	buf_add_byte(b, '}');
}

int manifest_build(struct buf *out, const struct manifest *m,
		   const uint8_t owner_seed[PRIM_SEED], struct err *e)
{
	cleanup_buf struct buf body = { 0 }, text = { 0 };
	uint8_t sig[PRIM_SIG];
	struct manifest again;

	put_manifest(&body, m);
	key_sign(sig, owner_seed, KEY_MANIFEST, buf_bytes(&body));
	buf_add_str(&text, "{\"manifest\":");
	buf_add(&text, body.data, body.len);
	json_put_key(&text, "sig");
	json_put_b64(&text, sig, sizeof sig);
	buf_add_byte(&text, '}');
	if (buf_failed(&body) || buf_failed(&text))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (text.len > MANIFEST_MAX)
		return err_set(e, ERR_INVALID, "manifest: longer than 64 KiB, "
			       "name fewer packages");
	if (manifest_parse(&again, buf_bytes(&text), e) < 0)
		return -1;
	manifest_free(&again);
	buf_add(out, text.data, text.len);
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}
