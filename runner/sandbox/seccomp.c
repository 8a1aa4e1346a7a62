/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/buf.h"
#include "runner/sandbox/seccomp.h"

#define REFUSE SCMP_ACT_ERRNO(EPERM)
#define ABSENT SCMP_ACT_ERRNO(ENOSYS)

/* From newer headers than some systems have; the numbers are the same on
 * every architecture. */
static const int by_number[] = {
	425, 426, 427,		/* io_uring_setup, enter, register */
	428, 429, 430, 431, 432, 433,	/* open_tree move_mount fs* fspick */
	438,			/* pidfd_getfd */
	440,			/* process_madvise */
	442,			/* mount_setattr */
	443,			/* quotactl_fd */
	447,			/* memfd_secret */
	448,			/* process_mrelease */
	450,			/* set_mempolicy_home_node */
	457, 458,		/* statmount, listmount */
	459, 460, 461,		/* lsm_* */
	467,			/* open_tree_attr */
};

static const int refused[] = {
	SCMP_SYS(_sysctl), SCMP_SYS(acct), SCMP_SYS(add_key),
	SCMP_SYS(adjtimex), SCMP_SYS(afs_syscall), SCMP_SYS(bpf),
	SCMP_SYS(chroot), SCMP_SYS(clock_adjtime), SCMP_SYS(clock_settime),
	SCMP_SYS(create_module), SCMP_SYS(delete_module),
	SCMP_SYS(fanotify_init), SCMP_SYS(fanotify_mark),
	SCMP_SYS(finit_module), SCMP_SYS(get_kernel_syms),
	SCMP_SYS(getpmsg), SCMP_SYS(init_module), SCMP_SYS(ioperm),
	SCMP_SYS(iopl), SCMP_SYS(kcmp), SCMP_SYS(kexec_file_load),
	SCMP_SYS(kexec_load), SCMP_SYS(keyctl), SCMP_SYS(lookup_dcookie),
	SCMP_SYS(mbind), SCMP_SYS(migrate_pages), SCMP_SYS(modify_ldt),
	SCMP_SYS(mount), SCMP_SYS(move_pages), SCMP_SYS(msgget),
	SCMP_SYS(name_to_handle_at), SCMP_SYS(nfsservctl),
	SCMP_SYS(open_by_handle_at), SCMP_SYS(perf_event_open),
	SCMP_SYS(personality),
	SCMP_SYS(pivot_root), SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev), SCMP_SYS(ptrace), SCMP_SYS(putpmsg),
	SCMP_SYS(query_module), SCMP_SYS(quotactl), SCMP_SYS(reboot),
	SCMP_SYS(request_key), SCMP_SYS(semget), SCMP_SYS(set_mempolicy),
	SCMP_SYS(setdomainname), SCMP_SYS(sethostname), SCMP_SYS(setns),
	SCMP_SYS(settimeofday), SCMP_SYS(shmget), SCMP_SYS(stime),
	SCMP_SYS(swapoff), SCMP_SYS(swapon), SCMP_SYS(syslog),
	SCMP_SYS(sysfs), SCMP_SYS(umount), SCMP_SYS(umount2),
	SCMP_SYS(unshare), SCMP_SYS(uselib), SCMP_SYS(userfaultfd),
	SCMP_SYS(ustat), SCMP_SYS(vhangup), SCMP_SYS(vm86),
	SCMP_SYS(vm86old), SCMP_SYS(vserver),
};

/* The kernel looks at the low 32 bits of an ioctl's number; so do we. */
static const uint32_t ioctls[] = {
	TIOCSTI, TIOCCONS, TIOCSETD, TIOCSCTTY,
	0x541c,			/* TIOCLINUX: paste into a console */
};

/* A time namespace's flag is within clone's exit signal: only clone3 and
 * unshare could ask for it. */
static const uint64_t namespaces[] = {
	CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
	CLONE_NEWNET, CLONE_NEWCGROUP,
};

/* A call this architecture does not have needs no rule. */
static int add(scmp_filter_ctx c, uint32_t action, int call)
{
	int r = seccomp_rule_add(c, action, call, 0);
	return r == -EDOM || r == -EINVAL ? 0 : r;
}

static int add_calls(scmp_filter_ctx c)
{
	int r = add(c, ABSENT, 435);	/* clone3 */
	for (size_t i = 0; !r && i < sizeof refused / sizeof *refused; i++)
		r = add(c, REFUSE, refused[i]);
	for (size_t i = 0; !r && i < sizeof by_number / sizeof *by_number; i++)
		r = add(c, REFUSE, by_number[i]);
	return r;
}

static int add_flags(scmp_filter_ctx c)
{
	int r = 0;
	for (size_t i = 0; !r && i < sizeof ioctls / sizeof *ioctls; i++)
		r = seccomp_rule_add(c, REFUSE, SCMP_SYS(ioctl), 1,
			SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, ioctls[i]));
	for (size_t i = 0; !r && i < sizeof namespaces / sizeof *namespaces;
	     i++)
		r = seccomp_rule_add(c, REFUSE, SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i],
				namespaces[i]));
	return r;
}

/* Compared with all 64 bits: a family with high bits, of which the kernel
 * would see the low ones, is above the last one. */
static int add_families(scmp_filter_ctx c)
{
	const uint32_t act = SCMP_ACT_ERRNO(EAFNOSUPPORT);
	int r = seccomp_rule_add(c, act, SCMP_SYS(socket), 1,
				 SCMP_A0(SCMP_CMP_GT, AF_INET6));
	for (uint64_t f = 0; !r && f < AF_INET6; f++)
		if (f != AF_UNIX && f != AF_INET)
			r = seccomp_rule_add(c, act, SCMP_SYS(socket), 1,
					     SCMP_A0(SCMP_CMP_EQ, f));
	if (!r)
		r = seccomp_rule_add(c, act, SCMP_SYS(socketpair), 1,
				     SCMP_A0(SCMP_CMP_NE, AF_UNIX));
	return r;
}

static int build(scmp_filter_ctx c, bool no_memfd)
{
	int r = add_calls(c);
	if (!r)
		r = add_flags(c);
	if (!r)
		r = add_families(c);
	if (!r && no_memfd)
		r = add(c, REFUSE, SCMP_SYS(memfd_create));
	return r;
}

int seccomp_make(bool no_memfd, struct err *e)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
	if (!c)
		return err_set(e, ERR_MEMORY, "no memory for a filter");
	cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : build(c, no_memfd);
	if (!r)
		r = seccomp_export_bpf(c, fd);
	seccomp_release(c);
	if (r < 0) {
		errno = -r;
		return err_sys(e, "cannot make the system call filter");
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "cannot rewind the system call filter");
	int out = fd;
	fd = -1;
	return out;
}
