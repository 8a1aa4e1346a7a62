/* SPDX-License-Identifier: MIT
 *
 * err: how a function says what went wrong.
 *
 * Functions return 0 or -1 (or NULL) and fill a struct err.  The place that
 * first sees the fault writes the sentence: lower case, no full stop, what to
 * do about it, never key material.  Mains and the mount's edge print it.
 * One table (err.c) maps a code to a protocol class, an errno, an HTTP status
 * and an exit code. */
#ifndef AIRLOX_ERR_H
#define AIRLOX_ERR_H

#include <stddef.h>

enum err_code {
	ERR_NONE = 0,

	/* the protocol's classes of refusal (docs/PROTOCOL.md, section 6) */
	ERR_INVALID,	/* not canonical, wrong shape, type, range, length */
	ERR_SIGNATURE,	/* an Ed25519 check failed */
	ERR_DECRYPT,	/* the AEAD refused */
	ERR_POLICY,	/* any other rule of policy */
	/* refinements of policy: each has an errno of its own */
	ERR_ROLE,	/* this role may not */
	ERR_TYPE,	/* type not allowed in this session */
	ERR_SIZE,	/* larger than the session's limit */
	ERR_TIME,	/* outside the session's life */
	ERR_NAME,	/* a file name that is not allowed */
	ERR_CONTENT,	/* not UTF-8, not a zip, not an image, ... */

	/* the machine and the network */
	ERR_SYS,	/* a system call; struct err has its errno in sys */
	ERR_MEMORY,	/* out of memory */
	ERR_FULL,	/* no space: spool, disk, quota */
	ERR_NET,	/* no answer, reset, refused, 5xx: may be retried */
	ERR_RATE,	/* 429: may be retried after a while */
	ERR_PROTO,	/* the peer does not speak this protocol; other 4xx */
	ERR_AUTH,	/* 401: token unknown, left or revoked */
	ERR_FORBIDDEN,	/* 403 */
	ERR_NOT_FOUND,	/* 404 */
	ERR_GONE,	/* 410; session closed or expired */
	ERR_CONFLICT,	/* 409 */
	ERR_DUPLICATE,	/* 409 duplicate: it is there already, from us */
	ERR_LOCKED,	/* another process of ours holds it */
	ERR_EXISTS,	/* is there already */
	ERR_VERB,	/* a verb ctl does not know */
	ERR_USAGE,	/* the command line */
	ERR_NO_FUSE,	/* this machine cannot mount */
	ERR_MOUNTPOINT,	/* not an empty directory, or somebody else's */
	ERR_UNSENT,	/* content is left that was not sent */
	ERR_CLOCK,	/* this machine's clock is far off */
	ERR_TIMEOUT,	/* took too long */
	ERR_CODES	/* how many there are */
};

struct err {
	enum err_code code;
	int sys;		/* errno for ERR_SYS, else 0 */
	int http;		/* the HTTP status that said so, or 0 */
	char why[320];		/* one sentence, UTF-8, no control bytes */
};

/* Fills e (which may be NULL) and returns -1, so that `return err_set(...)`
 * is the whole error path.  Control characters in the result are escaped. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with ERR_SYS and the current errno (ENOSPC and EDQUOT become
 * ERR_FULL); ": <strerror>" is appended. */
int err_sys(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts "what: " in front of the sentence in e.  Returns -1. */
int err_prefix(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

const char *err_class(enum err_code code);  /* "invalid" ... "policy", or "" */
int err_errno(const struct err *e);	    /* for FUSE: positive errno */
int err_http(enum err_code code);	    /* the relay's status */
const char *err_http_code(enum err_code code); /* the relay's "error" word */
int err_exit(enum err_code code);	    /* exit code of a main */

#endif
