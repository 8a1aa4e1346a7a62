/* SPDX-License-Identifier: MIT
 *
 * reply: an answer to a request, as one line on standard output. */
#ifndef RUNNER_HAND_REPLY_H
#define RUNNER_HAND_REPLY_H

#include "core/buf.h"
#include "core/err.h"

#define REPLY_INVALID (-32602)
#define REPLY_FAILED (-32603)
#define REPLY_NOT_FOUND (-32002)

/* id: as the request wrote it; result: JSON. */
void reply_result(struct bytes id, struct bytes result);
void reply_error(struct bytes id, int code, const char *text);
/* Any bytes as a JSON string: what is no UTF-8 becomes U+FFFD. */
void reply_put_text(struct buf *out, struct bytes text);
/* kind, the bytes and a newline, whole. */
void reply_line(char kind, struct bytes line);

#endif
