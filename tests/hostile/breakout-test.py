#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 300
"""Goal: breakout.py gets nowhere: the outcome of each of its probes is what
stands beside it, with the runner as root and as an ordinary user, with control
groups (where this machine has them) and without."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import runner_queue as rq  # noqa: E402
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import breakout  # noqa: E402

T = os.environ.get("T") or tempfile.mkdtemp()
MEMORY_MB = 256
USER = 1234
bad = 0


def check(held, words):
    global bad
    if not held:
        bad += 1
        print("FAILED: " + words)


def host_things(uid):
    """What a job could find, were it to see the host."""
    mark = "airlox-host-" + os.urandom(6).hex()
    keep = []
    paths = [f"/tmp/{mark}", f"/dev/shm/{mark}"]
    for path in paths:
        with open(path, "w", encoding="utf-8") as f:
            f.write(mark)
        os.chmod(path, 0o666)
    tcp = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0" + mark)
    abstract.listen()
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(paths[0] + ".sock")
    unix.listen()
    sleeper = subprocess.Popen(["sleep", "1000"],
                               env={"MARK": mark}, stdin=subprocess.DEVNULL)
    keep += [tcp, abstract, unix, sleeper]
    things = {"file": paths[0], "shm_file": paths[1], "abstract": mark,
              "unix": paths[0] + ".sock", "tcp": tcp.getsockname()[1],
              "pid": sleeper.pid, "memory_bytes": MEMORY_MB << 20,
              "marks": [mark, "of the host", "/queue."]}

    def clean():
        sleeper.kill()
        sleeper.wait()
        for s in keep[:3]:
            s.close()
        for path in [*paths, paths[0] + ".sock"]:
            os.unlink(path)
    return things, clean


def run(title, flags, uid, groups=None):
    things, clean = host_things(uid)
    q = rq.Queue("/tmp" if uid else T, *flags, uid=uid,
                 groups=groups)
    check(not groups or "limits by cgroup" in q.said(), f"{title}: its own")
    things["scratch"] = q.scratch
    with open(breakout.__file__, encoding="utf-8") as f:
        code = f.read()
    try:
        job = q.run(code, inputs={"host.json": json.dumps(things)},
                    memory_mb=MEMORY_MB, timeout_s=60)
    finally:
        clean()
    got = {}
    for line in job.out.splitlines():
        group, name, outcome = json.loads(line)
        got[name] = outcome
    for group, name, expect, _ in breakout.PROBES:
        outcome = got.pop(name, "not reached")
        check(isinstance(outcome, str) and re.fullmatch(expect, outcome),
              f"{title}: {group}: {name}: {outcome!r}, not {expect}")
    check(not got, f"{title}: unknown {got}")
    check(job.end == "done" and job.code == 0,
          f"{title}: {job.end} {job.code} {job.reason} {job.err}")
    out = sorted(os.listdir(job.path + "/out"))
    check(out == ["honest.txt", "setuid"], f"{title}: out has {out}")
    mode = os.stat(job.path + "/out/setuid").st_mode
    check(not mode & 0o6111, f"{title}: set-id travelled: {mode:o}")
    for name in ("link", "host-link", "dir-link", "fifo", "socket"):
        check(name + " (" in job.reason, f"{title}: {name} is not named")
    left = q.close()
    check(not left, f"{title}: scratch has {left}")
    print(f"ok - {title}: {len(breakout.PROBES)} probes; {q_limits(flags)}")


def q_limits(flags):
    return "rlimits" if flags else "what the host has"


def main():
    if not shutil.which("bwrap"):
        print("no bwrap")
        sys.exit(77)
    done = subprocess.run([rq.BUILD + "/airlox-runner", "check"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print("no sandbox here: " + done.stdout)
        sys.exit(77)
    names = [p[1] for p in breakout.PROBES]
    check(len(names) == len(set(names)) >= 60, "names of the probes")
    if os.geteuid() == 0:
        run("root", [], None)
        run("root, no cgroups", ["--no-cgroups"], None)
        run("a user", [], USER)
        run("a user, no cgroups", ["--no-cgroups"], USER)
        groups = rq.Groups(USER)
        if groups.dirs:
            run("a user with cgroups", [], USER, groups)
        check(not groups.end(), "nothing left in a user's cgroups")
    else:
        run("this user", [], None)
        run("this user, no cgroups", ["--no-cgroups"], None)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
