/* SPDX-License-Identifier: MIT
 *
 * reply: answers.  Each fills the connection's output and moves it to SEND
 * (stream: to STREAM); the connection does the rest.  An answer given before
 * the body has come ends the connection, unless what is left is small. */
#ifndef RELAY_REPLY_H
#define RELAY_REPLY_H

#include "relay/conn.h"

void reply_json(struct conn *c, int status, struct bytes json);
void reply_text(struct conn *c, const char *type, struct bytes body);
void reply_empty(struct conn *c);	/* 204 */
void reply_error(struct conn *c, int status, const char *code,
		 const char *message);
/* 429, with a Retry-After. */
void reply_later(struct conn *c, int64_t wait_ms, const char *message);
void reply_err(struct conn *c, const struct err *e);
/* n bytes of fd from `at` on; fd is taken over. */
void reply_file(struct conn *c, int fd, int64_t at, uint64_t n);
/* The session's facts (or participants) from the first up to `end`, piece by
 * piece. */
void reply_listing(struct conn *c, enum text_kind text, uint32_t first,
		   uint32_t end);
/* Adds the next piece to the output; listing is false after the last.  -1:
 * it cannot be had, and the connection must break. */
int reply_listing_more(struct conn *c);
void reply_stream_head(struct conn *c);
void reply_continue(struct conn *c);	/* 100, if it is wanted */

#endif
