/* SPDX-License-Identifier: MIT */
#include "runner/hand/reply.h"

#include <errno.h>

#include "core/clear.h"
#include "core/json.h"
#include "runner/hand/hand.h"

/* Nobody to talk to: the box is about to end. */
static void put(struct bytes b)
{
	while (b.n) {
		ssize_t n = write(STDOUT_FILENO, b.p, b.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		b.p += n;
		b.n -= (size_t)n;
	}
}

void reply_line(char kind, struct bytes line)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_byte(&b, (uint8_t)kind);
	buf_add(&b, line.p, line.n);
	buf_add_byte(&b, '\n');
	if (!buf_failed(&b))
		put(buf_bytes(&b));
}

static void begin(struct buf *b, struct bytes id)
{
	buf_add_str(b, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add(b, id.p, id.n);
}

void reply_result(struct bytes id, struct bytes result)
{
	cleanup_buf struct buf b = { 0 };
	begin(&b, id);
	buf_add_str(&b, ",\"result\":");
	buf_add(&b, result.p, result.n);
	buf_add_byte(&b, '}');
	if (buf_failed(&b))
		reply_error(id, REPLY_FAILED, "out of memory");
	else
		reply_line(HAND_SERVE, buf_bytes(&b));
}

void reply_error(struct bytes id, int code, const char *text)
{
	cleanup_buf struct buf b = { 0 };
	begin(&b, id);
	buf_addf(&b, ",\"error\":{\"code\":%d,\"message\":", code);
	reply_put_text(&b, bytes_str(text));
	buf_add_str(&b, "}}");
	reply_line(HAND_SERVE, buf_bytes(&b));
}

void reply_put_text(struct buf *out, struct bytes text)
{
	cleanup_buf struct buf b = { 0 };
	if (clear_utf8(text)) {
		json_put_string(out, text);
		return;
	}
	for (size_t at = 0; at < text.n;) {
		uint32_t c = clear_next(text, &at);
		clear_put(&b, c == UINT32_MAX ? 0xfffd : c);
	}
	json_put_string(out, buf_bytes(&b));
	out->failed |= b.failed;
}
