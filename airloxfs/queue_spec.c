/* SPDX-License-Identifier: MIT
 *
 * What the runner is told of a job: spec.json and from. */
#include "airloxfs/queue_private.h"
#include "core/clear.h"

static void put_names(struct buf *b, const struct payload *p,
		      const struct job_limits *l)
{
	json_put_key(b, "packages");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < l->package_n; i++) {
		json_put_sep(b);
		json_put_string(b, bytes_str(l->packages[i]));
	}
	buf_add_byte(b, ']');
	json_put_key(b, "requirements");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < p->u.job.requirement_n; i++) {
		json_put_sep(b);
		json_put_string(b, p->u.job.requirements[i]);
	}
	buf_add_byte(b, ']');
}

void queue_put_spec(struct buf *b, const struct mount *m,
		    const struct incoming *inc, const struct payload *p)
{
	const struct manifest *mf = &m->peer->manifest;
	buf_add_byte(b, '{');
	json_put_key_int(b, "created_ms", inc->env.header.created_at_ms);
	json_put_key_string(b, "entry", p->u.job.filename);
	json_put_key_string(b, "job", bytes_str(inc->env.header.id));
	json_put_key_int(b, "memory_mb",
			 p->u.job.has_memory ? p->u.job.memory_mb
					     : mf->job.memory_mb);
	json_put_key_bool(b, "network", mf->job.network);
	json_put_key_int(b, "out_max_bytes", mf->max_item_bytes);
	json_put_key_int(b, "out_max_files", QUEUE_OUT_FILES);
	put_names(b, p, &mf->job);
	json_put_key_bool(b, "return_out", mf->job.return_out);
	json_put_key_string(b, "runtime", bytes_str(mf->job.runtime));
	json_put_key_int(b, "seq", (int64_t)inc->seq);
	json_put_key_int(b, "timeout_s", p->u.job.timeout_s);
	buf_add_str(b, "}\n");
}

void queue_put_from(struct buf *b, struct mount *m,
		    const struct incoming *inc)
{
	mount_lock(m);
	const struct participant *who = people_find(&m->peer->people,
						    inc->author.pub);
	buf_add_str(b, "name ");
	clear_escape(b, bytes_str(inc->author_shown));
	buf_addf(b, "\nrole %s\nfingerprint %s\n", role_word(inc->author.role),
		 who ? who->fingerprint : "");
	mount_unlock(m);
}
