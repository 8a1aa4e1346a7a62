/* SPDX-License-Identifier: MIT
 *
 * chain: what a run leaves behind, part by part, while it happens.  A part is
 * one line of a file that only grows: its hash, a space, and canonical JSON,
 *
 *	{"at_ms":N,"data":{...},"kind":"egress"}
 *
 * where hash 0 is SHA-256("airlox/record/v1" 00 run) and each further one
 * SHA-256(the hash before || the JSON): a part that is changed, taken out, put
 * in or moved breaks the chain at its place.  The page (page.h) holds the same
 * lines, and a signature over the last hash.
 *
 * Data never holds a credential: who adds a part has seen to that. */
#ifndef RUNNER_RECORD_CHAIN_H
#define RUNNER_RECORD_CHAIN_H

#include "core/buf.h"
#include "core/err.h"
#include "core/hash.h"
#include "core/json.h"

#define CHAIN_RUN 32		/* most characters of a run's name */
#define CHAIN_LINE_MAX (1 << 20)	/* bytes of one part */
#define CHAIN_BYTES_MAX (64u << 20)	/* of all; then one part says so */

enum part_kind {
	PART_RUN,	/* command, policy, versions, limits: the first */
	PART_TEXT,	/* "stream", "text": what was printed or said */
	PART_EGRESS,	/* a decision of the broker */
	PART_TOOL,	/* a tool call and what became of it */
	PART_SESSION,	/* something written to the session, with its hash */
	PART_FILE,	/* a file of the workspace that changed */
	PART_NOTICE,	/* something a reader should know */
	PART_END	/* exit, reason, wall_ms: the last */
};
#define PART_KINDS 8
const char *part_word(enum part_kind kind);

/* a-z, 0-9 and dash, 1 to CHAIN_RUN characters. */
bool chain_is_run(struct bytes name);

struct chain;

/* A new file in dir_fd, 0600; ERR_SYS where it cannot be made or is there. */
struct chain *chain_new(int dir_fd, const char *file, const char *run,
			struct err *e);
/* What one that was killed has written. */
struct chain_left {
	size_t parts, egress;	/* of all kinds, and of PART_EGRESS */
	int64_t first_ms, last_ms;	/* of the first and the last */
	size_t cut_bytes;	/* behind the last whole part: taken off */
	bool ended;		/* PART_END is there */
};
/* Goes on with such a file, behind the last part that is whole.  ERR_SYS. */
struct chain *chain_resume(int dir_fd, const char *file, const char *run,
			   struct chain_left *left, struct err *e);
/* data: a canonical JSON object.  What is over CHAIN_BYTES_MAX is left out,
 * but for PART_END, and a notice before the end counts it.  -1: the disk. */
int chain_add(struct chain *c, enum part_kind kind, int64_t at_ms,
	      struct bytes data, struct err *e);
/* "stream", "text" as PART_TEXT; any bytes: what is no UTF-8 is escaped. */
int chain_say(struct chain *c, int64_t at_ms, const char *stream,
	      struct bytes text, struct err *e);
void chain_free(struct chain *c);

/* --- reading --- */

struct part {
	size_t at;		/* 1, 2, ... */
	enum part_kind kind;
	int64_t at_ms;
	struct json *doc;	/* of the whole; part_free */
	const struct json *data;
};
void part_free(struct part *p);

struct chain_walk {
	struct bytes rest;
	size_t at;		/* parts read */
	uint8_t hash[HASH_SIZE];	/* of the last of them */
};
void chain_begin(struct chain_walk *w, struct bytes run, struct bytes lines);
/* The next part: 1, 0 at the end, -1 where the chain breaks; e names the
 * part.  A line that was cut off in the middle is such a break. */
int chain_next(struct chain_walk *w, struct part *p, struct err *e);

#endif
