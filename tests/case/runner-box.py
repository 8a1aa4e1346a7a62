#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: a job of airlox-runner stays within its limits and nothing of it stays
behind: time (J1), memory, processes, disk (J2), output (J3), the runner killed
(J4), orphans (J5), a host that forbids sandboxes (J8).  On a plain directory of
a queue's shape, as root and as a user, with control groups and without."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = os.environ["TOP"]
sys.path.insert(0, TOP + "/tests")
sys.dont_write_bytecode = True
import runner_queue as rq  # noqa: E402
from runner_queue import ok  # noqa: E402

T, SOAK = os.environ["T"], bool(os.environ.get("SOAK"))
RUNNER = rq.BUILD + "/airlox-runner"
ROOT = os.geteuid() == 0


def marked(mark):
    """Processes of this host that have it in their arguments."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                if mark.encode() in f.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return [p for p in found if p != os.getpid()]


def groups(pid):
    """Those of one runner: other tests have theirs."""
    return glob.glob(f"/sys/fs/cgroup/**/airlox-runner.*.{pid}.*",
                     recursive=True)


def keepers(q):
    with open(f"/proc/{q.process.pid}/task/{q.process.pid}/children") as f:
        return f.read().split()


STUBBORN = """
import os, signal, sys, time
for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(n, signal.SIG_IGN)
for i in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c",
                "import time\\nwhile True: print('still', flush=True);"
                " time.sleep(.01)", "MARK"])
        os._exit(0)
while True:
    time.sleep(1)
"""


def check_time(q):
    mark = "airlox-mark-" + os.urandom(6).hex()
    job = q.run(STUBBORN.replace("MARK", mark), timeout_s=1)
    left = marked(mark)
    ok(job.end == "timed_out" and not left and "still" in job.out,
       f"J1: {job.end}, {job.reason}; left: {left}")
    wall = int(re.findall(r"timed_out: .*; (\d+) ms", q.said())[-1])
    ok(wall < 2000 * rq.SLOW, f"J1: gone {wall} ms after its start")


def check_memory(q):
    job = q.run("a = []\nwhile True: a.append(bytearray(4 << 20))",
                memory_mb=64)
    ok(job.end == "failed" and "out of memory: it may use 64 MB"
       in job.reason, f"J2: memory: {job.end}, {job.reason}")
    for where in ("/tmp", "/dev/shm"):
        job = q.run(f"f = open('{where}/x', 'wb')\n"
                    "while True: f.write(bytes(1 << 20))", memory_mb=64)
        ok((job.end == "done" and "No space left" in job.err) or
           "out of memory" in job.reason,
           f"J2: {where}: {job.end}, {job.reason} {job.err[-60:].strip()}")
    # What is shared after a fork is not used twice.
    job = q.run("import os, time\na = bytearray(40 << 20)\n"
                "for i in range(4):\n"
                "    if os.fork() == 0:\n        time.sleep(.4); os._exit(0)\n"
                "for i in range(4): os.wait()\nprint('fine')", memory_mb=96)
    ok(job.out == "fine\n" and job.end == "done",
       f"shared memory counts once: {job.end} {job.reason}")


def check_processes(q):
    job = q.run("import os, time\nwhile True:\n"
                "    try: os.fork()\n    except OSError: time.sleep(.1)",
                timeout_s=2, memory_mb=2048)
    ok(job.end == "timed_out" and "limit of 64 processes" in job.reason,
       f"J2: a fork bomb: {job.end}, {job.reason}")
    job = q.run("import threading, time\nn = 0\ntry:\n"
                "    while True:\n"
                "        threading.Thread(target=time.sleep, args=(9,),"
                " daemon=True).start(); n += 1\n"
                "except RuntimeError: time.sleep(.3); print(n)",
                memory_mb=1024)
    ok(job.end == "done" and 30 < int(job.out or 0) < 64,
       f"J2: a thread bomb: {job.out.strip()} threads; {job.reason}")
    job = q.run("import time\na = []\ntry:\n"
                "    while True: a.append(open('/dev/null'))\n"
                "except OSError as e: print(e); time.sleep(.4)")
    ok("Too many open files" in job.out and "open files" in job.reason,
       f"J2: descriptors: {job.reason} {job.out} {job.err[-99:]}")


def check_disk(q):
    job = q.run("import time\nn = 0\nwhile True:\n    n += 1\n"
                "    open('/out/%d' % n, 'wb').write(bytes(1 << 20))")
    ok(job.end == "failed" and "out of disk: it may write 64 MB"
       in job.reason, f"J2: disk: {job.end}, {job.reason}")
    # It may be a hundredth before the end of its tick; never the disk.
    job = q.run("import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')")
    ok(job.end in ("failed", "done") and
       ("out of disk" in job.reason or "out of memory" in job.reason
        or "File name too long" in job.err),
       f"J2: depth: {job.end}, {job.reason}")
    job = q.run("f = open('/out/s', 'wb')\nf.truncate(200 << 20)\nprint(1)")
    ok(job.end == "done" and "s (too large)" in job.reason,
       f"a hole in out/: {job.reason}")


def check_output(q):
    size = (5 << 30) if SOAK else (200 << 20)
    job = q.submit("import os, sys\nos.write(1, b'HEAD\\n')\n"
                   f"b = b'x' * (1 << 16)\nfor i in range({size >> 16}):\n"
                   "    os.write(1, b)\nos.write(1, b'TAIL\\n')\n"
                   "sys.stderr.write('REASON\\n')",
                   timeout_s=600)
    # A plain directory keeps all of it: the space is given back.
    path = job.path + "/stdout"
    while not job.end:
        if os.path.exists(path) and os.stat(path).st_blocks > 64 << 11:
            subprocess.run(["fallocate", "-p", "-l", "%d" % (
                os.path.getsize(path) - 4096), path], check=True)
        time.sleep(0.01)
    with open(f"/proc/{q.process.pid}/status") as f:
        rss = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])
    with open(path, "rb") as f:
        f.seek(-5, 2)
        tail = f.read()
    ok(job.end == "done" and tail == b"TAIL\n" and
       job.err == "REASON\n", f"J3: {size >> 20} MiB printed")
    ok(rss < 30000 * rq.SLOW * rq.SLOW, f"J3: the runner has {rss} kB")


def check_kill(q, title):
    """kill -9 of the runner: nothing of the job after two seconds."""
    mark = "airlox-mark-" + os.urandom(6).hex()
    job = q.submit(STUBBORN.replace("MARK", mark))
    ok(rq.wait_until(lambda: "still" in job.out), f"{title}: it runs")
    ok(marked(mark), f"{title}: and is seen")
    pid = q.process.pid
    before = groups(pid)
    q.stop(signal.SIGKILL)
    ok(rq.wait_until(lambda: not marked(mark) and not os.listdir(q.scratch),
                     2), f"{title}: J4: no process, no scratch; "
       f"{marked(mark)} {os.listdir(q.scratch)}")
    gone = rq.wait_until(lambda: not set(groups(pid)) & set(before), 5)
    ok(gone, f"{title}: J4: no control group of {len(before)}")
    ok(job.verbs == ["claim"], f"{title}: J4: it was claimed once")
    shutil.rmtree(job.path)
    q.start()


def check_kill_upload(q):
    """The same while what it left is collected."""
    job = q.submit("for i in range(600):\n"
                   "    open('/out/%d' % i, 'w').write('x' * 9000)")
    ok(rq.wait_until(lambda: os.listdir(job.path + "/out")), "it uploads")
    q.stop(signal.SIGKILL)
    ok(rq.wait_until(lambda: not os.listdir(q.scratch), 2),
       f"J4: nothing in scratch: {os.listdir(q.scratch)}")
    ok(job.verbs in (["claim"], ["claim", "done"]), f"J4: {job.verbs}")
    shutil.rmtree(job.path)
    q.start()


def check_keeper(q):
    """The keeper killed instead: the job dies with it, and fails."""
    mark = "airlox-mark-" + os.urandom(6).hex()
    job = q.submit(STUBBORN.replace("MARK", mark))
    ok(rq.wait_until(lambda: "still" in job.out), "it runs")
    for pid in keepers(q):
        os.kill(int(pid), signal.SIGKILL)
    job.wait()
    ok(job.end == "failed" and rq.wait_until(
        lambda: not marked(mark) and not os.listdir(q.scratch), 5),
       f"the keeper killed: {job.end}, {job.reason}")
    ok(q.run("print(1)").out == "1\n", "and the next job runs")


def check_words(q):
    job = q.submit("import time\nprint('up')\ntime.sleep(60)")
    rq.wait_until(lambda: job.out)
    start = time.monotonic()
    with open(job.path + "/cancelled", "w") as f:
        f.write("cancelled by its sender\n")
    job.wait()
    ok(job.end == "failed" and job.reason == "cancelled" and
       time.monotonic() - start < 5 * rq.SLOW, f"cancelled: {job.reason}")
    job = q.run("print(1)", network=True)
    ok(job.end == "refuse" and "network" in job.reason and
       job.verbs == ["refuse"], f"network: {job.reason}")
    job = q.run("print(1)", runtime="python3.99")
    ok(job.end == "refuse" and "python3.99" in job.reason,
       f"no such runtime: {job.reason}")
    job = q.run("print(1)", timeout_s=0)
    ok(job.end == "refuse" and "timeout_s" in job.reason,
       f"a bad spec: {job.reason}")
    job = q.submit("open('/out/ran', 'w')", withdrawn=True)
    ok(rq.wait_until(lambda: "not claimed" in q.said()) and
       rq.wait_until(lambda: not os.listdir(q.scratch)) and
       not os.path.exists(job.path + "/stdout"),
       "one that was withdrawn while its sandbox was made never runs")
    job = q.run("import os, sys; os.kill(os.getpid(), 11)")
    ok(job.end == "done" and job.code == 139, f"a signal: {job.code}")
    job = q.run("raise SystemExit(7)")
    ok(job.end == "done" and job.code == 7, f"an exit code: {job.code}")
    job = q.run("print(open('data.txt').read(), end='')\n"
                "open('data.txt', 'a').write('more')",
                inputs={"data.txt": "an input"})
    ok(job.out == "an input" and job.text("work/data.txt") == "an input",
       "an input is a copy")
    job = q.run("print(1)", entry="-x.py", inputs={"-x.py": "print(2)"})
    ok(job.out == "2\n", "a name with a dash is a name")


def check_stop(q):
    """SIGTERM: the job ends failed, and the runner with 0."""
    job = q.submit("import time\nprint('up')\ntime.sleep(60)")
    rq.wait_until(lambda: job.out)
    status = q.stop(signal.SIGTERM)
    ok(status == 0 and job.end == "failed" and "stopped" in job.reason,
       f"SIGTERM: {status}, {job.end}, {job.reason}")
    ok(not os.listdir(q.scratch), "nothing in scratch")


ORPHANS = """
import os, time
for i in range(8):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
print('left')
"""


def check_orphans(q):
    """J5: nothing grows."""
    def seen():
        pid = q.process.pid
        with open(f"/proc/{pid}/statm") as f:
            pages = int(f.read().split()[1])
        return len(os.listdir(f"/proc/{pid}/fd")), pages

    def run():
        job = q.run(ORPHANS)
        ok(job.out == "left\n", f"orphans: {job.end} {job.reason}")
        shutil.rmtree(job.path)
    for _ in range(3):
        run()
    before = seen()
    for _ in range(500 if SOAK else 12):
        run()
    rq.wait_until(lambda: not keepers(q))
    after = seen()
    more = 200 if rq.SLOW == 1 else 20000   # a sanitizer keeps what is freed
    ok(after[0] <= before[0] and after[1] < before[1] + more,
       f"J5: descriptors and pages {before}, then {after}")
    ok(not keepers(q) and not os.listdir(q.scratch), "J5: no child, no zombie")
    ok(not groups(q.process.pid), "J5: no control group")


def check_alone(q):
    done = subprocess.run([RUNNER, "--scratch", q.scratch, q.top],
                          capture_output=True, text=True, check=False)
    ok(done.returncode == 11 and "another" in done.stderr,
       f"one runner a queue: {done.stderr.strip()}")


def check_sweep(where):
    """What a runner left that was killed with its keeper, the next takes."""
    old = where.scratch + "/airlox-runner.abcdef"
    os.makedirs(old + "/work/x")
    open(old + "/lock", "w").close()
    if where.uid:
        for path in (old, old + "/work", old + "/work/x", old + "/lock"):
            os.chown(path, where.uid, where.uid)
    where.start()
    ok(rq.wait_until(lambda: not os.path.exists(old)), "scratch is swept")


FORBIDDEN = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
r, w = os.pipe()
back_r, back_w = os.pipe()
pid = os.fork()
if pid == 0:
    if libc.unshare(0x10000000):
        os._exit(99)
    os.write(back_w, b"x")
    os.read(r, 1)
    with open("/proc/sys/user/max_user_namespaces", "w") as f:
        f.write("0")
    os.setresgid(1234, 1234, 1234)
    os.setresuid(1234, 1234, 1234)
    os.execv(sys.argv[1], sys.argv[1:])
os.read(back_r, 1)
for name in ("uid_map", "gid_map"):
    with open(f"/proc/{pid}/{name}", "w") as f:
        f.write("0 0 1\\n1234 1234 1\\n")
os.write(w, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def check_forbidden():
    """J8, where root can make a place without user namespaces."""
    where = "/var/tmp"
    bare = [sys.executable, "-c", FORBIDDEN, RUNNER]
    done = subprocess.run([*bare, "--version"], capture_output=True,
                          check=False)
    if done.returncode:
        print("# J8 not tried: " + done.stderr.decode()[-200:])
        return
    for argv in (["check", "--scratch", where], ["--scratch", where, "/tmp"]):
        done = subprocess.run([*bare, *argv], capture_output=True, text=True,
                              check=False)
        said = done.stdout + done.stderr
        ok(done.returncode == 77 and "user namespaces" in said and
           "sysctl -w user.max_user_namespaces" in said and
           "never run unsandboxed" in said and " or use " in said,
           f"J8: {done.returncode} {said.strip()[-300:]}")


def check_check():
    done = subprocess.run([RUNNER, "check", "--json"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        print("skipped: no sandbox here: " + done.stdout)
        sys.exit(77)
    says = json.loads(done.stdout)
    ok(says["ok"] is True and says["sandbox"] == "works" and
       says["seccomp"] == "yes", f"check: {says}")
    ok(("cgroup" in says["limits"]) == bool(
        says["limits"].startswith("cgroup")), says["limits"])
    if ROOT:
        bad = subprocess.run([RUNNER, "check", "--job-user", "root"],
                             capture_output=True, text=True, check=False)
        ok(bad.returncode == 64 and "root" in bad.stdout + bad.stderr,
           "no job runs as root")


def limits(title, flags, uid, groups=None):
    where = "/tmp" if uid else T
    q = rq.Queue(where, "--tasks", "64", "--disk", "64", *flags, uid=uid,
                 groups=groups)
    print(f"# {title}: {q.said().strip()}")
    ok(not groups or "limits by cgroup" in q.said(), f"{title}: its own")
    check_memory(q)
    check_processes(q)
    check_time(q)
    check_kill(q, title)
    ok(not q.close(), f"{title}: nothing left")


def main():
    if not shutil.which("bwrap"):
        print("skipped: no bubblewrap")
        sys.exit(77)
    check_check()
    q = rq.Queue(T, "--disk", "64", run=False)
    check_sweep(q)
    check_words(q)
    check_disk(q)
    check_output(q)
    check_orphans(q)
    check_kill_upload(q)
    check_keeper(q)
    check_alone(q)
    check_stop(q)
    q.close()
    limits("this user", [], None)
    limits("without control groups", ["--no-cgroups"], None)
    if ROOT:
        limits("a user", [], 1234)
        groups = rq.Groups(1234)
        if groups.dirs:
            limits("a user with control groups", [], 1234, groups)
        ok(not groups.end(), "nothing left in its control groups")
        check_forbidden()


main()
