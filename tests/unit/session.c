/* SPDX-License-Identifier: MIT */
#include "core/aead.h"
#include "tests/unit/party.h"

int main(void)
{
	struct party p;
	uint8_t a[32], b[32], two[64];
	char info[] = "airlox/v1/item-key?AAAAAAAAAAAAAAAAAAAAAA";

	party_begin(&p, MODE_EXECUTE);
	is_mem(p.keys.role_seed, p.owner, 32, "the owner's role seed");
	session_role_seed(a, p.owner, ROLE_SENDER);
	session_role_seed(b, p.owner, ROLE_RUNNER);
	ok(memcmp(a, b, 32) != 0, "each role has its own");

	info[18] = 0;	/* one zero byte, between the label and the id */
	session_item_key(a, p.keys.session_key, p.m.session_id, info + 19);
	aead_hkdf(b, 32, p.keys.session_key, 32, p.m.session_id, SESSION_ID,
		  info, sizeof info - 1);
	is_mem(a, b, 32, "an item's key is HKDF as section 6 writes it");

	session_local_key(two, 64, p.keys.session_key, p.m.session_id,
			  "drafts");
	session_local_key(a, 32, p.keys.session_key, p.m.session_id, "index");
	ok(memcmp(two, a, 32) != 0 && memcmp(two, two + 32, 32) != 0,
	   "a local key has a label, and two different halves");
	session_local_key(b, 32, p.keys.session_key, p.m.session_id, "index");
	is_mem(a, b, 32, "and is the same each time");
	party_end(&p);
	return done_testing();
}
