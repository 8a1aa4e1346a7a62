/* SPDX-License-Identifier: MIT
 *
 * A link from anybody: what is taken has an address that is one, and what is
 * refused is not quoted. */
#include <stdlib.h>
#include <string.h>

#include "core/invite.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct invite v;
	struct err e = { 0 };
	struct buf base = { 0 };

	if (invite_parse(&v, (struct bytes){ p, n }, &e) < 0) {
		if (v.base_url || e.code != ERR_INVALID ||
		    strncmp(e.why, "invite link: ", 13) != 0)
			abort();
		return 0;
	}
	if (!key_is_session_id(bytes_str(v.session_id)) ||
	    invite_base(&base, bytes_str(v.base_url), &e) < 0 ||
	    !bytes_eq(buf_bytes(&base), bytes_str(v.base_url)) ||
	    strpbrk(v.base_url, " ?#@\n\r\t"))
		abort();
	buf_free(&base);
	invite_free(&v);
	return 0;
}
