/* SPDX-License-Identifier: MIT
 *
 * The table of jobs, and how one moves on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/jobs_private.h"
#include "airloxfs/notify.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/text.h"
#include "core/clear.h"
#include "core/host/clock.h"
#include "core/host/file.h"

int64_t jobs_now(void) { return clock_mono_ms(); }

/* --- the table --- */

struct submitted *jobs_named(struct jobs *j, const char *name)
{
	struct submitted *s = j->first;
	while (s && (s->removed || strcmp(s->name, name) != 0))
		s = s->next;
	return s;
}

const struct item_ref *jobs_ref(const struct submitted *s)
{
	return s->has_job ? &s->sealed.ref : NULL;
}

struct submitted *jobs_of_item(struct jobs *j, const char *id)
{
	struct submitted *s = j->first;
	while (s && !(s->has_job && !s->removed &&
		      strcmp(jobs_ref(s)->id, id) == 0))
		s = s->next;
	return s;
}

struct submitted *jobs_add(struct jobs *j, const char *name)
{
	struct submitted *s = calloc(1, sizeof *s);
	if (!s || !(s->name = strdup(name))) {
		free(s);
		return NULL;
	}
	s->m = j->m;
	s->sealed.blob_fd = -1;
	s->n = ++j->newest;
	*j->last_at = s;
	j->last_at = &s->next;
	return s;
}

void jobs_forget_sealed(struct submitted *s)
{
	if (s->sealed.blob_fd >= 0)
		close(s->sealed.blob_fd);
	s->sealed.blob_fd = -1;
	s->sealed.owns_fd = false;
	sealed_free(&s->sealed);
	s->sealed = (struct sealed){ .blob_fd = -1 };
	job_free(&s->job);
	s->live = (struct live){ 0 };
	if (s->blob[0])
		unlinkat(s->m->jobs->dir, s->blob, 0);
	s->blob[0] = 0;
	s->has_job = s->tried = false;
}

void jobs_free_parts(struct submitted *s)
{
	jobs_forget_sealed(s);
	for (size_t i = 0; i < s->out_n; i++)
		free(s->out[i].path);
	free(s->out);
	s->out = NULL;
	s->out_n = 0;
}

static void free_one(struct submitted *s)
{
	if (s->sealed.blob_fd >= 0)
		close(s->sealed.blob_fd);
	s->sealed.owns_fd = false;
	sealed_free(&s->sealed);
	job_free(&s->job);
	jobs_plan_free(s);
	for (int t = 0; t < JOBS_TEXTS; t++)
		if (s->text[t])
			vault_close(s->text[t]);
	line_free(s->all);
	line_free(s->wait);
	for (size_t i = 0; i < s->out_n; i++)
		free(s->out[i].path);
	free(s->out);
	buf_free(&s->spec.labels);
	buf_free(&s->spec.requirements);
	buf_free(&s->awaited);
	free(s->name);
	free(s);
}

/* --- what is said of one --- */

void jobs_touch(struct submitted *s, const char *file)
{
	cleanup_buf struct buf path = { 0 };
	buf_addf(&path, "jobs/%s/%s", s->name, file);
	if (buf_cstr(&path) && s->m->notify)
		notify_post(s->m->notify, NOTIFY_TOUCH, buf_cstr(&path));
}

void jobs_set_reason(struct submitted *s, struct bytes reason)
{
	cleanup_buf struct buf b = { 0 };
	clear_escape(&b, reason);
	size_t n = clear_cut(buf_bytes(&b), sizeof s->reason - 1);
	if (n)
		memcpy(s->reason, b.data, n);
	s->reason[n] = 0;
}

static void tell(struct submitted *s)
{
	cleanup_buf struct buf line = { 0 }, text = { 0 };
	jobs_status_line(s, &text);
	if (text.len && text.data[text.len - 1] == '\n')
		text.len--;
	if (buf_cstr(&text))
		mount_log(s->m, "jobs/%s: %s", s->name, buf_cstr(&text));
	struct tell_json j = tell_json_begin(&line, "job");
	tell_json_str(&j, "job", bytes_str(s->name));
	if (s->has_job)
		tell_json_str(&j, "id", bytes_str(jobs_ref(s)->id));
	tell_json_str(&j, "state", bytes_str(jobs_state_word(s->state)));
	if (s->reason[0])
		tell_json_str(&j, "reason", bytes_str(s->reason));
	if (s->has_exit)
		tell_json_int(&j, "exit", s->exit_code);
	if (s->pid_ns)
		tell_json_int(&j, "pid_ns", (int64_t)s->pid_ns);
	tell_json_end(s->m, &j);
}

void jobs_changed(struct submitted *s)
{
	jobs_put(s);
	tell(s);
	jobs_touch(s, "status");
}

static void end_one(struct submitted *s)
{
	mount_lock(s->m);
	jobs_show_end(s, true);
	mount_unlock(s->m);
	s->end_at_ms = s->unshown ? jobs_now() + JOBS_SHOW_MS : 0;
	if (!s->unshown)
		jobs_tell_end(s);
	pthread_cond_signal(&s->m->jobs->work);
}

bool jobs_move(struct submitted *s, enum jobs_event ev, const char *reason)
{
	enum jobs_state before = s->state;
	if (s->verified || !jobs_state_next(&s->state, ev))
		return false;
	if (reason)
		jobs_set_reason(s, bytes_str(reason));
	if (s->state != before)
		jobs_changed(s);
	else
		jobs_put(s);
	if (jobs_state_is_final(s->state))
		end_one(s);
	return true;
}

void jobs_settle(struct submitted *s, enum jobs_state state)
{
	s->state = state;
	s->verified = true;
	s->lost_at_ms = s->silent_at_ms = 0;
	s->cancelling = false;
	jobs_changed(s);
	end_one(s);
}

void jobs_newest(struct jobs *j, struct submitted *s)
{
	mount_lock(j->m);
	char *target = j->last ? strdup(s->name) : NULL;
	if (target) {
		free((char *)j->last->target);
		j->last->target = target;
		j->last->size = strlen(target);
		j->last->hidden = false;
	}
	mount_unlock(j->m);
}

void jobs_answer(struct submitted *s, int err)
{
	if (s->creator)
		fs_reply_error(s->creator, err);
	s->creator = NULL;
}

/* --- time --- */

/* The helper did not come: the directory appears without it. */
static void tick_creation(struct submitted *s, int64_t now, int64_t *next)
{
	if (!s->creator)
		return;
	if (now < s->created_until_ms) {
		*next = s->created_until_ms < *next ? s->created_until_ms
						    : *next;
		return;
	}
	mount_lock(s->m);
	if (s->dir)
		s->dir->hidden = false;
	mount_unlock(s->m);
	jobs_answer(s, 0);
}

static bool is_due(int64_t at, int64_t now, int64_t *next)
{
	if (!at)
		return false;
	if (at <= now)
		return true;
	if (at < *next)
		*next = at;
	return false;
}

/* The helper did not come: the end is told all the same. */
static void end_unshown(struct submitted *s)
{
	mount_lock(s->m);
	jobs_show_end(s, false);
	mount_unlock(s->m);
	s->unshown = 0;
	s->end_at_ms = 0;
	jobs_tell_end(s);
}

/* True: its result waited long enough for the files it names. */
static bool tick_one(struct submitted *s, int64_t now, int64_t *next)
{
	tick_creation(s, now, next);
	if (is_due(s->end_at_ms, now, next))
		end_unshown(s);
	if (s->awaited.len || s->finishing)
		return !s->finishing &&
			is_due(s->awaited_until_ms, now, next);
	if (is_due(s->silent_at_ms, now, next)) {
		s->silent_at_ms = 0;
		jobs_move(s, JOBS_SILENT, "runner silent");
	}
	if (is_due(s->lost_at_ms, now, next)) {
		s->lost_at_ms = 0;
		jobs_move(s, s->cancelling ? JOBS_SILENT : JOBS_ABANDONED,
			  s->lost_why);
	}
	return false;
}

int64_t jobs_tick(struct jobs *j, struct submitted **late)
{
	int64_t now = jobs_now(), next = now + 60000;
	for (struct submitted *s = j->first; s; s = s->next)
		if (!s->removed && tick_one(s, now, &next))
			*late = s;
	return next;
}

void jobs_kick(struct mount *m)
{
	struct jobs *j = m->jobs;
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	for (struct submitted *s = j->first; s; s = s->next)
		s->retry_at_ms = 0;
	pthread_cond_signal(&j->work);
	runners_refresh(j->runners, false);
	pthread_mutex_unlock(&j->lock);
}

/* --- the relay's word --- */

/* That nobody was idle is the answer to a POST: the poster hears it there. */
static void hear_failed(struct submitted *s, const char *reason)
{
	if (s->state == JOBS_WAITING || jobs_state_is_final(s->state) ||
	    s->awaited.len || s->finishing || s->lost_at_ms)
		return;
	snprintf(s->lost_why, sizeof s->lost_why, "%s", reason && *reason ?
		 reason : "the relay gave no reason");
	s->lost_at_ms = jobs_now() + JOBS_GRACE_MS;
}

/* A result was posted.  It is on its way, or does not count: then the job
 * has no end of its own. */
static void hear_done(struct submitted *s)
{
	if (s->state == JOBS_WAITING || jobs_state_is_final(s->state) ||
	    s->awaited.len || s->finishing || s->lost_at_ms)
		return;
	snprintf(s->lost_why, sizeof s->lost_why, "its runner has posted no "
		 "result that counts");
	s->lost_at_ms = jobs_now() + (s->refused ? JOBS_GRACE_MS
						 : JOBS_DONE_MS);
}

void jobs_refused(struct submitted *s)
{
	int64_t soon = jobs_now() + JOBS_GRACE_MS;
	s->refused = true;
	if (s->lost_at_ms > soon)
		s->lost_at_ms = soon;
	pthread_cond_signal(&s->m->jobs->work);
}

void jobs_hear(struct submitted *s, enum routed state, const uint8_t *runner,
	       const char *reason)
{
	struct jobs *j = s->m->jobs;
	if (s->verified)
		return;
	if (runner && !jobs_state_is_final(s->state)) {
		memcpy(s->runner, runner, PRIM_PUB);
		s->has_runner = true;
		live_runner(&s->live, &s->job, &s->m->peer->manifest,
			    runners_list(j->runners), runner);
	}
	if (state == ROUTED_RUNNING)
		jobs_move(s, JOBS_CLAIMED, NULL);
	else if (state == ROUTED_FAILED)
		hear_failed(s, reason);
	else if (state == ROUTED_DONE)
		hear_done(s);
	pthread_cond_signal(&j->work);
}

bool jobs_routed(struct mount *m, const struct news *n)
{
	struct jobs *j = m->jobs;
	enum routed state;
	if (!j || routed_parse(&state, bytes_str(n->word)) < 0)
		return false;
	pthread_mutex_lock(&j->lock);
	struct submitted *s = jobs_of_item(j, n->id);
	if (s)
		jobs_hear(s, state, n->has_pub ? n->pub : NULL, n->reason);
	if (n->has_pub)
		runners_busy(j->runners, n->pub, state == ROUTED_ASSIGNED ||
			     state == ROUTED_RUNNING ? n->id : NULL);
	runners_refresh(j->runners, false);
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
	return s != NULL;
}

void jobs_people(struct mount *m, const struct participant *who)
{
	if (m->jobs)
		runners_add(m->jobs->runners, who, true);
}

/* --- the room's life --- */

static bool has_jobs(const struct mount *m)
{
	enum role role = m->peer->invite.role;
	return m->peer->manifest.mode == MODE_EXECUTE &&
	       (role == ROLE_OWNER || role == ROLE_SENDER);
}

static int show_all(struct jobs *j, struct err *e)
{
	int rc = 0;
	mount_lock(j->m);
	j->last = tree_add(j->m->tree, j->m->dir_jobs, "last",
			   S_IFLNK | 0777, &latest_ops, NULL);
	if (j->last)
		j->last->hidden = true;
	if (!tree_add(j->m->tree, j->m->dir_jobs, "new", S_IFREG | 0600,
		      &jobs_new_ops, NULL) || !j->last)
		rc = err_set(e, ERR_MEMORY, "out of memory");
	for (struct submitted *s = j->first; s; s = s->next)
		if (!s->removed && jobs_show(s, false) < 0)
			rc = err_set(e, ERR_MEMORY, "out of memory");
	mount_unlock(j->m);
	for (struct submitted *s = j->first; s; s = s->next)
		if (!s->removed && s->state != JOBS_DRAFT)
			jobs_newest(j, s);
	return rc;
}

struct jobs *jobs_new(struct mount *m, struct err *e)
{
	*e = (struct err){ 0 };
	if (!has_jobs(m))
		return NULL;
	struct jobs *j = calloc(1, sizeof *j);
	if (!j) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	j->m = m;
	j->last_at = &j->first;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->work, NULL);
	m->jobs = j;
	j->dir = file_make_dir(m->store->dir, "jobs", e);
	j->runners = j->dir < 0 ? NULL : runners_new(j, e);
	if (j->runners && jobs_load(j, e) == 0 && show_all(j, e) == 0)
		return j;
	jobs_free(m);
	return NULL;
}

int jobs_start(struct mount *m, struct err *e)
{
	struct jobs *j = m->jobs;
	if (!j)
		return 0;
	j->wire = peer_wire(m->peer, e);
	if (!j->wire || runners_start(j->runners, e) < 0)
		return -1;
	if (pthread_create(&j->poster, NULL, jobs_post_thread, j))
		return err_sys(e, "cannot start a thread");
	j->has_poster = true;
	return 0;
}

void jobs_end(struct mount *m, int64_t wait_ms)
{
	struct jobs *j = m->jobs;
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	for (struct submitted *s = j->first; s; s = s->next) {
		if (m->closed && !s->removed)
			jobs_move(s, JOBS_ABANDONED, "the session is over");
		if (s->unshown)
			end_unshown(s);
		jobs_answer(s, 0);
		if (s->all)
			line_end(m, s->all);
		if (s->wait)
			line_end(m, s->wait);
	}
	pthread_mutex_unlock(&j->lock);
	for (struct submitted *s = j->first; s && wait_ms; s = s->next) {
		if (s->all)
			line_wait(s->all, wait_ms);
		if (s->wait)
			line_wait(s->wait, wait_ms);
	}
}

void jobs_stop(struct mount *m)
{
	struct jobs *j = m->jobs;
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->ending = true;
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
	if (j->wire)
		wire_abort(j->wire);
	if (j->has_poster)
		pthread_join(j->poster, NULL);
	j->has_poster = false;
	runners_stop(j->runners);
}

void jobs_free(struct mount *m)
{
	struct jobs *j = m->jobs;
	if (!j)
		return;
	m->jobs = NULL;
	runners_free(j->runners);
	wire_free(j->wire);
	if (j->journal)
		journal_sync(j->journal, NULL);
	journal_close(j->journal);
	for (struct submitted *s = j->first, *next; s; s = next) {
		next = s->next;
		free_one(s);
	}
	if (j->dir >= 0)
		close(j->dir);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->work);
	free(j);
}

size_t jobs_unsent(struct mount *m, struct buf *names)
{
	struct jobs *j = m->jobs;
	size_t n = 0;
	if (!j)
		return 0;
	pthread_mutex_lock(&j->lock);
	for (const struct submitted *s = j->first; s; s = s->next)
		if (!s->removed && s->state <= JOBS_WAITING)
			buf_addf(names, "%sjobs/%s", n++ || names->len ? ", "
				 : "", s->name);
	pthread_mutex_unlock(&j->lock);
	return n;
}
