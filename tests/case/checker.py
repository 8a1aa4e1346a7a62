#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: whatever becomes of the child that looks into an archive, the mount
goes on.  While it stands still a dozen programs ask for the state of the file
that is sealed, and each has its answer; a child that is killed, as seccomp
kills it, refuses that file with a sentence, and nothing else."""
import errno
import os
import signal
import subprocess
import sys
import threading
import zipfile

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402

CHILD = b"--check-child"


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found += f.read().split()
        except OSError:
            pass
    return found


def checkers(pid):
    found = []
    for child in children(pid):
        try:
            with open(f"/proc/{child}/cmdline", "rb") as f:
                if CHILD in f.read():
                    found.append(int(child))
        except OSError:
            pass
    return found


def checker(pid, sig):
    """The first checker of this daemon gets a signal."""
    while True:
        for child in checkers(pid):
            os.kill(child, sig)
            return child


def catch(pid, sig, work):
    """Does work() while the checker is waited for; its pid."""
    got = []
    t = threading.Thread(target=lambda: got.append(checker(pid, sig)),
                         daemon=True)
    t.start()
    work()
    t.join(30 * lib.SLOW)
    if not got:
        raise lib.Failed("no checker was seen")
    return got[0]


def put(m, name, data, answers):
    def write():
        try:
            fd = os.open(m.path("out/" + name),
                         os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
            answers.append(0)
        except OSError as e:
            answers.append(e.errno)
    t = threading.Thread(target=write, daemon=True)
    t.start()
    return t


def make_zip(path):
    """Enough for its checker to be met at work."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(40):
            z.writestr(f"f{i}", os.urandom(200000) + bytes(4 << 20))
    with open(path, "rb") as f:
        return f.read()


def standing(m, pid, data):
    answers, threads = [], []
    child = catch(pid, signal.SIGSTOP, lambda: threads.append(
        put(m, "big.zip", data, answers)))
    path = m.path("out/big.zip")
    seen = []

    def ask():
        os.stat(path)
        seen.append((lib.attr(path, "state"), os.listdir(m.path("out")),
                     os.listxattr(path)))
    askers = [threading.Thread(target=ask, daemon=True) for _ in range(12)]
    for t in askers:
        t.start()
    for t in askers:
        t.join(20 * lib.SLOW)
    lib.same(len(seen), 12, "all who asked for its state have an answer")
    with open(path, "rb") as f:
        lib.same(f.read(4), b"PK\3\4", "it can be read")
    os.chmod(path, 0o600)
    m.send("beside.md", b"# beside\n")
    lib.same(answers, [], "and it is not sent yet")
    os.kill(child, signal.SIGCONT)
    threads[0].join(60 * lib.SLOW)
    lib.same(answers, [0], "it is sent when its checker goes on")
    lib.same(lib.attr(path, "state"), "sent", "its state")


def killed(m, pid, data, sig):
    answers, threads = [], []
    name = f"k{int(sig)}.zip"
    catch(pid, sig, lambda: threads.append(put(m, name, data, answers)))
    threads[0].join(60 * lib.SLOW)
    lib.same(answers, [errno.EBADMSG], f"a checker killed by {sig.name}")
    why = lib.attr(m.path("out/" + name), "error")
    if f"signal {int(sig)}" not in why:
        raise lib.Failed(f"its sentence: {why!r}")
    lib.same(lib.attr(m.path("out/" + name), "state"), "failed", "its state")
    with open(m.path("ctl"), "w") as f:
        f.write(f"retry {name}\n")
    lib.wait_for(lambda: lib.attr(m.path("out/" + name), "state") == "sent",
                 "retry sends it", 30)


def main():
    relay = lib.Relay()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json")
    link = lib.json.loads(made.stdout)["invites"]["sender"]
    m = lib.Mount("alice", link)
    pid = subprocess.run(
        [sys.executable, lib.TOP + "/tests/lib.py", "daemon", m.dir],
        text=True, stdout=subprocess.PIPE).stdout.strip()
    data = make_zip(lib.T + "/big.zip")
    standing(m, pid, data)
    for sig in (signal.SIGSYS, signal.SIGKILL):
        killed(m, pid, data, sig)
    lib.same(checkers(pid), [], "no checker is left")
    lib.same(m.end(), 0, "umount")


if __name__ == "__main__":
    lib.run_main(main)
