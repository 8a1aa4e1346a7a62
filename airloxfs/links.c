/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "airloxfs/links.h"
#include "airloxfs/print.h"
#include "core/host/tell.h"

static bool is_shown(const struct manifest *m, enum role role,
		     const char *owner_file)
{
	if (role == ROLE_RUNNER)
		return m->mode == MODE_EXECUTE;
	return role != ROLE_OWNER || !owner_file;
}

static int put_link(struct buf *out, const struct invite *owner,
		    enum role role, struct err *e)
{
	return invite_build(out, owner->base_url, owner->keys.role_seed, role,
			    e);
}

static int print_json(const struct invite *owner, const struct manifest *m,
		      const char *owner_file, struct err *e)
{
	static const enum role order[] = { ROLE_OBSERVER, ROLE_OWNER,
					   ROLE_RUNNER, ROLE_SENDER };
	cleanup_buf struct buf doc = { 0 };

	buf_add_str(&doc, "{\"expires_at_ms\":");
	if (m->expires_at_ms == MANIFEST_FOREVER)
		buf_add_str(&doc, "null");
	else
		json_put_int(&doc, m->expires_at_ms);
	buf_add_str(&doc, ",\"invites\":{");
	for (int i = 0; i < ROLES; i++) {
		cleanup_buf struct buf link = { 0 };
		if (!is_shown(m, order[i], owner_file))
			continue;
		if (put_link(&link, owner, order[i], e) < 0)
			return -1;
		json_put_key(&doc, role_word(order[i]));
		json_put_string(&doc, buf_bytes(&link));
	}
	buf_add_byte(&doc, '}');
	if (owner_file)
		print_member(&doc, "owner_invite_file", owner_file);
	print_member(&doc, "session_id", m->session_id);
	buf_add_byte(&doc, '}');
	return print_doc(&doc);
}

static int print_text(const struct invite *owner, const struct manifest *m,
		      const char *owner_file, struct err *e)
{
	static const enum role order[] = { ROLE_OWNER, ROLE_SENDER,
					   ROLE_OBSERVER, ROLE_RUNNER };
	for (int i = 0; i < ROLES; i++) {
		cleanup_buf struct buf link = { 0 };
		if (!is_shown(m, order[i], owner_file))
			continue;
		if (put_link(&link, owner, order[i], e) < 0)
			return -1;
		printf("%-9s %.*s\n", role_word(order[i]), (int)link.len,
		       (const char *)link.data);
	}
	if (owner_file)
		tell_say("%-9s is in %s", role_word(ROLE_OWNER), owner_file);
	printf("\nWho has a link has its role: hand each over by a way you "
	       "trust, and keep the\nowner's to yourself.\n");
	return tell_flush();
}

int links_print(const struct invite *owner, const struct manifest *m,
		const char *owner_file, bool json, struct err *e)
{
	return (json ? print_json : print_text)(owner, m, owner_file, e);
}
