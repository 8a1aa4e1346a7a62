/* SPDX-License-Identifier: MIT
 *
 * print: JSON for --json.  It is built with the canonical writer of core/json
 * (keys in byte order), so one reader serves for signing and for scripts. */
#ifndef AIRLOX_MOUNT_PRINT_H
#define AIRLOX_MOUNT_PRINT_H

#include "core/json.h"

/* "key":"text" or "key":null */
void print_member(struct buf *b, const char *key, const char *text);
/* Any bytes as a JSON string; escaped (clear_escape) if they are no UTF-8. */
void print_bytes(struct buf *b, struct bytes s);
/* The document on stdout: on one line, or indented by two. */
int print_line(const struct buf *doc);
int print_doc(const struct buf *doc);

#endif
