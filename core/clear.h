/* SPDX-License-Identifier: MIT
 *
 * clear: text of a peer that people will look at.
 *
 * Display text rules: docs/PROTOCOL.md, section 5.  Nothing a peer wrote goes
 * to a terminal, a log or one of our text files but through clear_escape. */
#ifndef AIRLOX_CLEAR_H
#define AIRLOX_CLEAR_H

#include "core/buf.h"
#include "core/err.h"

/* Valid UTF-8: no surrogates, no overlong form, nothing past U+10FFFF. */
bool clear_utf8(struct bytes s);

/* Scalar values of valid UTF-8. */
size_t clear_count(struct bytes s);

/* Reads the scalar value at s[*at] and moves *at past it; UINT32_MAX, and one
 * byte further, where the bytes are no UTF-8.  *at must be < s.n. */
uint32_t clear_next(struct bytes s, size_t *at);

/* The length of the longest start of s that is at most max bytes and cuts no
 * character in two. */
size_t clear_cut(struct bytes s, size_t max);

/* Adds the scalar value as UTF-8. */
void clear_put(struct buf *out, uint32_t c);

/* Display text of 1..max_chars scalar values; `what` names the field in the
 * sentence.  ERR_INVALID. */
int clear_check(struct bytes s, size_t max_chars, const char *what,
		struct err *e);

/* Any bytes, on one line of clean UTF-8: C0, DEL, C1, line separators, bidi
 * and other invisible characters, bytes that are no UTF-8 and the backslash
 * become \n \t \r \\ \xHH (a byte) or \u{HEX} (a character).  Reversible;
 * at most 10 bytes out for one character in. */
void clear_escape(struct buf *out, struct bytes s);

/* Unicode's White_Space. */
bool clear_white(uint32_t c);

/* True for what clear_escape writes as \xHH or \u{HEX}: nothing to see, or
 * able to move what is seen. */
bool clear_hidden(uint32_t c);

/* The key by which two display names count as the same name: reduced as
 * name_in shows an author, then NFKC and case folding.  Names shown alike have
 * one key.  Never empty; invalid UTF-8 gives a key too. */
void clear_fold(struct buf *out, struct bytes s);

#endif
