/* SPDX-License-Identifier: MIT
 *
 * Any bytes are the facts of a run or a sentence; facts that were read are
 * written so that they are read again as the same. */
#include <stdlib.h>
#include <string.h>

#include "runner/box/rundir_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e = { 0 };
	static struct rundir d, again;
	struct buf out = { 0 }, once_more = { 0 };
	d = again = (struct rundir){ .runs = -1, .dir = -1, .lock = -1 };
	if (rundir_facts_read(&d, (struct bytes){ p, n }, &e) < 0) {
		if (e.code == ERR_NONE || !e.why[0])
			abort();
		return 0;
	}
	if (d.record[0] && d.record[0] != '/')
		abort();
	/* a text is escaped as it is written, so the second time decides */
	rundir_facts_put(&out, &d);
	if (rundir_facts_read(&again, buf_bytes(&out), &e) < 0 ||
	    again.owner.pid != d.owner.pid || again.state != d.state ||
	    strcmp(again.record, d.record) != 0)
		abort();
	rundir_facts_put(&once_more, &again);
	if (buf_failed(&once_more))
		abort();
	buf_free(&out);
	buf_free(&once_more);
	return 0;
}
