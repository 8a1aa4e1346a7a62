/* SPDX-License-Identifier: MIT
 *
 * A sentence is UTF-8 without control characters, whatever went into it and
 * wherever it was cut. */
#include <errno.h>
#include <string.h>

#include "core/clear.h"
#include "core/err.h"
#include "tests/unit/tap.h"

static void cut_in_a_character(void)
{
	struct err e;
	char name[1000] = "";
	for (int i = 0; i < 200; i++)
		strcat(name, "\u65e5");
	for (int pad = 0; pad < 4; pad++) {
		err_set(&e, ERR_NAME, "%.*s%s", pad, "xxx", name);
		ok(clear_utf8(bytes_str(e.why)) &&
		   strlen(e.why) == sizeof e.why - 1,
		   "cut, after %d more bytes", pad);
		err_prefix(&e, "a room");
		ok(clear_utf8(bytes_str(e.why)), "and with a prefix");
	}
}

static void bytes_of_a_peer(void)
{
	struct err e;
	err_set(&e, ERR_NAME, "a\033b\177c\xc2\x85" "d\xff\u00e9");
	is_str(e.why, "a?b?c??d?\u00e9", "nothing steers a terminal");
	errno = ENOSPC;
	err_sys(&e, "cannot");
	ok(e.code == ERR_FULL && e.sys == ENOSPC, "a full disk");
}

int main(void)
{
	cut_in_a_character();
	bytes_of_a_peer();
	return done_testing();
}
