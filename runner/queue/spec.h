/* SPDX-License-Identifier: MIT
 *
 * spec: a job's spec.json, as airloxfs(4) has it in queue/.
 *
 * The mount wrote it, after it verified the job; it is read strictly all the
 * same.  Members that are not known are passed over. */
#ifndef AIRLOX_QUEUE_SPEC_H
#define AIRLOX_QUEUE_SPEC_H

#include "core/buf.h"
#include "core/err.h"

#define SPEC_MAX_BYTES (4 << 20)
#define SPEC_PACKAGES 4096

/* Package names, normalised. */
struct spec_names {
	char **v;
	size_t n;
};

struct spec {
	char entry[256];	/* a plain file name in work/ */
	char runtime[24];
	uint32_t timeout_s;	/* 1..3600 */
	uint32_t memory_mb;	/* 32..65536 */
	bool network;		/* the session lets jobs on the network */
	bool return_out;
	uint64_t out_max_bytes, out_max_files;
	struct spec_names requirements, packages;
};

/* ERR_INVALID.  To be freed in any case. */
int spec_parse(struct spec *s, struct bytes text, struct err *e);
void spec_free(struct spec *s);

#endif
