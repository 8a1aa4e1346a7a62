/* SPDX-License-Identifier: MIT
 *
 * page: the record as one HTML file that needs nothing else: style and script
 * of ours, named by hash in a content policy that allows nothing more, and the
 * chain's lines as data that no browser runs.  The script only ever makes text
 * nodes of them.
 *
 *	... page ...  <script type="application/x-airlox-record" id="record">
 *	RUN
 *	HASH JSON        each "<" of the JSON written \u003c
 *	...
 *	</script> ... script of ours ...
 *	<!-- airlox-signature v1
 *	key KEY
 *	file HASH        SHA-256 of every byte before "<!-- airlox-signature"
 *	head HASH        of the last part
 *	parts N
 *	sig SIG          over "airlox/record-signature/v1" 00 and the four
 *			 lines from "key" to "parts", with their newlines
 *	-->
 *	</body></html>
 *
 * KEY and SIG are base64url, hashes hex.  So no byte of the file can change
 * unseen, and the chain says which part it was (proof.h). */
#ifndef RUNNER_RECORD_PAGE_H
#define RUNNER_RECORD_PAGE_H

#include "runner/record/signer.h"

#define PAGE_DATA \
	"<script type=\"application/x-airlox-record\" id=\"record\">\n"
#define PAGE_DATA_END "</script>\n"
#define PAGE_SIGNATURE "<!-- airlox-signature v1\n"
#define PAGE_END "-->\n</body></html>\n"
#define PAGE_STATEMENT "airlox/record-signature/v1"

/* The page of a run from its chain's lines, signed.  Lines that end in the
 * middle of a part (the run was killed) lose that part.  ERR_SIGNATURE where
 * the chain is broken. */
int page_put(struct buf *out, struct bytes run, struct bytes lines,
	     const struct signer *s, struct err *e);
/* The JSON of a line back from the page: \u003c becomes "<".  -1: memory. */
int page_unescape(struct buf *out, struct bytes line);

#endif
