/* SPDX-License-Identifier: MIT
 *
 * ask: the questions of a run, and who answers them.  In its directory are
 *
 *	ask	a pipe: a read waits for a question and gets all that are
 *		open, a line each: TAG, a space, the text
 *	answer	a pipe: a line written is TAG yes|no|always [WHO]
 *	present	locked (flock, shared) by a terminal that is attached
 *
 * A question that nobody is there for is denied after `patience`; one that was
 * read and not answered, after ASK_SEEN_MS. */
#ifndef RUNNER_BOX_ASK_H
#define RUNNER_BOX_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/err.h"

#define ASK_FILE "ask"
#define ASK_ANSWER "answer"
#define ASK_PRESENT "present"
#define ASK_MAX 64
#define ASK_TEXT 700
#define ASK_WHO 64
#define ASK_SEEN_MS (10 * 60 * 1000)

enum ask_word { ASK_YES, ASK_NO, ASK_ALWAYS, ASK_WORDS };

struct question {
	unsigned tag;
	char text[ASK_TEXT];	/* one line, escaped */
	int64_t since_ms;	/* since when it waits for somebody */
	bool seen;		/* by a reader of the file */
};

struct asks {
	struct question q[ASK_MAX];
	size_t n;
	int dir;		/* the run's; not ours */
	int answer;		/* to be polled, or -1 */
	int64_t patience_ms;
	int64_t given_ms;	/* when they were read last */
	struct buf rest;	/* of an answer's line */
};

struct ask_answer {
	unsigned tag;
	enum ask_word word;
	char who[ASK_WHO];	/* one line, escaped */
};

int ask_open(struct asks *a, int dir, int64_t patience_ms, struct err *e);
void ask_close(struct asks *a);
/* text: any bytes. */
void ask_add(struct asks *a, unsigned tag, struct bytes text, int64_t now_ms);
void ask_drop(struct asks *a, unsigned tag);
/* Each of these gives the next answer, or false; the question stays until it
 * is dropped.  ask_read: what was written to the file; `bad` gets a line that
 * is no answer.  ask_expire: one that has waited too long, as ASK_NO. */
bool ask_read(struct asks *a, struct ask_answer *to, struct buf *bad);
bool ask_expire(struct asks *a, struct ask_answer *to, int64_t now_ms);
/* The questions to who reads the file, if anybody does. */
void ask_offer(struct asks *a, int64_t now_ms);

/* The other side: *lock is held until it is closed.  -1: the run has no such
 * files, it asks nothing. */
int ask_be_present(int dir, int *lock);
/* -1: nobody listens any more. */
int ask_send(int dir, unsigned tag, enum ask_word word, const char *who);
const char *ask_word(enum ask_word w);

#endif
