/* SPDX-License-Identifier: MIT
 *
 * policy: what a box may reach, and which credentials are put in on the way.
 * The language is in airlox-box(1); here it is data, made by policy_read and
 * never changed after.  No secret is in it: a credential says where its value
 * is (env, file, cmd), and the broker alone fetches it. */
#ifndef RUNNER_POLICY_POLICY_H
#define RUNNER_POLICY_POLICY_H

#include "core/err.h"
#include "runner/policy/host.h"

enum policy_tls {
	POLICY_INTERCEPT,	/* ended here, looked into, begun anew */
	POLICY_PASSTHROUGH,	/* carried as it is; the name alone is checked */
	POLICY_PLAIN		/* http://, no TLS at all */
};
enum policy_scheme {
	POLICY_BEARER, POLICY_BASIC, POLICY_HEADER, POLICY_SUBSTITUTE
};
enum policy_source { POLICY_ENV, POLICY_FILE, POLICY_CMD };
enum policy_mode { POLICY_READ, POLICY_WRITE, POLICY_COPY };
enum policy_session { POLICY_NONE, POLICY_SESSION_READ, POLICY_SESSION_WRITE };

#define POLICY_IN_HEADER 1u
#define POLICY_IN_QUERY 2u
#define POLICY_IN_BODY 4u

#define POLICY_RULES_MAX 512u
#define POLICY_CREDENTIALS_MAX 64u
#define POLICY_WORDS_MAX 64u	/* methods, paths, argv */

/* Texts that are owned by the policy. */
struct policy_words {
	char **word;
	size_t n;
};

/* Which host and port are meant. */
struct policy_place {
	struct host host;	/* its port is never 0 */
	bool below;		/* *.NAME: what is below it, not itself */
	bool local;		/* an address or localhost, with its port: the
				 * classes of addresses are not asked */
};

struct policy_rule {
	struct policy_place place;
	enum policy_tls tls;
	struct policy_words methods;	/* upper case; none: all */
	struct policy_words paths;	/* "/a" or "/a/" and all below with a
					 * last "*"; none: all */
	char *reason;			/* or NULL */
	unsigned line;
};

struct policy_credential {
	struct policy_place place;
	enum policy_scheme scheme;
	char *path;		/* as in a rule, or NULL */
	char *header;		/* POLICY_HEADER: its name */
	char *user;		/* POLICY_BASIC */
	char *placeholder;	/* POLICY_SUBSTITUTE */
	char *env;		/* variable of the box, or NULL */
	unsigned surfaces;	/* POLICY_IN_* */
	bool plaintext;		/* may go without TLS */
	enum policy_source source;
	struct policy_words from;	/* the variable, the path, the argv */
	unsigned line;
};

struct policy_file {
	char *path, *at;	/* here, and where in the box */
	enum policy_mode mode;
	unsigned line;
};

/* 0: not limited by the policy. */
struct policy_limits {
	int64_t time_ms, memory_bytes, disk_bytes, output_bytes;
	int64_t processes;
	int64_t connections;	/* at once */
	int64_t requests;	/* a minute */
	int64_t upload_bytes, download_bytes;	/* of the whole run */
};

struct policy {
	struct policy_rule *rule;
	size_t rule_n;
	struct policy_credential *credential;
	size_t credential_n;
	struct policy_file *file;
	size_t file_n;
	struct policy_limits limits;
	struct policy_words agent;
	enum policy_session session;
	bool session_owner;
};

/* Reads a policy.  NULL with e filled; the sentence begins with "line N: ". */
struct policy *policy_read(struct bytes text, struct err *e);
void policy_free(struct policy *p);

const char *policy_tls_word(enum policy_tls t);
const char *policy_scheme_word(enum policy_scheme s);

#endif
