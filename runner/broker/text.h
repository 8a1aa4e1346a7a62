/* SPDX-License-Identifier: MIT
 *
 * text: base64 (with padding, RFC 4648), percent and JSON escapes, as
 * requests need them. */
#ifndef RUNNER_BROKER_TEXT_H
#define RUNNER_BROKER_TEXT_H

#include "core/buf.h"

void text_base64(struct buf *out, struct bytes s);
/* Strict but for missing padding; -1: not base64, and *out is as it was. */
int text_from_base64(struct buf *out, struct bytes s);
void text_percent(struct buf *out, struct bytes s);	/* all but unreserved */
void text_json(struct buf *out, struct bytes s);	/* without quotes */
/* Where needle is in s, or NULL; needle.n > 0. */
const uint8_t *text_find(struct bytes s, struct bytes needle);

#endif
