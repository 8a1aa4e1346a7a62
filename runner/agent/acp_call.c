/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/agent/acp_parts.h"

#define INPUT_MAX 4096u

static struct acp_known *find(struct acp *a, struct bytes id)
{
	for (size_t i = 0; i < ACP_CALLS; i++)
		if (a->known[i].id[0] &&
		    bytes_eq(bytes_str(a->known[i].id), id))
			return &a->known[i];
	return NULL;
}

/* The oldest goes: an agent may have as many as it likes. */
static struct acp_known *find_or_make(struct acp *a, struct bytes id)
{
	struct acp_known *k = find(a, id);
	if (k)
		return k;
	k = &a->known[a->known_at++ % ACP_CALLS];
	buf_free(&k->input);
	*k = (struct acp_known){ 0 };
	acp_copy(k->id, sizeof k->id, id);
	return k;
}

/* What it says, else what it said before. */
static struct bytes text_of(char *known, size_t size, const struct wire *v)
{
	struct bytes said = wire_text(v);
	if (!said.n)
		return bytes_str(known);
	acp_copy(known, size, said);
	return acp_cut(said, ACP_TEXT_MAX);
}

static struct bytes raw_of(const struct wire *v)
{
	return v && v->type != WIRE_NULL ? acp_cut(v->raw, ACP_TEXT_MAX) :
					   bytes_str("");
}

bool acp_call_read(struct acp *a, struct acp_call *c, const struct wire *v)
{
	struct bytes id = wire_text(wire_get(v, "toolCallId"));
	if (id.n == 0 || id.n >= ACP_ID_MAX || memchr(id.p, 0, id.n))
		return false;
	struct acp_known *k = find_or_make(a, id);
	const struct wire *input = wire_get(v, "rawInput");
	if (input && input->type != WIRE_NULL) {
		struct bytes s = acp_cut(input->raw, INPUT_MAX);
		buf_reset(&k->input);
		buf_add(&k->input, s.p, s.n);
	}
	*c = (struct acp_call){
		.id = id,
		.title = text_of(k->title, sizeof k->title,
				 wire_get(v, "title")),
		.kind = text_of(k->kind, sizeof k->kind, wire_get(v, "kind")),
		.name = text_of(k->name, sizeof k->name, wire_get(v, "name")),
		.status = acp_cut(wire_text(wire_get(v, "status")), 32),
		.input = input && input->type != WIRE_NULL ? raw_of(input) :
			 buf_bytes(&k->input),
		.output = raw_of(wire_get(v, "rawOutput")),
		.content = raw_of(wire_get(v, "content")),
		.places = raw_of(wire_get(v, "locations")),
	};
	return true;
}

void acp_call_free_all(struct acp *a)
{
	for (size_t i = 0; i < ACP_CALLS; i++)
		buf_free(&a->known[i].input);
}
