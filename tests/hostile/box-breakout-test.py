#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: breakout.py gets nowhere in a sealed box either, nor does what it could
try by way of the broker: as root and as an ordinary user."""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import breakout                                       # noqa: E402
import breakout_egress                                # noqa: E402
import runner_queue as rq                             # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
bad = 0


def check(held, words):
    global bad
    if not held:
        bad += 1
        print("FAILED: " + words)


def host_things(uid):
    spec = importlib.util.spec_from_file_location(
        "of_jobs", HERE + "/breakout-test.py")
    of_jobs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(of_jobs)
    return of_jobs.host_things(uid)


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def run(title, uid):
    things, clean = host_things(uid)
    where = tempfile.mkdtemp(dir="/tmp")
    work = where + "/p"
    os.mkdir(work)
    os.mkdir(where + "/scratch")
    things.update(memory_bytes=2 << 30, scratch=where + "/scratch")
    for name in ("breakout.py", "breakout_egress.py"):
        shutil.copy(f"{HERE}/{name}", work)
    with open(work + "/host.json", "w", encoding="utf-8") as f:
        json.dump(things, f)
    with open(where + "/policy.yaml", "w", encoding="utf-8") as f:
        f.write(f"allow:\n  - allowed.test\nfiles:\n  - {{path: {work}, "
                "at: /work, mode: copy}\nlimits: {time: 60s, memory: 2 GiB, "
                "processes: 128}\n")
    os.chmod(where, 0o755)
    if uid is not None:
        for path in (where, where + "/scratch"):
            os.chown(path, uid, uid)
    env = dict(os.environ, HOME=where, XDG_STATE_HOME=where + "/state",
               MARK=things["marks"][0])
    done = subprocess.run(
        [rq.BUILD + "/airlox-box", "run", where + "/policy.yaml", "--egress",
         where + "/egress", "--scratch", where + "/scratch", "--no-record",
         "--", "sh", "-c", "mkdir /tmp/out; AIRLOX_OUT=/tmp/out exec "
         "/usr/bin/python3 -B breakout_egress.py"], env=env, cwd=where,
        preexec_fn=(lambda: become(uid)) if uid is not None else None,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    clean()
    check(done.returncode == 0, f"{title}: exit {done.returncode}: "
          + done.stderr[-500:])
    got = {}
    for line in done.stdout.splitlines():
        _, name, outcome = json.loads(line)
        got[name] = outcome
    for group, name, expect, _ in breakout.PROBES:
        expect = breakout_egress.OTHERWISE.get(name, expect)
        outcome = got.pop(name, "not reached")
        check(isinstance(outcome, str) and re.fullmatch(expect, outcome),
              f"{title}: {group}: {name}: {str(outcome)[:200]!r}, not "
              f"{expect}")
    check(not got, f"{title}: unknown {got}")
    with open(where + "/egress", encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    words = {x["decision"] for x in lines}
    check("allowed" not in words and len(lines) >= 15,
          f"{title}: {len(lines)} lines, {words}")
    left = os.listdir(where + "/scratch")
    check(not left, f"{title}: scratch has {left}")
    shutil.rmtree(where)
    print(f"ok - {title}: {len(breakout.PROBES)} probes, {len(lines)} denials")


def main():
    if not shutil.which("bwrap"):
        print("no bwrap")
        sys.exit(77)
    if os.geteuid() == 0:
        run("root", None)
        run("a user", NOBODY)
    else:
        run("this user", None)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
