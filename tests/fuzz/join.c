/* SPDX-License-Identifier: MIT
 *
 * A join of anybody; and the same bytes as the join itself, around a good
 * certificate in place of "@" and signed by its participant. */
#include <stdlib.h>
#include <string.h>

#include "core/enc.h"
#include "tests/unit/party.h"

static struct party party;

static void sign(struct buf *out, struct bytes in, enum role role)
{
	const struct buf *cert = &party.signed_cert[role];
	const uint8_t *at = in.n ? memchr(in.p, '@', in.n) : NULL;
	size_t n = at ? (size_t)(at - in.p) : in.n;
	struct buf body = { 0 };
	uint8_t sig[PRIM_SIG];

	buf_add(&body, in.p, n);
	if (at) {
		buf_add(&body, cert->data, cert->len);
		buf_add(&body, at + 1, in.n - n - 1);
	}
	key_sign(sig, party.seed[role], KEY_JOIN, buf_bytes(&body));
	buf_add_str(out, "{\"join\":");
	buf_add(out, body.data, body.len);
	buf_add_str(out, ",\"sig\":\"");
	enc_b64(out, sig, sizeof sig);
	buf_add_str(out, "\"}");
	buf_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!party.m.mode)
		party_begin(&party, MODE_EXECUTE);
	if (n > JOIN_MAX)
		return 0;
	struct bytes in = { p, n };
	struct join j;
	struct err e = { 0 };
	if (join_parse(&j, in, &party.m, &e) == 0)
		join_free(&j);
	for (int i = 0; i < 2; i++) {
		enum role role = i ? ROLE_RUNNER : ROLE_SENDER;
		struct buf text = { 0 }, again = { 0 };
		sign(&text, in, role);
		if (join_parse(&j, buf_bytes(&text), &party.m, &e) == 0) {
			if (text.len <= JOIN_MAX &&
			    (join_build(&again, &j,
				buf_bytes(&party.signed_cert[role]), &party.m,
				party.seed[role], &e) < 0 ||
			     !bytes_eq(buf_bytes(&again), buf_bytes(&text))))
				abort();
			join_free(&j);
		}
		buf_free(&text);
		buf_free(&again);
	}
	return 0;
}
