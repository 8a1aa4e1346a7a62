/* SPDX-License-Identifier: MIT
 *
 * helper: the process behind notify.h.  It has one descriptor, a socket, and
 * does what it is told on the mount; it is single-threaded, so that its
 * thread id is its process id, by which the daemon knows it.
 *
 * The mount's root is opened anew for each request: a descriptor that stays
 * would keep `fusermount3 -u` from working. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "airloxfs/notify.h"
#include "core/buf.h"

#define HELPER_SOCKET 3
#define FUSE_MAGIC 0x65735546
#define FUSE_ROOT_INO 1

/* After an unmount the path is the directory underneath.  The kernel knows
 * inode and device by itself; what file system it is, the mount is asked once
 * for each device. */
static bool is_our_mount(int root)
{
	static struct statx ours;
	struct statx st;
	struct statfs fs;
	if (statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
		  &st) < 0 || st.stx_ino != FUSE_ROOT_INO)
		return false;
	if (ours.stx_ino && ours.stx_dev_major == st.stx_dev_major &&
	    ours.stx_dev_minor == st.stx_dev_minor)
		return true;
	if (fstatfs(root, &fs) < 0 || fs.f_type != FUSE_MAGIC)
		return false;
	ours = st;
	return true;
}

static int create_entry(int root, const char *path)
{
	int fd = openat(root, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
			0600);
	return fd < 0 ? -1 : close(fd);
}

static int touch_entry(int root, const char *path)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_nsec = UTIME_NOW } };
	return utimensat(root, path, times, AT_SYMLINK_NOFOLLOW);
}

static int act(enum notify_op op, int root, const char *path)
{
	switch (op) {
	case NOTIFY_CREATE: return create_entry(root, path);
	case NOTIFY_MKDIR: return mkdirat(root, path, 0700);
	case NOTIFY_UNLINK: return unlinkat(root, path, 0);
	case NOTIFY_RMDIR: return unlinkat(root, path, AT_REMOVEDIR);
	case NOTIFY_TOUCH: return touch_entry(root, path);
	case NOTIFY_POLL: break;
	}
	errno = EINVAL;
	return -1;
}

static int serve(const char *mount, char op, const char *path)
{
	cleanup_fd int root = open(mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return errno;
	if (!is_our_mount(root))
		return ENOTCONN;
	return act((enum notify_op)op, root, path) < 0 ? errno : 0;
}

int helper_main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	if (argc != 3)
		return 64;
	char msg[1024];
	for (;;) {
		ssize_t n = recv(HELPER_SOCKET, msg, sizeof msg - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 2)
			return 0;	/* the daemon is gone */
		msg[n] = 0;
		int answer = serve(argv[2], msg[0], msg + 1);
		if (send(HELPER_SOCKET, &answer, sizeof answer,
			 MSG_NOSIGNAL) < 0)
			return 0;
	}
}
