/* SPDX-License-Identifier: MIT */
#include "runner/record/proof.h"

#include <stdlib.h>
#include <string.h>

#include "core/enc.h"
#include "runner/record/chain.h"
#include "runner/record/page.h"

/* What the comment at the end says. */
struct said {
	size_t at;			/* of the comment */
	struct bytes statement;		/* key to parts */
	uint8_t pub[PRIM_PUB], file[HASH_SIZE], head[HASH_SIZE];
	uint8_t sig[PRIM_SIG];
	uint64_t parts;
};

/* The last occurrence of a string, or -1. */
static int find_last(struct bytes in, const char *what, size_t *at)
{
	size_t n = strlen(what);
	for (size_t i = in.n >= n ? in.n - n + 1 : 0; i-- > 0;) {
		if (memcmp(in.p + i, what, n) == 0) {
			*at = i;
			return 0;
		}
	}
	return -1;
}

static int find_first(struct bytes in, const char *what, size_t *at)
{
	const uint8_t *p = memmem(in.p, in.n, what, strlen(what));
	*at = p ? (size_t)(p - in.p) : 0;
	return p ? 0 : -1;
}

/* "name value\n": the value, and rest moves past it. */
static int take(struct bytes *rest, const char *name, struct bytes *value)
{
	size_t n = strlen(name);
	const uint8_t *end = memchr(rest->p, '\n', rest->n);
	if (!end || rest->n < n + 1 || memcmp(rest->p, name, n) != 0 ||
	    rest->p[n] != ' ')
		return -1;
	*value = (struct bytes){ rest->p + n + 1,
				 (size_t)(end - rest->p) - n - 1 };
	rest->n -= (size_t)(end + 1 - rest->p);
	rest->p = end + 1;
	return 0;
}

static int take_number(struct bytes *rest, const char *name, uint64_t *to)
{
	struct bytes v;
	if (take(rest, name, &v) < 0 || v.n < 1 || v.n > 12 ||
	    (v.p[0] == '0' && v.n > 1))
		return -1;
	*to = 0;
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return -1;
		*to = *to * 10 + (v.p[i] - '0');
	}
	return 0;
}

static int take_hash(struct bytes *rest, const char *name,
		     uint8_t to[HASH_SIZE])
{
	struct bytes v;
	return take(rest, name, &v) < 0 || v.n != 2 * HASH_SIZE
		? -1 : enc_hex_decode(to, HASH_SIZE, v);
}

static int read_signature(struct said *s, struct bytes file)
{
	struct bytes v;
	if (find_last(file, PAGE_SIGNATURE, &s->at) < 0)
		return -1;
	struct bytes rest = { file.p + s->at + strlen(PAGE_SIGNATURE),
			      file.n - s->at - strlen(PAGE_SIGNATURE) };
	const uint8_t *from = rest.p;
	if (take(&rest, "key", &v) < 0 ||
	    enc_b64_fixed(s->pub, sizeof s->pub, v) < 0 ||
	    take_hash(&rest, "file", s->file) < 0 ||
	    take_hash(&rest, "head", s->head) < 0 ||
	    take_number(&rest, "parts", &s->parts) < 0)
		return -1;
	s->statement = (struct bytes){ from, (size_t)(rest.p - from) };
	if (take(&rest, "sig", &v) < 0 ||
	    enc_b64_fixed(s->sig, sizeof s->sig, v) < 0)
		return -1;
	return bytes_eq(rest, bytes_str(PAGE_END)) ? 0 : -1;
}

static bool is_signed(const struct said *s)
{
	cleanup_buf struct buf b = { 0 };
	buf_add(&b, PAGE_STATEMENT, sizeof PAGE_STATEMENT);
	buf_add(&b, s->statement.p, s->statement.n);
	return !buf_failed(&b) && prim_verify(s->sig, s->pub, b.data, b.len);
}

/* Where run and lines stand in the page. */
static int find_data(struct proof *p, struct bytes page)
{
	size_t at, end;
	if (find_first(page, PAGE_DATA, &at) < 0)
		return -1;
	struct bytes in = { page.p + at + strlen(PAGE_DATA),
			    page.n - at - strlen(PAGE_DATA) };
	if (find_first(in, PAGE_DATA_END, &end) < 0)
		return -1;
	in.n = end;
	const uint8_t *nl = memchr(in.p, '\n', in.n);
	if (!nl)
		return -1;
	p->run = (struct bytes){ in.p, (size_t)(nl - in.p) };
	p->lines = (struct bytes){ nl + 1, (size_t)(in.p + in.n - nl - 1) };
	return chain_is_run(p->run) ? 0 : -1;
}

/* The chain's own word on which part it was. */
static int check_parts(struct proof *p, const struct said *s, struct err *e)
{
	cleanup_buf struct buf lines = { 0 };
	if (page_unescape(&lines, p->lines) < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	struct chain_walk w;
	struct part part;
	int rc;
	chain_begin(&w, p->run, buf_bytes(&lines));
	while ((rc = chain_next(&w, &part, e)) > 0)
		part_free(&part);
	p->parts = w.at;
	if (rc < 0) {
		if (e)
			e->code = ERR_SIGNATURE;
		return err_prefix(e, "altered");
	}
	if (w.at != s->parts)
		return err_set(e, ERR_SIGNATURE, "altered: %llu parts were "
			       "signed, %zu are there",
			       (unsigned long long)s->parts, w.at);
	if (memcmp(w.hash, s->head, HASH_SIZE) != 0)
		return err_set(e, ERR_SIGNATURE, "altered: the parts are not "
			       "those that were signed");
	return 0;
}

int proof_check(struct proof *p, struct bytes file, const char *key,
		struct err *e)
{
	struct said s;
	uint8_t hash[HASH_SIZE];
	*p = (struct proof){ 0 };
	if (read_signature(&s, file) < 0)
		return err_set(e, ERR_INVALID, "not a record, or its "
			       "signature at the end was cut or changed");
	struct bytes page = { file.p, s.at };
	signer_fingerprint(p->fingerprint, s.pub);
	if (!is_signed(&s))
		return err_set(e, ERR_SIGNATURE, "altered: the signature at "
			       "the end does not hold");
	if (find_data(p, page) < 0)
		return err_set(e, ERR_SIGNATURE, "altered: the page around "
			       "the parts");
	if (check_parts(p, &s, e) < 0)
		return -1;
	hash_sha256(hash, page.p, page.n);
	if (memcmp(hash, s.file, sizeof hash) != 0)
		return err_set(e, ERR_SIGNATURE, "altered: the page around "
			       "the parts");
	if (key && strcmp(key, p->fingerprint) != 0)
		return err_set(e, ERR_FORBIDDEN, "signed by another key: %s",
			       p->fingerprint);
	p->pinned = key != NULL;
	return 0;
}
