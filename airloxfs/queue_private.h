/* SPDX-License-Identifier: MIT
 *
 * What the files of the queue room share, and nobody else: queue.c (which jobs
 * there are), queue_work.c (what is asked of the worker), queue_hear.c (what
 * others say), queue_take.c (from an id to verified files), queue_spec.c (what
 * the runner is told), queue_dir.c (the directory of a job), queue_file.c and
 * queue_ctl.c (what is written there), queue_out.c and queue_disk.c (out/),
 * queue_end.c and queue_seal.c (from files to a result), queue_net.c (the
 * relay's side), queue_journal.c. */
#ifndef AIRLOXFS_QUEUE_PRIVATE_H
#define AIRLOXFS_QUEUE_PRIVATE_H

#include "airloxfs/kept.h"
#include "airloxfs/outbox.h"
#include "airloxfs/queue.h"
#include "airloxfs/store.h"
#include "core/payload.h"

#define QUEUE_OPEN_MAX 64	/* jobs at a time; a relay assigns one */
#define QUEUE_TASKS_MAX 1000	/* a relay that names more is not listened to */
#define QUEUE_WORK_BYTES ((uint64_t)2 << 30)	/* of all of work/ */
#define QUEUE_WORK_FILES 20000
#define QUEUE_OUT_FILES 10000	/* files and directories of out/ */
#define QUEUE_REASON_CHARS 4000
#define QUEUE_WENT_AWAY "runner went away"
#define QUEUE_RESTARTED "runner restarted"

enum qstate {
	Q_TAKING,	/* being fetched and verified */
	Q_OPEN,		/* it has appeared */
	Q_CLAIMING,	/* journalled; the relay is asked */
	Q_CLAIMED,	/* it may run */
	Q_ENDING,	/* journalled; the worker seals the result */
	Q_GONE		/* over */
};

/* What the journal knows of an id; later ones win. */
enum qknown {
	QK_NONE, QK_ASSIGNED, QK_CLAIMED, QK_FINISHED, QK_ENDED,
	QK_APPROVED, QK_REJECTED,	/* us, by the owner: no id */
	QK_KINDS
};

/* How a job ended, as the journal keeps it: all that a result needs but out/. */
struct qend {
	enum result_status status;
	bool has_exit, out_cut, err_cut;
	int64_t exit, peak_mem_mb, wall_ms;
	struct buf reason;	/* empty: none */
	struct buf out, err;	/* UTF-8 */
};

struct qjob {
	struct qjob *next;
	_Atomic unsigned refs;	/* the list, nodes, the worker */
	struct mount *m;

	_Atomic bool keep;	/* its end is journalled and not yet sealed: what
				 * is in its vaults stays on the disk */

	/* fixed once it was taken */
	char id[ITEM_ID + 1];
	struct item_ref ref;
	char code_sha256[2 * HASH_SIZE + 1], input_sha256[2 * HASH_SIZE + 1];
	uint8_t author[PRIM_PUB];
	struct node *dir, *out_dir;	/* in the tree until it vanishes */

	pthread_mutex_t io;	/* of its vaults; before q->lock */
	struct vault *work;	/* all files of work/, one after the other */
	size_t work_files;
	uint64_t work_bytes;

	/* q->lock */
	enum qstate state;
	bool withdrawn;		/* the claim was answered no */
	bool told;		/* a claim returned 0 */
	bool cancelled;
	struct kept std[2];	/* stdout, stderr: enum progress_stream */
	uint64_t frame_seq;
	int64_t frame_ms;	/* monotonic; when the last one was sent */
	bool frames_off;	/* the relay does not take them */
	unsigned turn;		/* which stream is next */
	struct buf exit, reason, peak;
	uint64_t out_bytes;
	size_t out_files;
	int64_t claimed_ms;	/* monotonic */
	struct qend end;	/* Q_ENDING; then the worker's alone */
};

enum qtask_kind {
	QT_TAKE,	/* the runner's stream says it is ours */
	QT_LOOK,	/* it may be: ask the relay first */
	QT_SEAL		/* it has ended */
};
struct qtask {
	struct qtask *next;
	enum qtask_kind kind;
	char id[ITEM_ID + 1];
	struct qjob *job;	/* QT_SEAL: held */
	int64_t due_ms;		/* monotonic; not before */
	unsigned tries;
};

struct qid {
	char id[ITEM_ID + 1];
	enum qknown known;
	uint64_t at;		/* its newest record; after queue_load: 0 */
};

struct queue_room {
	struct mount *m;
	int dir;		/* in the state directory: the vaults */
	pthread_mutex_t journal_lock;	/* the last of all: guards these two */
	struct journal *journal;
	uint64_t written;	/* bytes of records since it was begun */
	pthread_t worker, beater, live, listener;
	bool has_worker, has_beater, has_live, has_listener;
	struct wire *work_wire, *beat_wire, *live_wire, *listen_wire;

	pthread_mutex_t lock;	/* guards all below */
	pthread_cond_t work;	/* the worker, and listener's pauses */
	pthread_cond_t beat;	/* the beater */
	pthread_cond_t print;	/* the live thread */
	pthread_cond_t claimed;	/* who waits for the answer to a claim */
	_Atomic bool ending;	/* set with the lock */
	unsigned kicks;		/* items that came: queue_item */
	unsigned holders;	/* of queue/ready, open for writing */
	bool beat_now;
	bool heard;		/* by the relay, which may assign jobs */
	char beat_job[ITEM_ID + 1];	/* claimed, its result not posted */
	struct qjob *jobs;
	struct qtask *tasks;	/* by due time */
	size_t task_n;
	struct qid *ids;
	size_t id_n, id_cap;
	bool approved, rejected;
};

/* --- queue.c --- */
struct qjob *queue_job_new(struct queue_room *q, const char *id);
void queue_hold(struct qjob *j);
void queue_drop(struct qjob *j);
/* With the lock: */
struct qjob *queue_find(struct queue_room *q, const char *id);
enum qknown queue_known(const struct queue_room *q, const char *id);
int queue_remember(struct queue_room *q, const char *id, enum qknown known);
void queue_list(struct queue_room *q, struct qjob *j);	/* takes a reference */
void queue_unlist(struct queue_room *q, struct qjob *j);
/* Without: */
struct vault *queue_vault(struct queue_room *q, char kind, struct err *e);
void queue_vault_end(struct queue_room *q, struct vault *v);	/* removed */
struct qjob *queue_find_held(struct queue_room *q, const char *id);
/* Calls each for every job, with none of the locks. */
void queue_each(struct queue_room *q,
		void (*each)(struct queue_room *q, struct qjob *j,
			     const char *why), const char *why);
/* A line in log and events. */
void queue_tell(struct mount *m, const char *id, const char *state,
		const char *detail);

/* --- queue_work.c --- */
void queue_ask(struct queue_room *q, enum qtask_kind kind, const char *id,
	       struct qjob *j, int64_t due_ms, unsigned tries);
void queue_untask(struct queue_room *q, const char *id); /* but QT_SEAL */
bool queue_is_fresh(struct queue_room *q, const char *id); /* nobody's yet */
bool queue_pause(struct queue_room *q, int64_t ms);	/* false: ending */
int queue_work_start(struct queue_room *q, struct err *e);
void queue_work_stop(struct queue_room *q);
/* What has ended is sealed; the worker is gone. */
void queue_seal_rest(struct queue_room *q);

/* --- queue_hear.c --- */
/* The submitter, the relay or the session says that it is over. */
void queue_cancel(struct queue_room *q, struct qjob *j, const char *why);
void queue_cancel_id(struct mount *m, const char *id, const char *why);

/* --- queue_journal.c --- */
int queue_load(struct queue_room *q, struct err *e);
/* j: what a result needs is in the record, of QK_CLAIMED and QK_FINISHED. */
int queue_note(struct queue_room *q, enum qknown kind, const struct qjob *j,
	       const char *id, bool sync, struct err *e);
/* The worker, while no job is about to end: a long journal is begun anew with
 * the ids alone. */
void queue_renew(struct queue_room *q);

/* --- queue_take.c: the worker; wire is its own --- */
/* 0: it is open, or refused, or not ours.  -1 with a passing fault: try again
 * later; `last`: there is no later.  run false: it was lost, and gets a result
 * that says so. */
int queue_take(struct queue_room *q, const char *id, bool run, bool last,
	       struct err *e);

/* --- queue_spec.c --- */
void queue_put_spec(struct buf *b, const struct mount *m,
		    const struct incoming *inc, const struct payload *p);
void queue_put_from(struct buf *b, struct mount *m,
		    const struct incoming *inc);

/* --- queue_dir.c --- */
/* The directory with all that is in it, hidden.  With nothing held. */
int queue_dir_begin(struct qjob *j, struct err *e);
/* A file of work/, whose n bytes are in j->work at off, or a directory.
 * Missing directories are made.  ERR_CONTENT: the path is taken. */
struct queue_entry {
	const char *path;
	uint64_t off, n;
	bool is_dir, is_exec;
};
int queue_dir_work(struct qjob *j, const struct queue_entry *w, struct err *e);
int queue_dir_finish(struct qjob *j, struct bytes spec, struct bytes from,
		     struct err *e);
void queue_dir_reveal(struct qjob *j);
void queue_dir_cancelled(struct qjob *j, const char *why);
void queue_dir_vanish(struct qjob *j);

/* --- queue_file.c --- */
extern const struct node_ops queue_stdout_ops, queue_stderr_ops,
	queue_exit_ops, queue_reason_ops, queue_peak_ops;
/* For ops whose data is a job: its reference goes. */
void queue_node_free(struct node *n);
/* queue_ctl.c */
extern const struct node_ops queue_ctl_ops;

/* --- queue_out.c --- */
struct qout {
	struct qjob *job;	/* held */
	struct vault *vault;	/* job->io */
};
extern const struct node_ops queue_out_ops, queue_out_file_ops;
struct node *queue_out_add(struct qjob *j, struct node *dir, const char *name,
			   mode_t mode, struct vault *v);

/* --- queue_disk.c --- */
/* The path below out/, of which top is the node; with the mount's lock. */
void queue_out_path(struct buf *b, const struct node *n,
		    const struct node *top);
/* Every file of out/, held, in an order that does not change. */
struct queue_file {
	struct node *node;	/* its data: struct qout */
	char *path;		/* below out/ */
	bool is_exec, is_top, is_sent;
};
struct queue_files {
	struct queue_file *v;
	size_t n, cap;
};
/* To be freed also on failure. */
int queue_out_list(struct qjob *j, struct queue_files *l, struct err *e);
void queue_out_list_free(struct qjob *j, struct queue_files *l);
/* What an ended job left on the disk, found again. */
void queue_out_load(struct queue_room *q);
/* Durable: header and data of every file. */
int queue_out_sync(struct qjob *j, struct err *e);

/* --- queue_end.c --- */
/* Ends a claimed job: journalled when it returns 0.  ERR_VERB where it is not
 * in a state to end so.  reason NULL: what the file says. */
int queue_finish(struct qjob *j, enum result_status status, const char *reason,
		 struct err *e);
/* The result of a job that never ran here. */
int queue_refuse(struct qjob *j, enum result_status status, const char *why,
		 struct err *e);
void queue_end_free(struct qend *end);

/* --- queue_seal.c: the worker; all of it into the outbox --- */
void queue_seal(struct queue_room *q, struct qjob *j);

/* --- queue_net.c --- */
int queue_net_start(struct queue_room *q, struct err *e);
void queue_net_stop(struct queue_room *q);

#endif
