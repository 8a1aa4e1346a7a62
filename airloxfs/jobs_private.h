/* SPDX-License-Identifier: MIT
 *
 * What the files of the jobs room share:
 *
 *	jobs.c		the table of jobs, and how one moves on
 *	jobs_journal.c	what a crash finds again
 *	jobs_dir.c	jobs/ and jobs/NAME/
 *	jobs_new.c	jobs/new
 *	jobs_trim.c	how many are kept
 *	jobs_ctl.c	the verbs
 *	jobs_file.c	status, stdout, output, wait, ...
 *	jobs_seal.c	from a directory to sealed items
 *	jobs_post.c	the thread that posts
 *	jobs_result.c	results, live output, files that were written
 *	runners.c	who can run them; runners_call.c: the thread that asks */
#ifndef AIRLOXFS_JOBS_PRIVATE_H
#define AIRLOXFS_JOBS_PRIVATE_H

#include "airloxfs/jobs.h"
#include "airloxfs/jobs_state.h"
#include "airloxfs/line.h"
#include "airloxfs/out.h"
#include "airloxfs/runners.h"
#include "airloxfs/store.h"
#include "core/host/live.h"

#define JOBS_CODE_MAX (1024 * 1024)
#define JOBS_SILENT_MS 30000	/* a cancelled job's runner has so long */
#define JOBS_GRACE_MS 1500	/* a result may be on its way while the relay
				 * says that the job failed */
#define JOBS_DONE_MS 300000	/* for a result to come, once it was posted */
#define JOBS_OUT_WAIT_MS 60000	/* for the files that a result names */
#define JOBS_SHOW_MS 3000	/* for the helper */
#define JOBS_LABELS_MAX 16
#define JOBS_KEPT 1000		/* that have ended */

/* What is asked: the verbs of ctl. */
struct jobs_spec {
	char entry[256];	/* "": the only .py, else main.py */
	enum target_kind target;
	char runner[64];	/* TARGET_RUNNER: its name in its join, */
	uint8_t pub[PRIM_PUB];	/* and key */
	struct buf labels;	/* words, a space between */
	struct buf requirements;
	int64_t timeout_s;	/* 0: the session's */
	int64_t memory_mb;	/* 0: null */
	bool nowait;
};

enum jobs_text {
	JOBS_STDOUT, JOBS_STDERR,
	JOBS_JSON,	/* the result */
	JOBS_META,	/* the job's payload; no file of the mount */
	JOBS_TEXTS
};

/* A file that the job wrote. */
struct jobs_out {
	char *path;		/* below out/ */
	uint64_t size;
	char vault[VAULT_ID_MAX + 1];
};

/* A job.  All of it is guarded by the room's lock; it lives as long as the
 * room, so that a node or a thread may keep a pointer to it. */
struct submitted {
	struct submitted *next;	/* in the order of their making */
	struct mount *m;
	uint64_t n;
	char *name;
	bool removed;		/* its directory was: nothing is known of it */
	bool leaving;		/* the helper is to remove it */
	uint64_t pid_ns;	/* of who ran it, if it is not ours */
	enum jobs_state state;
	bool verified;		/* by a result: nothing changes any more */
	struct jobs_spec spec;

	struct jobs_plan *plan;	/* its inputs, while it may be sent */
	bool has_job;		/* it was sealed: */
	struct sealed sealed;
	char blob[FILE_TMP];	/* in the state directory, until it is posted */
	struct job job;
	struct live live;
	bool posting;		/* the poster has it */
	bool tried;		/* the relay may have the job item */
	unsigned tries;
	int64_t retry_at_ms;	/* monotonic */

	bool has_runner;
	uint8_t runner[PRIM_PUB];	/* the relay's word, then the result's */
	bool cancelling;	/* the relay is to be asked, or was */
	bool cancel_asked;	/* and has answered */
	bool to_ask;		/* how it stands, after a mount */
	int64_t silent_at_ms;	/* monotonic; 0: no limit yet */
	int64_t lost_at_ms;	/* monotonic; 0: the relay has not given up */
	bool refused;		/* a result that named it did not count */
	char reason[512];	/* one line, escaped; "": none */
	char lost_why[320];
	bool has_exit;
	int64_t exit_code, wall_ms, peak_mem_mb;

	/* what it says */
	struct vault *text[JOBS_TEXTS];	/* open while used */
	unsigned text_users[JOBS_TEXTS];
	bool text_held[JOBS_TEXTS];	/* by us: frames are coming */
	uint64_t text_n[JOBS_TEXTS];
	struct line *all;	/* output: stdout and stderr as they come; there
				 * while somebody reads it */
	struct line *wait;	/* made when first asked for */
	struct jobs_out *out;
	size_t out_n;
	struct buf awaited;	/* the result, while a file it names is not
				 * here: the meta of its payload */
	uint8_t awaited_from[PRIM_PUB];
	int64_t awaited_until_ms;
	bool finishing;		/* somebody fetches them */
	unsigned unshown;	/* files of its end that the helper has yet
				 * to show; then who waits is told */
	int64_t end_at_ms;	/* or at this time; 0: none */

	struct node *dir;	/* the mount's lock, as what is below it */
	struct node *dir_out;
	struct fuse_req *creator; /* jobs/new's close, until dir is shown */
	int64_t created_until_ms;
};

struct jobs {
	struct mount *m;
	struct journal *journal;
	int dir;		/* state directory: vaults and blobs */
	pthread_mutex_t lock;	/* guards all below, and the jobs */
	pthread_cond_t work;	/* the poster */
	struct submitted *first, **last_at;
	struct node *last;	/* the symlink; the mount's lock */
	uint64_t newest;	/* number given last */
	pthread_t poster;
	bool has_poster, ending;
	struct wire *wire;
	struct runners *runners;
};

/* --- jobs_trim.c --- */
void jobs_trim(struct jobs *j);		/* with the lock */
int jobs_expire(struct mount *m, struct node *n); /* the helper's rmdir */

/* --- jobs.c; with the lock unless it says otherwise --- */
struct submitted *jobs_add(struct jobs *j, const char *name);
void jobs_free_parts(struct submitted *s);	/* it was removed */
struct submitted *jobs_named(struct jobs *j, const char *name);
struct submitted *jobs_of_item(struct jobs *j, const char *id);
/* Its item's reference; NULL before it was sealed. */
const struct item_ref *jobs_ref(const struct submitted *s);
/* The event, with what follows from it: journal, log, events, watchers, who
 * waits.  False: it changed nothing. */
bool jobs_move(struct submitted *s, enum jobs_event ev, const char *reason);
/* A result's state, which jobs_move does not know. */
void jobs_settle(struct submitted *s, enum jobs_state state);
/* Journal, watchers, events: something of it changed. */
void jobs_changed(struct submitted *s);
void jobs_touch(struct submitted *s, const char *file);	/* wakes watchers */
void jobs_set_reason(struct submitted *s, struct bytes reason);
/* A result that its runner posted for it does not count. */
void jobs_refused(struct submitted *s);
/* The relay's word; runner and reason may be NULL. */
void jobs_hear(struct submitted *s, enum routed state, const uint8_t *runner,
	       const char *reason);
/* jobs/last leads here. */
void jobs_newest(struct jobs *j, struct submitted *s);
/* The answer to jobs/new's close. */
void jobs_answer(struct submitted *s, int err);
int64_t jobs_now(void);		/* monotonic ms */
void jobs_forget_sealed(struct submitted *s);

/* --- jobs_journal.c --- */
int jobs_load(struct jobs *j, struct err *e);
void jobs_put(struct submitted *s);	/* with the lock; not durable yet */
int jobs_sync(struct jobs *j, struct err *e);	/* without it */

/* jobs_dir.c: the directory of a job that has ended or is a draft, with
 * nothing in it but files of ours.  An errno. */
int jobs_remove(struct mount *m, struct node *n);

/* --- jobs_dir.c; with both locks --- */
int jobs_show(struct submitted *s, bool hidden);
/* The files that are there only at the end appear. */
void jobs_show_end(struct submitted *s, bool hidden);
/* A file of the end was shown: who waits is told after the last. */
void jobs_end_shown(struct mount *m, struct node *n);
void jobs_show_out(struct submitted *s, const struct jobs_out *o, bool hidden);
struct submitted *jobs_of(const struct node *n);	/* of a node below it */
bool jobs_is_ours(const char *name);	/* no input may be called so */
extern const struct node_ops jobs_one_ops;

/* --- jobs_file.c --- */
/* A text's vault, for as long as it is not closed again; fresh: without what
 * was in it.  All with the lock. */
struct vault *jobs_text_open(struct submitted *s, enum jobs_text t, bool make,
			     struct err *e);
void jobs_text_close(struct submitted *s, enum jobs_text t);
/* More of it, live; who reads output gets it too. */
void jobs_text_grow(struct submitted *s, enum jobs_text t, struct bytes more);
/* This is the whole, durably; who reads output gets what is missing, where
 * what it got is the start of it. */
int jobs_text_replace(struct submitted *s, enum jobs_text t,
		      struct bytes whole, struct err *e);
/* The whole of it, added to out. */
int jobs_text_all(struct submitted *s, enum jobs_text t, struct buf *out,
		  struct err *e);
void jobs_vault_id(const struct submitted *s, const char *what,
		   char id[VAULT_ID_MAX + 1]);
void jobs_status_line(const struct submitted *s, struct buf *out);
void jobs_tell_end(struct submitted *s);	/* to who waits; final */
extern const struct node_ops jobs_made_ops, jobs_text_ops, jobs_all_ops,
	jobs_wait_ops, jobs_outdir_ops, jobs_out_ops;

/* --- jobs_ctl.c, jobs_new.c --- */
extern const struct node_ops jobs_ctl_ops, jobs_new_ops;
/* draft -> waiting: what can be checked is.  Without the lock. */
int jobs_run(struct submitted *s, struct err *e);
int jobs_cancel(struct submitted *s, struct err *e);

/* --- jobs_seal.c --- */
/* Its directory as a plan, with all that can be checked; the drafts cannot be
 * written meanwhile.  Without the lock. */
struct jobs_plan *jobs_plan_new(struct submitted *s, struct err *e);
struct job_plan *jobs_plan_of(struct jobs_plan *p);
void jobs_plan_sent(struct jobs_plan *p);	/* the drafts are free again */
bool jobs_plan_is_sent(const struct jobs_plan *p);
void jobs_plan_free(struct submitted *s);	/* with or without it */
/* Fixes id and bytes, durably.  Without the lock. */
int jobs_seal(struct submitted *s, struct err *e);
int jobs_reopen(struct submitted *s, struct err *e);	/* the blob */
/* The relay has it: the blob goes to the cache. */
void jobs_posted(struct submitted *s);

/* --- jobs_post.c, jobs_result.c --- */
void *jobs_post_thread(void *jobs);
/* With the lock: what is due; *late: whose result waited for long enough.
 * Returns when to look again. */
int64_t jobs_tick(struct jobs *j, struct submitted **late);
/* Applies a result whose files are here, or late without them.  Without the
 * lock. */
void jobs_finish(struct submitted *s, bool late);

#endif
