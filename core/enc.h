/* SPDX-License-Identifier: MIT
 *
 * enc: base64url, base32 and hex, strict (docs/PROTOCOL.md, section 1). */
#ifndef AIRLOX_ENC_H
#define AIRLOX_ENC_H

#include "core/buf.h"

/* base64url without padding: 4*n/3 rounded up characters. */
void enc_b64(struct buf *out, const void *p, size_t n);
/* The whole of s, or -1: another alphabet, padding, an impossible length or
 * trailing bits that are not zero.  out receives the bytes. */
int enc_b64_decode(struct buf *out, struct bytes s);
/* The same where the size is known: exactly n bytes into `to`, else -1. */
int enc_b64_fixed(void *to, size_t n, struct bytes s);

/* RFC 4648 base32, lowercase, no padding. */
void enc_b32(struct buf *out, const void *p, size_t n);

/* Lowercase hex.  `to` holds 2*n+1 bytes. */
void enc_hex(char *to, const void *p, size_t n);
int enc_hex_decode(void *to, size_t n, struct bytes s); /* lowercase only */

/* In place: a path of /proc/self/mountinfo, in which a space, tab, newline or
 * backslash is a backslash and three octal digits. */
void enc_unoctal(char *s);

#endif
