# SPDX-License-Identifier: MIT
"""A job that tries to get out of its sandbox, or to see what is around it.

Run as a job, it prints one JSON line a probe: its name and what came of it.
breakout-test.py runs it and holds each outcome against the pattern that stands
beside the probe here: EPERM and its like are errno names, other words the
probe's own.  What it looks for is made on the host by that test and named in
host.json.
"""
import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import re
import resource
import socket
import stat
import struct
import sys

ARM = platform.machine() == "aarch64"
libc = ctypes.CDLL(None, use_errno=True)
PROBES = []
HOST = {}


def probe(expect, group):
    def add(f):
        PROBES.append((group, f.__name__, expect, f))
        return f
    return add


def word(n):
    return errno.errorcode.get(n, str(n))


def call(x86, arm, *args):
    """A system call by its number; the errno's name, or "ok"."""
    n = arm if ARM else x86
    if n is None:
        return "none"
    ctypes.set_errno(0)
    # What is there must not be ruined, should it work.
    r = libc.syscall(ctypes.c_long(n), *[
        a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a)
        for a in args])
    return "ok" if r >= 0 else word(ctypes.get_errno())


def calls(group, rows):
    """Many probes of that kind: name, numbers, what is expected, arguments."""
    for name, x86, arm, expect, *args in rows:
        def f(x86=x86, arm=arm, args=args):
            return call(x86, arm, *args)
        f.__name__ = name
        probe(expect, group)(f)


def attempt(f, *args):
    try:
        f(*args)
        return "ok"
    except OSError as e:
        return word(e.errno)
    except ValueError as e:
        return "ValueError"


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read(1 << 20)
    except OSError as e:
        return word(e.errno)


def opens(path, flags=os.O_RDONLY):
    try:
        os.close(os.open(path, flags))
        return "ok"
    except OSError as e:
        return word(e.errno)


def in_child(f):
    """What a child ends with: a code, or a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(f())
        except BaseException:
            os._exit(99)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return f"exit {os.WEXITSTATUS(status)}"


def status_field(pid, name):
    for line in read(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return "none"


# --- files -----------------------------------------------------------------

GONE = "ENOENT"
SEALED = "EROFS|EACCES|EPERM"


def absent(group, paths):
    for path in paths:
        def f(path=path):
            return opens(path)
        f.__name__ = "absent " + path
        probe(GONE, group)(f)


absent("file", [
    "/root", "/home", "/var", "/run", "/sys", "/boot", "/opt", "/srv", "/mnt",
    "/media", "/sbin", "/bin", "/usr/sbin", "/usr/local", "/usr/bin/env",
    "/usr/bin/sudo", "/usr/bin/su", "/usr/bin/bwrap", "/bin/sh",
    "/etc/shadow", "/etc/ssh", "/etc/ssl", "/etc/resolv.conf",
    "/etc/machine-id", "/etc/ld.so.preload", "/newroot", "/oldroot",
    "/usr/lib/python3/dist-packages", "/var/run/docker.sock"])
absent("device", [
    "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/fuse", "/dev/kvm",
    "/dev/net/tun", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/console",
    "/dev/vda", "/dev/sda", "/dev/loop-control", "/dev/mqueue",
    "/dev/userfaultfd", "/dev/vsock", "/dev/vhost-vsock"])


@probe("dev etc lib lib64 out proc tmp usr work", "file")
def root_holds():
    return " ".join(sorted(os.listdir("/")))


@probe("group hosts passwd", "file")
def etc_holds():
    return " ".join(sorted(os.listdir("/etc")))


@probe(r"python3\.\d+", "file")
def programs():
    return " ".join(sorted(os.listdir("/usr/bin")))


@probe("job", "file")
def users():
    return " ".join(line.split(":")[0]
                    for line in read("/etc/passwd").decode().splitlines())


@probe(GONE, "file")
def host_file():
    return opens(HOST["file"])


@probe(GONE, "file")
def host_shm_file():
    return opens(HOST["shm_file"])


@probe(GONE, "file")
def host_scratch():
    return opens(HOST["scratch"])


@probe("same", "file")
def dot_dot():
    return ("same" if os.path.samefile("/", "/../../..") else "out")


@probe(SEALED, "file")
def write_root():
    return attempt(os.mkdir, "/x")


@probe(SEALED, "file")
def write_usr():
    return attempt(os.mkdir, "/usr/lib/x")


@probe(SEALED, "file")
def write_stdlib():
    return opens(os.path.dirname(os.__file__) + "/x.py",
                 os.O_WRONLY | os.O_CREAT)


@probe(SEALED, "file")
def change_stdlib():
    return opens(os.__file__, os.O_WRONLY)


@probe(SEALED, "file")
def change_python():
    return opens(os.path.realpath(sys.executable), os.O_WRONLY)


@probe(SEALED, "file")
def write_etc():
    return opens("/etc/passwd", os.O_WRONLY)


@probe(SEALED, "device")
def write_dev():
    return opens("/dev/x", os.O_WRONLY | os.O_CREAT)


@probe(SEALED + "|EXDEV", "file")
def hard_link():
    return attempt(os.link, os.path.realpath(sys.executable), "/work/py")


@probe("none", "file")
def set_id_files():
    found = []
    for top in ("/usr", "/etc", "/dev", "/work", "/out", "/tmp"):
        for where, dirs, names in os.walk(top):
            for name in names:
                st = os.lstat(f"{where}/{name}")
                if stat.S_ISREG(st.st_mode) and st.st_mode & 0o6000:
                    found.append(f"{where}/{name}")
    return " ".join(found) or "none"


@probe("none", "file")
def mounts_with_set_id():
    bad = []
    for line in read("/proc/self/mountinfo").decode().splitlines():
        f = line.split()
        if "nosuid" not in f[5].split(","):
            bad.append(f[4])
    return " ".join(bad) or "none"


@probe(r"/dev/shm /out /proc /tmp /work", "file")
def writable_mounts():
    found = []
    for line in read("/proc/self/mountinfo").decode().splitlines():
        f = line.split()
        if "rw" in f[5].split(",") and os.path.isdir(f[4]):
            found.append(f[4])
    return " ".join(sorted(found))


@probe("EPERM", "device")
def make_char_device():
    return attempt(os.mknod, "/work/null", 0o666 | stat.S_IFCHR,
                   os.makedev(1, 1))


@probe("EPERM", "device")
def make_block_device():
    return attempt(os.mknod, "/tmp/disk", 0o666 | stat.S_IFBLK,
                   os.makedev(254, 0))


@probe("fd full null random shm stderr stdin stdout urandom zero", "device")
def devices():
    return " ".join(sorted(os.listdir("/dev")))


def fill(path):
    """fallocate takes the space at once."""
    with open(path, "wb") as f:
        try:
            os.posix_fallocate(f.fileno(), 0, HOST["memory_bytes"])
            return "ok"
        except OSError as e:
            return word(e.errno)
        finally:
            os.unlink(path)


@probe("ENOSPC", "file")
def tmp_has_a_size():
    return fill("/tmp/big")


@probe("ENOSPC", "file")
def shm_has_a_size():
    return fill("/dev/shm/big")


@probe("EFBIG", "file")
def file_has_a_size():
    with open("/work/big", "wb") as f:
        return attempt(os.ftruncate, f.fileno(), 1 << 50)


calls("mount", [
    ("mount", 165, 40, "EPERM", b"x", b"/tmp", b"tmpfs", 0, 0),
    ("mount_remount", 165, 40, "EPERM", b"", b"/", b"", 32 | 4096, 0),
    ("umount2", 166, 39, "EPERM", b"/proc", 2),
    ("pivot_root", 155, 41, "EPERM", b"/tmp", b"/tmp"),
    ("chroot", 161, 51, "EPERM", b"/tmp"),
    ("open_tree", 428, 428, "EPERM", -100, b"/", 1),
    ("move_mount", 429, 429, "EPERM", -1, b"", -1, b"", 0),
    ("fsopen", 430, 430, "EPERM", b"proc", 0),
    ("fsconfig", 431, 431, "EPERM", -1, 0, 0, 0, 0),
    ("fsmount", 432, 432, "EPERM", -1, 0, 0),
    ("fspick", 433, 433, "EPERM", -100, b"/", 0),
    ("mount_setattr", 442, 442, "EPERM", -100, b"/", 0, 0, 0),
    ("open_by_handle_at", 304, 265, "EPERM", 0, b"\0" * 64, 0),
    ("name_to_handle_at", 303, 264, "EPERM", -100, b"/", b"\0" * 64, 0, 0),
    ("swapon", 167, 224, "EPERM", b"/work/main.py", 0),
    ("acct", 163, 89, "EPERM", b"/work/main.py"),
    ("quotactl", 179, 60, "EPERM", 0, 0, 0, 0),
])

# --- processes -------------------------------------------------------------

calls("process", [
    ("ptrace_traceme", 101, 117, "EPERM", 0, 0, 0, 0),
    ("ptrace_attach", 101, 117, "EPERM", 16, 1, 0, 0),
    ("ptrace_seize", 101, 117, "EPERM", 0x4206, 1, 0, 0),
    ("process_vm_readv", 310, 270, "EPERM", 1, 0, 0, 0, 0, 0),
    ("process_vm_writev", 311, 271, "EPERM", 1, 0, 0, 0, 0, 0),
    ("process_madvise", 440, 440, "EPERM", 0, 0, 0, 0, 0),
    ("kcmp", 312, 272, "EPERM", 1, 1, 0, 0, 0),
    ("pidfd_getfd", 438, 438, "EPERM", 0, 0, 0),
    ("unshare_user", 272, 97, "EPERM", 0x10000000),
    ("unshare_mount", 272, 97, "EPERM", 0x20000),
    ("unshare_pid", 272, 97, "EPERM", 0x20000000),
    ("unshare_net", 272, 97, "EPERM", 0x40000000),
    ("unshare_time", 272, 97, "EPERM", 0x80),
    ("setns", 308, 268, "EPERM", 0, 0),
    ("clone3", 435, 435, "ENOSYS", b"\0" * 64, 64),
    ("clone_user", 56, 220, "EPERM", 0x10000000 | 17, 0, 0, 0, 0),
    ("clone_pid", 56, 220, "EPERM", 0x20000000 | 17, 0, 0, 0, 0),
    ("clone_net", 56, 220, "EPERM", 0x40000000 | 17, 0, 0, 0, 0),
    ("setuid_root", 105, 146, "EPERM|EINVAL", 0),
    ("setgid_root", 106, 144, "EPERM|EINVAL", 0),
    ("setgroups", 116, 159, "EPERM", 0, 0),
    ("capset", 126, 91, "EPERM|EFAULT", struct.pack("II", 0x20080522, 0),
     struct.pack("6I", 0x200000, 0x200000, 0, 0, 0, 0)),
    ("sched_fifo", 144, 119, "EPERM", 0, 1, struct.pack("i", 50)),
    ("mbind", 237, 235, "EPERM", 0, 0, 0, 0, 0, 0),
    ("migrate_pages", 256, 238, "EPERM", 1, 0, 0, 0),
])


@probe("ESRCH", "process")
def kill_host_process():
    return attempt(os.kill, HOST["pid"], 0)


@probe("few", "process")
def visible_processes():
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    return "few" if len(pids) <= 2 and 1 in pids else str(sorted(pids))


@probe("nothing", "process")
def words_of_the_host():
    """No process's arguments or environment have a word of the host."""
    for p in os.listdir("/proc"):
        for name in ("cmdline", "environ", "comm", "mountinfo"):
            text = read(f"/proc/{p}/{name}") if p.isdigit() else b""
            for mark in HOST["marks"]:
                if isinstance(text, bytes) and mark.encode() in text:
                    return f"{name} of {p} has {mark}"
    return "nothing"


@probe("0 0 0 0 0", "process")
def capabilities():
    return " ".join(str(int(status_field("self", "Cap" + set_), 16))
                    for set_ in ("Inh", "Prm", "Eff", "Bnd", "Amb"))


@probe("1 2", "process")
def no_new_privs_and_seccomp():
    return status_field("self", "NoNewPrivs") + " " + status_field(
        "self", "Seccomp")


@probe("1 2", "process")
def so_has_the_first_process():
    return status_field(1, "NoNewPrivs") + " " + status_field(1, "Seccomp")


@probe("EACCES|EPERM|same", "process")
def root_of_the_first_process():
    try:
        return ("same" if os.listdir("/proc/1/root") == os.listdir("/")
                else "another")
    except OSError as e:
        return word(e.errno)


@probe("EACCES|EPERM|nothing", "process")
def files_of_the_first_process():
    try:
        names = [os.readlink(f"/proc/1/fd/{n}") for n in
                 os.listdir("/proc/1/fd")]
    except OSError as e:
        return word(e.errno)
    fine = re.compile(r"(pipe:|anon_inode:|/dev/null)")
    return " ".join(n for n in names if not fine.match(n)) or "nothing"


@probe("EPERM", "process")
def raise_open_files():
    return attempt(resource.setrlimit, resource.RLIMIT_NOFILE,
                   (1 << 19, 1 << 19)).replace("ValueError", "EPERM")


@probe("EPERM", "process")
def raise_processes():
    return attempt(resource.setrlimit, resource.RLIMIT_NPROC,
                   (1 << 20, 1 << 20)).replace("ValueError", "EPERM")


@probe("0", "process")
def core_size():
    return str(resource.getrlimit(resource.RLIMIT_CORE)[1])


@probe("EACCES|EPERM", "process")
def nicer():
    return attempt(os.setpriority, os.PRIO_PROCESS, 0, -5)


@probe("EACCES|EPERM", "process")
def less_likely_killed():
    def f():
        with open("/proc/self/oom_score_adj", "w") as g:
            g.write("-1000")
    return attempt(f)


@probe("EACCES|EPERM", "process")
def first_process_less_likely_killed():
    return write_proc("/proc/1/oom_score_adj", b"-1000")


@probe("EPERM|EACCES", "process")
def map_another_user():
    def f():
        with open("/proc/self/uid_map", "w") as g:
            g.write("0 0 1")
    return attempt(f)


@probe("1000 1000 1000 / 1000 1000 1000", "process")
def who_we_are():
    return " ".join(map(str, os.getresuid())) + " / " + " ".join(
        map(str, os.getresgid()))


@probe("1 lines", "process")
def users_mapped():
    return f"{len(read('/proc/self/uid_map').splitlines())} lines"


@probe("box", "process")
def host_name():
    return socket.gethostname()


@probe("/", "process")
def control_groups():
    paths = {line.split(":", 2)[2] for line in
             read("/proc/self/cgroup").decode().splitlines()}
    return " ".join(sorted(paths))

# --- sockets and network ---------------------------------------------------


def families(rows):
    for name, number in rows:
        for kind in (1, 2, 3):
            def f(number=number, kind=kind):
                return call(41, 198, number, kind, 0)
            f.__name__ = f"socket {name} {kind}"
            probe("EAFNOSUPPORT", "network")(f)


families([("packet", 17), ("netlink", 16), ("vsock", 40), ("alg", 38)])
calls("network", [
    ("socket key", 41, 198, "EAFNOSUPPORT", 15, 3, 2),
    ("socket bluetooth", 41, 198, "EAFNOSUPPORT", 31, 3, 1),
    ("socket can", 41, 198, "EAFNOSUPPORT", 29, 3, 1),
    ("socket tipc", 41, 198, "EAFNOSUPPORT", 30, 1, 0),
    ("socket xdp", 41, 198, "EAFNOSUPPORT", 44, 3, 0),
    ("socket ax25", 41, 198, "EAFNOSUPPORT", 3, 2, 0),
    ("socket vsock high bits", 41, 198, "EAFNOSUPPORT", 40 | 1 << 32, 1, 0),
    ("socket packet high bits", 41, 198, "EAFNOSUPPORT", 17 | 1 << 40, 3, 0),
    ("socket raw", 41, 198, "EPERM", 2, 3, 1),
    ("socketpair inet", 53, 199, "EOPNOTSUPP|EAFNOSUPPORT", 2, 1, 0,
     b"\0" * 8),
])


def connects(family, kind, address):
    try:
        s = socket.socket(family, kind)
    except OSError as e:        # this machine has no such family
        return word(e.errno)
    s.settimeout(3)
    try:
        s.connect(address)
        s.send(b"x")
        return "ok"
    except socket.timeout:
        return "silence"
    except OSError as e:
        return word(e.errno)
    finally:
        s.close()


NO_WAY = "ENETUNREACH|EADDRNOTAVAIL|ECONNREFUSED|EHOSTUNREACH"
NO_WAY6 = NO_WAY + "|EAFNOSUPPORT"


@probe("ECONNREFUSED", "network")
def host_tcp():
    return connects(socket.AF_INET, socket.SOCK_STREAM,
                    ("127.0.0.1", HOST["tcp"]))


@probe(NO_WAY6, "network")
def host_tcp6():
    return connects(socket.AF_INET6, socket.SOCK_STREAM, ("::1", HOST["tcp"]))


@probe("ECONNREFUSED", "network")
def host_abstract_socket():
    return connects(socket.AF_UNIX, socket.SOCK_STREAM,
                    "\0" + HOST["abstract"])


@probe(GONE, "network")
def host_unix_socket():
    return connects(socket.AF_UNIX, socket.SOCK_STREAM, HOST["unix"])


@probe(NO_WAY, "network")
def the_internet():
    return connects(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 443))


@probe(NO_WAY, "network")
def the_internet_by_udp():
    return connects(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53))


@probe(NO_WAY6, "network")
def the_internet6():
    return connects(socket.AF_INET6, socket.SOCK_STREAM,
                    ("2001:db8::1", 443))


@probe(NO_WAY, "network")
def metadata_service():
    return connects(socket.AF_INET, socket.SOCK_STREAM,
                    ("169.254.169.254", 80))


@probe("no answer", "network")
def names():
    try:
        socket.getaddrinfo("example.com", 80)
        return "an answer"
    except OSError:
        return "no answer"


@probe("lo", "network")
def interfaces():
    return " ".join(sorted(line.split(":")[0].strip() for line in
                           read("/proc/net/dev").decode().splitlines()
                           if ":" in line))


@probe("nothing", "network")
def sockets_of_the_host():
    text = read("/proc/net/unix")
    tcp = read("/proc/net/tcp").decode().splitlines()
    if HOST["abstract"].encode() in text:
        return "unix"
    return "nothing" if len(tcp) == 1 else "tcp"


@probe("works", "network")
def own_sockets():
    """What a program may expect: a pair, and localhost within."""
    a, b = socket.socketpair()
    a.send(b"x")
    s = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(s.getsockname())
    return "works" if b.recv(1) == b"x" and c else "broken"

# --- the kernel ------------------------------------------------------------


calls("kernel", [
    ("io_uring_setup", 425, 425, "EPERM", 1, b"\0" * 128),
    ("io_uring_enter", 426, 426, "EPERM", 0, 0, 0, 0, 0),
    ("io_uring_register", 427, 427, "EPERM", 0, 0, 0, 0),
    ("bpf", 321, 280, "EPERM", 0, b"\0" * 128, 128),
    ("perf_event_open", 298, 241, "EPERM", b"\0" * 128, 0, -1, -1, 0),
    ("userfaultfd", 323, 282, "EPERM", 1),
    ("add_key", 248, 217, "EPERM", b"user", b"x", b"x", 1, -2),
    ("request_key", 249, 218, "EPERM", b"user", b"x", 0, 0),
    ("keyctl", 250, 219, "EPERM", 0, -3, 0, 0, 0),
    ("fanotify_init", 300, 262, "EPERM", 0, 0),
    ("init_module", 175, 105, "EPERM", b"x", 1, b""),
    ("finit_module", 313, 273, "EPERM", 0, b"", 0),
    ("delete_module", 176, 106, "EPERM", b"x", 0),
    ("kexec_load", 246, 104, "EPERM", 0, 0, 0, 0),
    ("kexec_file_load", 320, 294, "EPERM", 0, 0, 0, 0, 0),
    ("reboot", 169, 142, "EPERM", 0, 0, 0, 0),
    ("syslog", 103, 116, "EPERM", 3, b"\0" * 64, 64),
    ("sethostname", 170, 161, "EPERM", b"x", 1),
    ("setdomainname", 171, 162, "EPERM", b"x", 1),
    ("settimeofday", 164, 170, "EPERM", 0, 0),
    ("clock_settime", 227, 112, "EPERM", 0, struct.pack("qq", 0, 0)),
    ("adjtimex", 159, 171, "EPERM", b"\0" * 256),
    ("iopl", 172, None, "EPERM|none", 3),
    ("ioperm", 173, None, "EPERM|none", 0, 1, 1),
    ("modify_ldt", 154, None, "EPERM|none", 0, 0, 0),
    ("personality", 135, 92, "EPERM", 0x0400000),
    ("vhangup", 153, 58, "EPERM"),
    ("shmget", 29, 194, "EPERM", 0, 4096, 0o1600),
    ("semget", 64, 190, "EPERM", 0, 1, 0o1600),
    ("msgget", 68, 186, "EPERM", 0, 0o1600),
    ("memfd_secret", 447, 447, "EPERM", 0),
    ("lookup_dcookie", 212, 18, "EPERM", 0, 0, 0),
    ("statmount", 457, 457, "EPERM", 0, 0, 0, 0),
    ("tiocsti", 16, 29, "EPERM", 0, 0x5412, b"x"),
    ("tiocsti_high_bits", 16, 29, "EPERM", 0, 0x5412 | 1 << 32, b"x"),
    ("tiocsti_more_bits", 16, 29, "EPERM", 0, 0x5412 | 7 << 60, b"x"),
    ("tioclinux", 16, 29, "EPERM", 0, 0x541c, b"\3"),
    ("tiocsetd", 16, 29, "EPERM", 0, 0x5423, b"\0\0\0\0"),
    ("mq_open", 240, 180, "EMFILE|ENOSPC|EPERM", b"x", 0o102, 0o600, 0),
])


def write_proc(path, text=b"|/work/main.py"):
    def f():
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, text)
        finally:
            os.close(fd)
    return attempt(f)


for path in ("sys/kernel/core_pattern", "sys/kernel/hostname",
             "sys/kernel/modprobe", "sys/vm/overcommit_memory",
             "sys/fs/binfmt_misc/register", "sys/net/ipv4/ip_forward",
             "sys/user/max_user_namespaces", "sysrq-trigger", "irq",
             "1/uid_map", "1/setgroups"):
    def write_one(path=path):
        return write_proc("/proc/" + path)
    write_one.__name__ = "write /proc/" + path
    probe(SEALED + "|ENOENT|EISDIR", "kernel")(write_one)

for path in ("cmdline", "kallsyms", "kcore", "keys", "key-users", "modules",
             "timer_list", "interrupts", "kmsg", "vmallocinfo"):
    def read_one(path=path):
        text = read("/proc/" + path)
        return text if isinstance(text, str) else (
            "empty" if not text else "text")
    read_one.__name__ = "read /proc/" + path
    probe("empty|ENOENT|EACCES|EPERM", "kernel")(read_one)


def machine_code(code):
    def f():
        m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE
                      | mmap.PROT_EXEC)
        m.write(code)
        at = ctypes.addressof(ctypes.c_char.from_buffer(m))
        return abs(ctypes.CFUNCTYPE(ctypes.c_int)(at)()) & 0x7f
    return in_child(f)


@probe("signal 31|none", "kernel")
def calls_of_32_bits():
    """mov $20, %eax; int $0x80; ret: getpid of another architecture."""
    return "none" if ARM else machine_code(b"\xb8\x14\0\0\0\xcd\x80\xc3")


@probe("signal 31|none", "kernel")
def calls_of_x32():
    return "none" if ARM else in_child(
        lambda: libc.syscall(ctypes.c_long(0x40000000 | 39)) & 0x7f)


@probe("works", "kernel")
def what_programs_need():
    """Threads, processes, pipes, a temp file, a memory map, the clock."""
    import subprocess
    import tempfile
    import threading
    import time
    t = threading.Thread(target=time.sleep, args=(0,))
    t.start()
    t.join()
    out = subprocess.run([sys.executable, "-c", "print(6*7)"],
                         capture_output=True, check=True).stdout
    with tempfile.TemporaryFile() as f:
        f.write(b"x")
    import multiprocessing
    with multiprocessing.Pool(2) as p:
        squares = p.map(abs, [-1, -2])
    return "works" if out == b"42\n" and squares == [1, 2] else "broken"

# --- what came with us -----------------------------------------------------


@probe("AIRLOX_OUT HOME LANG MPLBACKEND PATH PWD TMPDIR", "environment")
def variables():
    return " ".join(sorted(os.environ))


@probe("0 1 2", "environment")
def descriptors():
    found = []
    for n in range(1024):
        try:
            fcntl.fcntl(n, fcntl.F_GETFD)
            found.append(n)
        except OSError:
            pass
    return " ".join(map(str, found))


@probe("/dev/null pipe pipe", "environment")
def what_they_are():
    names = [os.readlink(f"/proc/self/fd/{n}") for n in range(3)]
    return " ".join(n.split(":")[0] for n in names)


@probe("ENOTTY", "environment")
def terminal():
    return attempt(os.tcgetpgrp, 0)


@probe("own", "environment")
def session_of_processes():
    return "own" if os.getsid(0) in (1, 2, os.getpid()) else "another"


@probe("/work", "environment")
def directory():
    return os.getcwd()


@probe("host.json main.py", "environment")
def work_holds():
    return " ".join(sorted(n for n in os.listdir("/work")
                           if n not in ("__pycache__", "big")))


# The last: what is left in out/ must not travel.
@probe("made", "out")
def traps_in_out():
    out = os.environ["AIRLOX_OUT"]
    os.symlink("/etc/passwd", out + "/link")
    os.symlink(HOST["file"], out + "/host-link")
    os.symlink("/", out + "/dir-link")
    os.mkfifo(out + "/fifo")
    s = socket.socket(socket.AF_UNIX)
    s.bind(out + "/socket")
    with open(out + "/honest.txt", "w") as f:
        f.write("honest")
    with open(out + "/setuid", "w") as f:
        f.write("#!x")
    os.chmod(out + "/setuid", 0o6755)
    return "made"


def main():
    with open("host.json", encoding="utf-8") as f:
        HOST.update(json.load(f))
    for group, name, _, f in PROBES:
        try:
            got = f()
        except Exception as e:
            got = f"{type(e).__name__}: {e}"
        print(json.dumps([group, name, got]))


if __name__ == "__main__":
    main()
