/* SPDX-License-Identifier: MIT
 *
 * A signed manifest of anybody; and the same bytes as the manifest itself,
 * signed here, so that the search gets past the signature. */
#include <stdlib.h>
#include <string.h>

#include "core/enc.h"
#include "core/manifest.h"

static void sign(struct buf *out, struct bytes body, const uint8_t seed[32])
{
	uint8_t sig[PRIM_SIG];

	key_sign(sig, seed, KEY_MANIFEST, body);
	buf_add_str(out, "{\"manifest\":");
	buf_add(out, body.p, body.n);
	buf_add_str(out, ",\"sig\":\"");
	enc_b64(out, sig, sizeof sig);
	buf_add_str(out, "\"}");
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const uint8_t seed[32] = { 0x11 };	/* the seeds' owner */
	struct bytes in = { p, n };
	struct buf text = { 0 }, again = { 0 };
	struct manifest m;
	struct err e = { 0 };

	if (prim_init() < 0 || n > MANIFEST_MAX - 200)
		return 0;
	if (manifest_parse(&m, in, &e) == 0)
		manifest_free(&m);
	sign(&text, in, seed);
	if (manifest_parse(&m, buf_bytes(&text), &e) == 0) {
		if (manifest_build(&again, &m, seed, &e) < 0 ||
		    !bytes_eq(buf_bytes(&again), buf_bytes(&text)))
			abort();
		manifest_free(&m);
	} else if (m.job.packages) {
		abort();
	}
	buf_free(&text);
	buf_free(&again);
	return 0;
}
