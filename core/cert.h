/* SPDX-License-Identifier: MIT
 *
 * cert: certificates and joins: who a participant is, and with which role
 * (docs/PROTOCOL.md, section 5). */
#ifndef AIRLOX_CERT_H
#define AIRLOX_CERT_H

#include "core/manifest.h"

#define JOIN_MAX (8 * 1024)	/* bytes of a signed join */
#define LABELS_MAX 16
#define LABEL_MAX 63		/* bytes of a runner's name or label */

enum client_kind { KIND_SDK, KIND_CLI, KIND_WEB, KIND_RUNNER };
enum sandbox { SANDBOX_LOCAL, SANDBOX_DOCKER, SANDBOX_KUBERNETES };
const char *client_kind_word(enum client_kind kind);

struct cert {
	int64_t issued_at_ms;
	uint8_t pub[PRIM_PUB];
	enum role role;
};

struct runner_info {
	char *host;			/* display text, 1..128 */
	char name[LABEL_MAX + 1];
	char labels[LABELS_MAX][LABEL_MAX + 1];
	size_t label_n;
	bool network_unblocked;
	enum sandbox sandbox;
};

struct join {
	struct cert cert;
	int64_t created_at_ms;
	char *description;		/* NULL if there is none */
	char *display_name;
	enum client_kind kind;
	bool has_runner;
	struct runner_info runner;
};

int cert_parse(struct cert *c, struct bytes signed_cert,
	       const struct manifest *m, struct err *e);
/* role_seed belongs to the role the certificate names. */
int cert_build(struct buf *out, const struct cert *c, const struct manifest *m,
	       const uint8_t role_seed[PRIM_SEED], struct err *e);

int join_parse(struct join *j, struct bytes signed_join,
	       const struct manifest *m, struct err *e);
/* signed_cert is what cert_build made; seed the participant's. */
int join_build(struct buf *out, const struct join *j,
	       struct bytes signed_cert, const struct manifest *m,
	       const uint8_t seed[PRIM_SEED], struct err *e);
void join_free(struct join *j);

bool label_ok(struct bytes s);	/* [a-z0-9][a-z0-9._-]{0,62} */

#endif
