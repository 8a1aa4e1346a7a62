/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "core/err.h"

/* The one table.  Exit codes follow sysexits(3) where one fits; airloxfs(1)
 * lists them and a test holds the two together. */
static const struct {
	const char *class, *word;
	int sys, http, exit;
} table[ERR_CODES] = {
	[ERR_NONE]	= { "",		"",		0,	200, 0 },
	[ERR_INVALID]	= { "invalid",	"bad_request",	EBADMSG, 400, 65 },
	[ERR_SIGNATURE]	= { "signature", "bad_signature", EBADMSG, 400, 65 },
	[ERR_DECRYPT]	= { "decrypt",	"bad_request",	EBADMSG, 400, 65 },
	[ERR_POLICY]	= { "policy",	"policy",	EINVAL,	400, 65 },
	[ERR_ROLE]	= { "policy",	"forbidden",	EACCES,	403, 77 },
	[ERR_TYPE]	= { "policy",	"policy",	EOPNOTSUPP, 400, 65 },
	[ERR_SIZE]	= { "policy",	"too_large",	EFBIG,	413, 65 },
	[ERR_TIME]	= { "policy",	"policy",	EPROTO,	400, 65 },
	[ERR_NAME]	= { "policy",	"policy",	EINVAL,	400, 65 },
	[ERR_CONTENT]	= { "policy",	"policy",	EBADMSG, 400, 65 },
	[ERR_SYS]	= { "",		"unavailable",	EIO,	503, 71 },
	[ERR_MEMORY]	= { "",		"unavailable",	ENOMEM,	503, 71 },
	[ERR_FULL]	= { "",		"disk_full",	ENOSPC,	507, 73 },
	[ERR_NET]	= { "",		"unavailable",	ETIMEDOUT, 503, 75 },
	[ERR_RATE]	= { "",		"rate_limited",	EAGAIN,	429, 75 },
	[ERR_PROTO]	= { "",		"bad_request",	EPROTO,	400, 76 },
	[ERR_AUTH]	= { "",		"unauthorized",	ESHUTDOWN, 401, 77 },
	[ERR_FORBIDDEN]	= { "",		"forbidden",	EACCES,	403, 77 },
	[ERR_NOT_FOUND]	= { "",		"not_found",	ESHUTDOWN, 404, 69 },
	[ERR_GONE]	= { "",		"gone",		ESHUTDOWN, 410, 69 },
	[ERR_CONFLICT]	= { "",		"conflict",	EPROTO,	409, 76 },
	[ERR_DUPLICATE]	= { "",		"duplicate",	EEXIST,	409, 76 },
	[ERR_LOCKED]	= { "",		"busy",		EBUSY,	503, 11 },
	[ERR_EXISTS]	= { "",		"conflict",	EEXIST,	409, 73 },
	[ERR_VERB]	= { "",		"bad_request",	EINVAL,	400, 64 },
	[ERR_USAGE]	= { "",		"bad_request",	EINVAL,	400, 64 },
	[ERR_NO_FUSE]	= { "",		"unavailable",	ENODEV,	503, 12 },
	[ERR_MOUNTPOINT] = { "",	"conflict",	EBUSY,	409, 10 },
	[ERR_UNSENT]	= { "",		"conflict",	EBUSY,	409, 75 },
	[ERR_CLOCK]	= { "",		"policy",	EPROTO,	400, 13 },
	[ERR_TIMEOUT]	= { "",		"unavailable",	ETIMEDOUT, 503, 14 },
};

/* A sentence can carry a peer's bytes, and its end can be cut within a
 * character: no byte of it may steer a terminal, and it stays UTF-8, because
 * it goes into records that are read back strictly. */
static void tame(char *s)
{
	struct bytes all = bytes_str(s);
	for (size_t at = 0, from = 0; at < all.n; from = at) {
		uint32_t c = clear_next(all, &at);
		if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == UINT32_MAX)
			memset(s + from, '?', at - from);
	}
}

static void vset(struct err *e, enum err_code code, const char *fmt,
		 va_list ap)
{
	e->code = code;
	e->sys = 0;
	e->http = 0;
	vsnprintf(e->why, sizeof e->why, fmt, ap);
	tame(e->why);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	if (e) {
		va_list ap;
		va_start(ap, fmt);
		vset(e, code, fmt, ap);
		va_end(ap);
	}
	return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int sys = errno;
	if (e) {
		va_list ap;
		va_start(ap, fmt);
		vset(e, sys == ENOSPC || sys == EDQUOT ? ERR_FULL : ERR_SYS,
		     fmt, ap);
		va_end(ap);
		size_t n = strlen(e->why);
		snprintf(e->why + n, sizeof e->why - n, ": %s", strerror(sys));
		e->sys = sys;
	}
	errno = sys;
	return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	if (e) {
		char old[sizeof e->why];
		memcpy(old, e->why, sizeof old);
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(e->why, sizeof e->why, fmt, ap);
		va_end(ap);
		size_t n = strlen(e->why);
		snprintf(e->why + n, sizeof e->why - n, ": %s", old);
		tame(e->why);
	}
	return -1;
}

const char *err_class(enum err_code code) { return table[code].class; }
int err_http(enum err_code code) { return table[code].http; }
const char *err_http_code(enum err_code code) { return table[code].word; }
int err_exit(enum err_code code) { return table[code].exit; }

int err_errno(const struct err *e)
{
	if (e->code == ERR_SYS && e->sys)
		return e->sys;
	return table[e->code].sys;
}
