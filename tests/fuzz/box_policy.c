/* SPDX-License-Identifier: MIT
 *
 * Any bytes are a policy or a sentence that names a line; a policy can be
 * asked and shown, and what is not in it is denied. */
#include <stdlib.h>
#include <string.h>

#include "runner/policy/show.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void ask(const struct policy *pol, const uint8_t *p, size_t n)
{
	static const char name[] = "not.in.any-policy.invalid";
	struct policy_answer a;
	struct host h;
	struct policy_ask q = { &h, 443, true, bytes_str("GET"), { p, n } };
	host_parse(&h, bytes_str(name));
	for (size_t i = 0; i < pol->rule_n; i++)
		if (pol->rule[i].place.below)
			return;
	policy_decide(pol, &q, &a);
	if (a.allowed)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e = { 0 };
	struct policy *pol = policy_read((struct bytes){ p, n }, &e);
	struct buf out = { 0 };
	bool allowed;
	if (!pol) {
		if (e.code == ERR_POLICY && strncmp(e.why, "line ", 5) != 0)
			abort();
		return 0;
	}
	ask(pol, p, n);
	show_rules(&out, pol);
	show_json(&out, pol);
	show_risks(&out, pol);
	show_url(&out, pol, "GET", "https://a.example/v1/", &allowed, NULL);
	buf_free(&out);
	policy_free(pol);
	return 0;
}
