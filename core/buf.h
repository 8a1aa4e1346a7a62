/* SPDX-License-Identifier: MIT
 *
 * buf: a growing byte buffer, and a borrowed view of bytes.
 *
 * A failed allocation sets `failed` and later adds do nothing: a builder
 * checks once, at its end (buf_failed).  Zero-initialise to start. */
#ifndef AIRLOX_BUF_H
#define AIRLOX_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct buf {
	uint8_t *data;
	size_t len, cap;
	bool failed;
};

/* Borrowed bytes: never owned, never freed; valid as long as their source. */
struct bytes {
	const uint8_t *p;
	size_t n;
};

void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_byte(struct buf *b, uint8_t c);
void buf_add_u32be(struct buf *b, uint32_t v);
void buf_addf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Room for n more bytes at data + len, or NULL; the caller adds to len. */
uint8_t *buf_room(struct buf *b, size_t n);

/* The content with a NUL after it (not counted), or NULL if failed. */
char *buf_cstr(struct buf *b);

/* Hands the NUL-terminated content over; b is empty after.  The caller frees. */
char *buf_steal(struct buf *b);

void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
void buf_reset(struct buf *b);		/* length 0, keeps the memory */
void buf_free(struct buf *b);		/* wiped first: it may be plaintext */

static inline bool buf_failed(const struct buf *b) { return b->failed; }
static inline struct bytes buf_bytes(const struct buf *b)
{
	return (struct bytes){ b->data, b->len };
}
struct bytes bytes_str(const char *s);	/* without the NUL */
bool bytes_eq(struct bytes a, struct bytes b);	/* not for secrets */

static inline uint32_t load_u32be(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* Ownership by scope, for leaf code. */
static inline void cleanup_free_p(void *p) { free(*(void **)p); }
static inline void cleanup_fd_p(int *fd) { if (*fd >= 0) close(*fd); }
#define cleanup_free __attribute__((cleanup(cleanup_free_p)))
#define cleanup_fd __attribute__((cleanup(cleanup_fd_p)))
#define cleanup_buf __attribute__((cleanup(buf_free)))

#endif
