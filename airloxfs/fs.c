/* SPDX-License-Identifier: MIT */
#include "airloxfs/fs_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FS_THREADS 10		/* at most; a rename that commits holds one.
				 * Idle ones stay: making one for each burst
				 * costs more than it frees */

struct fs {
	struct fuse_session *se;
	struct mount *m;
	pthread_t main_thread;
	bool began;		/* INIT was seen */
	bool mounted;
};

void fs_reply_error(struct fuse_req *req, int err) { fuse_reply_err(req, err); }

/* The interceptor of libfuse's writev looks at the bytes after the call, when
 * the reader may have closed the file already and another thread freed them;
 * the kernel has read them within the call. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
#else
#define AnnotateIgnoreReadsBegin(file, line) ((void)0)
#define AnnotateIgnoreReadsEnd(file, line) ((void)0)
#endif

void fs_reply_data(struct fuse_req *req, const void *p, size_t n)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	fuse_reply_buf(req, p, n);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
void fs_on_interrupt(struct fuse_req *req,
		     void (*gone)(struct fuse_req *req, void *arg), void *arg)
{
	fuse_req_interrupt_func(req, gone, arg);
}
bool fs_interrupted(struct fuse_req *req) { return fuse_req_interrupted(req); }

static void fs_op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct mount *m = userdata;
	conn->want |= conn->capable &
		(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS |
		 FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_READ |
		 FUSE_CAP_PARALLEL_DIROPS);
	conn->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE |
				  FUSE_CAP_SPLICE_READ |
				  FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE |
				  FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS);
	m->fs->began = true;
}

static const struct fuse_lowlevel_ops operations = {
	.init = fs_op_init, .lookup = fs_op_lookup, .forget = fs_op_forget,
	.forget_multi = fs_op_forget_multi, .getattr = fs_op_getattr,
	.setattr = fs_op_setattr, .readlink = fs_op_readlink, .open = fs_op_open,
	.read = fs_op_read, .write = fs_op_write, .flush = fs_op_flush,
	.fsync = fs_op_fsync, .fsyncdir = fs_op_fsyncdir, .release = fs_op_release,
	.poll = fs_op_poll, .fallocate = fs_op_fallocate, .readdir = fs_op_readdir,
	.readdirplus = fs_op_readdirplus, .create = fs_op_create,
	.mkdir = fs_op_mkdir, .unlink = fs_op_unlink, .rmdir = fs_op_rmdir,
	.rename = fs_op_rename, .link = fs_op_link, .symlink = fs_op_symlink,
	.mknod = fs_op_mknod, .statfs = fs_op_statfs, .getxattr = fs_op_getxattr,
	.listxattr = fs_op_listxattr, .setxattr = fs_op_setxattr,
	.removexattr = fs_op_removexattr,
	/* left out: access (default_permissions), lseek and copy_file_range
	 * (the kernel does them), locks (local ones are enough), opendir */
};

struct fs *fs_new(struct mount *m, const char *options, struct err *e)
{
	struct fs *fs = calloc(1, sizeof *fs);
	if (!fs) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	fs->m = m;
	m->fs = fs;
	char *argv[] = { "airloxfs", "-o", (char *)options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	fs->se = fuse_session_new(&args, &operations, sizeof operations, m);
	fuse_opt_free_args(&args);
	if (!fs->se) {
		err_set(e, ERR_USAGE, "the mount options were not accepted: "
			"see airloxfs mount --help");
		m->fs = NULL;
		free(fs);
		return NULL;
	}
	return fs;
}

/* libfuse and fusermount3 print; and the fusermount3 that auto_unmount leaves
 * behind keeps our stderr for as long as the mount lives.  So that what they
 * say becomes our sentence, and nothing is printed behind the user's back,
 * stderr is a file in memory meanwhile. */
static int catch_stderr(int *saved)
{
	int mem = memfd_create("airloxfs-stderr", MFD_CLOEXEC);
	*saved = mem < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (*saved < 0 || dup2(mem, STDERR_FILENO) < 0) {
		if (mem >= 0)
			close(mem);
		return -1;
	}
	return mem;
}

static void what_was_said(int mem, int saved, char said[200])
{
	ssize_t n = mem < 0 ? 0 : pread(mem, said, 199, 0);
	said[n > 0 ? n : 0] = 0;
	said[strcspn(said, "\n")] = 0;
	if (mem >= 0) {
		dup2(saved, STDERR_FILENO);
		close(mem);
	}
	if (saved >= 0)
		close(saved);
}

int fs_mount(struct fs *fs, const char *dir, struct err *e)
{
	char said[200];
	int saved, mem = catch_stderr(&saved);
	fs->mounted = fuse_session_mount(fs->se, dir) == 0;
	what_was_said(mem, saved, said);
	if (fs->mounted)
		return 0;
	return err_set(e, ERR_NO_FUSE, "cannot mount on this machine: %s; "
		       "without FUSE, `airloxfs send`, `items` and `watch` "
		       "still work", said);
}

/* Until INIT was answered nothing may touch the mount; so the first request
 * is served here, and then whoever waits is told. */
static int first_request(struct fs *fs)
{
	struct fuse_buf b = { .mem = NULL };
	while (!fs->began && !fuse_session_exited(fs->se)) {
		int n = fuse_session_receive_buf(fs->se, &b);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		fuse_session_process_buf(fs->se, &b);
	}
	free(b.mem);
	return fs->began ? 0 : -1;
}

static void woken(int sig) { (void)sig; }

int fs_loop(struct fs *fs, void (*ready)(struct mount *m), struct err *e)
{
	fs->main_thread = pthread_self();
	struct sigaction wake = { .sa_handler = woken };
	sigaction(SIGUSR1, &wake, NULL);
	if (first_request(fs) < 0)
		return err_set(e, ERR_NO_FUSE, "the kernel ended the mount "
			       "before it began: see the kernel's log");
	ready(fs->m);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	if (!config)
		return err_set(e, ERR_MEMORY, "out of memory");
	fuse_loop_cfg_set_clone_fd(config, 0);
	fuse_loop_cfg_set_max_threads(config, FS_THREADS);
	fuse_loop_cfg_set_idle_threads(config, FS_THREADS);
	int rc = fuse_session_loop_mt(fs->se, config);
	fuse_loop_cfg_destroy(config);
	return rc < 0 ? err_set(e, ERR_SYS, "serving the mount failed") : 0;
}

void fs_stop(struct fs *fs)
{
	fuse_session_exit(fs->se);
	pthread_kill(fs->main_thread, SIGUSR1);
}

void fs_unmount(struct fs *fs)
{
	if (fs && fs->mounted)
		fuse_session_unmount(fs->se);
	if (fs)
		fs->mounted = false;
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	fuse_session_destroy(fs->se);
	free(fs);
}
