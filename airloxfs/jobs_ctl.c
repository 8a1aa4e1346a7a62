/* SPDX-License-Identifier: MIT
 *
 * jobs/NAME/ctl: verbs, one a line.
 *
 *	entry FILE		what is run; else the only .py, else main.py
 *	runner NAME		by this runner alone
 *	label WORD...		by one that has all of these labels
 *	timeout SECONDS		at most so long, at most the session's limit
 *	memory MB		at most so much
 *	requirement PACKAGE...	of those the session allows
 *	nowait			fails where no runner is idle
 *	run			from here on it is sent
 *	cancel			it is not, or is ended */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/ctl.h"
#include "airloxfs/jobs_private.h"
#include "airloxfs/proc.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/text.h"
#include "core/host/people.h"
#include "core/key.h"
#include "core/name.h"

/* --- what is asked; with the lock --- */

static int do_entry(struct submitted *s, char *arg, struct err *e)
{
	if (strlen(arg) >= sizeof s->spec.entry || strchr(arg, '/'))
		return err_set(e, ERR_VERB, "entry takes the name of a file "
			       "of this directory: entry main.py");
	strcpy(s->spec.entry, arg);
	return 0;
}

static int take_runner(struct submitted *s, const struct participant *who,
		       struct err *e)
{
	struct jobs_spec *spec = &s->spec;
	if (!who)
		return -1;
	if (who->join.cert.role != ROLE_RUNNER)
		return err_set(e, ERR_VERB, "%s is no runner: ls runners",
			       who->shown);
	snprintf(spec->runner, sizeof spec->runner, "%s",
		 who->join.runner.name);
	memcpy(spec->pub, who->join.cert.pub, PRIM_PUB);
	spec->target = TARGET_RUNNER;
	buf_reset(&spec->labels);
	return 0;
}

static int do_runner(struct submitted *s, char *arg, struct err *e)
{
	mount_lock(s->m);
	int rc = take_runner(s, people_named(&s->m->peer->people,
					     bytes_str(arg), e), e);
	mount_unlock(s->m);
	if (rc < 0)
		e->code = ERR_VERB;
	return rc;
}

static bool is_label(const char *w)
{
	size_t n = strlen(w);
	return n && n <= 63 && !strchr("._-", w[0]) &&
	       w[strspn(w, "abcdefghijklmnopqrstuvwxyz0123456789._-")] == 0;
}

/* Calls each for every word of arg; a failure ends it. */
static int each_word(char *arg, struct buf *to,
		     int (*each)(struct mount *m, char *word, struct err *e),
		     struct mount *m, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	char *save;
	for (char *w = strtok_r(arg, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		if (each(m, w, e) < 0)
			return -1;
		buf_addf(&b, "%s%s", b.len ? " " : "", w);
	}
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	buf_reset(to);
	buf_add(to, b.data, b.len);
	return 0;
}

static int check_label(struct mount *m, char *word, struct err *e)
{
	(void)m;
	return is_label(word) ? 0 : err_set(e, ERR_VERB, "%s is no label: "
		"small letters, digits, and . _ - between them", word);
}

static int do_label(struct submitted *s, char *arg, struct err *e)
{
	size_t words = 1;
	for (const char *p = arg; *p; p++)
		words += *p == ' ';
	if (words > JOBS_LABELS_MAX)
		return err_set(e, ERR_VERB, "%d labels are the most",
			       JOBS_LABELS_MAX);
	if (each_word(arg, &s->spec.labels, check_label, s->m, e) < 0)
		return -1;
	s->spec.target = TARGET_LABELS;
	return 0;
}

static int take_number(const char *arg, int64_t max, const char *what,
		       int64_t *to, struct err *e)
{
	char *end;
	errno = 0;
	long long n = strtoll(arg, &end, 10);
	if (errno || *arg < '0' || *arg > '9' || *end || n < 1 || n > max)
		return err_set(e, ERR_VERB, "%s takes a number from 1 to %lld",
			       what, (long long)max);
	*to = n;
	return 0;
}

static int do_timeout(struct submitted *s, char *arg, struct err *e)
{
	return take_number(arg, s->m->peer->manifest.job.timeout_s,
			   "timeout, in seconds,", &s->spec.timeout_s, e);
}

static int do_memory(struct submitted *s, char *arg, struct err *e)
{
	return take_number(arg, s->m->peer->manifest.job.memory_mb,
			   "memory, in MB,", &s->spec.memory_mb, e);
}

/* The word becomes the normalised name, which is no longer. */
static int check_package(struct mount *m, char *word, struct err *e)
{
	cleanup_buf struct buf name = { 0 };
	if (manifest_package(&name, bytes_str(word)) < 0 ||
	    !manifest_has_package(&m->peer->manifest, bytes_str(word)))
		return err_set(e, ERR_VERB, "this session does not allow the "
			       "package %s: see packages in session", word);
	if (!buf_cstr(&name) || name.len > strlen(word))
		return err_set(e, ERR_MEMORY, "out of memory");
	strcpy(word, buf_cstr(&name));
	return 0;
}

static int do_requirement(struct submitted *s, char *arg, struct err *e)
{
	return each_word(arg, &s->spec.requirements, check_package, s->m, e);
}

static int do_nowait(struct submitted *s, char *arg, struct err *e)
{
	(void)arg, (void)e;
	s->spec.nowait = true;
	return 0;
}

/* --- what is done; without the lock --- */

static void tell_written(struct submitted *s)
{
	cleanup_buf struct buf line = { 0 };
	struct tell_json j = tell_json_begin(&line, "written");
	tell_json_str(&j, "job", bytes_str(s->name));
	if (s->pid_ns)
		tell_json_int(&j, "pid_ns", (int64_t)s->pid_ns);
	tell_json_end(s->m, &j);
}

int jobs_run(struct submitted *s, struct err *e)
{
	struct jobs *j = s->m->jobs;
	pthread_mutex_lock(&j->lock);
	bool mine = s->state == JOBS_DRAFT && !s->posting;
	s->posting |= mine;	/* nothing of it changes from here on */
	pthread_mutex_unlock(&j->lock);
	if (!mine)
		return err_set(e, ERR_VERB, "this job was run: make another "
			       "one");
	struct jobs_plan *plan = s->m->closed ? NULL : jobs_plan_new(s, e);
	if (s->m->closed)
		err_set(e, ERR_GONE, "the session is over");
	pthread_mutex_lock(&j->lock);
	s->posting = false;
	if (plan) {
		s->plan = plan;
		jobs_move(s, JOBS_RUN, NULL);
		jobs_newest(j, s);
		tell_written(s);
		pthread_cond_signal(&j->work);
	}
	pthread_mutex_unlock(&j->lock);
	return plan ? jobs_sync(j, e) : -1;
}

int jobs_cancel(struct submitted *s, struct err *e)
{
	struct jobs *j = s->m->jobs;
	int rc = 0;
	pthread_mutex_lock(&j->lock);
	if (s->state == JOBS_DRAFT || jobs_state_is_final(s->state)) {
		rc = err_set(e, ERR_VERB, "there is nothing to cancel: this "
			     "job is %s", jobs_state_word(s->state));
	} else if (s->state == JOBS_WAITING && !s->tried && !s->posting) {
		jobs_move(s, JOBS_DROPPED, "cancelled before it was sent");
		jobs_plan_free(s);
		jobs_forget_sealed(s);
	} else if (!s->cancelling) {
		s->cancelling = true;
		s->silent_at_ms = jobs_now() + JOBS_SILENT_MS;
		jobs_changed(s);
		pthread_cond_signal(&j->work);
		runners_wake(j->runners);
	}
	pthread_mutex_unlock(&j->lock);
	return rc < 0 ? -1 : jobs_sync(j, e);
}

/* --- the table --- */

static const struct verb {
	const char *name, *arg;	/* arg: "" where it takes none */
	int (*set)(struct submitted *s, char *arg, struct err *e);
	int (*act)(struct submitted *s, struct err *e);
} verbs[] = {
	{ "entry", "FILE", do_entry, NULL },
	{ "runner", "NAME", do_runner, NULL },
	{ "label", "WORD...", do_label, NULL },
	{ "timeout", "SECONDS", do_timeout, NULL },
	{ "memory", "MB", do_memory, NULL },
	{ "requirement", "PACKAGE...", do_requirement, NULL },
	{ "nowait", "", do_nowait, NULL },
	{ "run", "", NULL, jobs_run },
	{ "cancel", "", NULL, jobs_cancel },
};
#define VERBS (sizeof verbs / sizeof *verbs)

static int set(struct submitted *s, const struct verb *v, char *arg,
	       struct err *e)
{
	struct jobs *j = s->m->jobs;
	pthread_mutex_lock(&j->lock);
	int rc = s->state != JOBS_DRAFT || s->posting ?
		err_set(e, ERR_VERB, "this job was run: make another one") :
		v->set(s, arg, e);
	if (rc == 0)
		jobs_put(s);
	pthread_mutex_unlock(&j->lock);
	return rc;
}

static int verb(struct mount *m, struct node *n, char *line, struct err *e)
{
	(void)m;
	struct submitted *s = n->data;
	char *arg = strchr(line, ' ');
	if (arg)
		*arg++ = 0;
	for (size_t i = 0; i < VERBS; i++) {
		const struct verb *v = &verbs[i];
		if (strcmp(v->name, line) != 0)
			continue;
		if ((v->arg[0] != 0) != (arg && *arg))
			return err_set(e, ERR_VERB, "write it as: %s %s",
				       v->name, v->arg);
		return v->set ? set(s, v, arg, e) : v->act(s, e);
	}
	return err_set(e, ERR_VERB, "a job does not know that verb: cat its "
		       "ctl, which lists those it knows");
}

/* Those that can be written now. */
static int ctl_open(struct mount *m, struct handle *h)
{
	const struct submitted *s = h->node->data;
	pthread_mutex_lock(&m->jobs->lock);
	bool draft = s->state == JOBS_DRAFT;
	bool final = jobs_state_is_final(s->state);
	pthread_mutex_unlock(&m->jobs->lock);
	h->direct = true;
	for (size_t i = 0; i < VERBS; i++)
		if (!final && (verbs[i].act != jobs_cancel) == draft)
			buf_addf(&h->bytes, "%s%s%s\n", verbs[i].name,
				 verbs[i].arg[0] ? " " : "", verbs[i].arg);
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static int ctl_write(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off)
{
	(void)off;
	struct submitted *s = h->node->data;
	uint64_t pid_ns = proc_pid_ns(tid);
	pthread_mutex_lock(&m->jobs->lock);
	if (s->state == JOBS_DRAFT)
		s->pid_ns = pid_ns;
	pthread_mutex_unlock(&m->jobs->lock);
	return ctl_lines(m, h->node, p, n, verb);
}

const struct node_ops jobs_ctl_ops = {
	.open = ctl_open, .read = text_read, .write = ctl_write,
	.truncate = fs_truncate_nothing, .timeout_s = 86400,
};
