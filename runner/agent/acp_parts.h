/* SPDX-License-Identifier: MIT
 *
 * acp_parts: what acp.c, acp_in.c and acp_call.c share. */
#ifndef RUNNER_AGENT_ACP_PARTS_H
#define RUNNER_AGENT_ACP_PARTS_H

#include "runner/agent/acp.h"
#include "runner/agent/wire.h"

#define ACP_CALLS 64
#define ACP_ID_MAX 256u

/* JSON-RPC's, and the protocol's own. */
#define ACP_INVALID_REQUEST (-32600)
#define ACP_NO_METHOD (-32601)
#define ACP_INVALID_PARAMS (-32602)
#define ACP_BUSY (-32603)
#define ACP_AUTH_REQUIRED (-32000)
#define ACP_CANCELLED (-32800)

/* An id of the agent's as it wrote it: a number or a text. */
struct acp_id {
	char raw[ACP_ID_MAX];
	size_t n;		/* 0: not in use */
};

struct acp_question {
	struct acp_id id;
	unsigned tag;
	char option[ACP_CHOICES][ACP_ID_MAX];	/* "": not offered */
};

/* What was said of a tool call, for the question that only names it. */
struct acp_known {
	char id[ACP_ID_MAX], title[512], kind[32], name[128];
	struct buf input;
};

struct acp {
	struct acp_side side;
	char *cwd, *prompt, *auth, *version;
	size_t prompt_n;
	enum acp_state state;
	int64_t own;		/* id of our open request */
	bool cancelled;
	char session[ACP_ID_MAX];
	char reason[64], agent[128], methods[256];
	struct err why;
	unsigned bad, tags, other;
	struct acp_question question[ACP_OPEN_MAX];
	struct acp_id served[ACP_OPEN_MAX];
	struct acp_known known[ACP_CALLS];
	size_t known_at;
};

/* acp.c */
void acp_fail(struct acp *a, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void acp_bad(struct acp *a, const char *what, struct bytes line);
void acp_refuse(struct acp *a, struct bytes id, int code, const char *text);
void acp_response(struct acp *a, const struct wire *doc);

/* acp_in.c: what the agent asks and tells */
void acp_request(struct acp *a, const struct wire *doc, struct bytes id,
		 struct bytes line);
void acp_tell(struct acp *a, const struct wire *doc);

/* acp_call.c */
/* From an update or a question's toolCall, with what is known of it already;
 * it borrows from both.  false: it has no id. */
bool acp_call_read(struct acp *a, struct acp_call *c, const struct wire *v);
void acp_call_free_all(struct acp *a);

/* Cut at a character. */
struct bytes acp_cut(struct bytes s, size_t max);
void acp_copy(char *to, size_t size, struct bytes s);

#endif
