#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 200
"""Goal: jobs are submitted through a mount while relay, mounts, runner and
sandboxes are killed at random: each job ends in one state, which every later
look agrees with, and none is run twice."""
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                              # noqa: E402
from runner_queue import runtime        # noqa: E402

RUNNER = lib.BUILD + "/airlox-runner"
LOG = lib.T + "/runner.log"
ENDS = ("completed", "failed", "lost", "cancelled", "refused", "timed_out")
BACKLOG = 6
CODE = "import time\nprint('ran')\ntime.sleep(.2)\n"


class Hands:
    """What is killed, and put back."""

    def __init__(self, relay, invites):
        self.relay, self.invites = relay, invites
        self.alice = lib.Mount("alice", invites["sender"])
        self.runner = None
        self.start_runner()

    def start_runner(self):
        self.runner = subprocess.Popen(
            [RUNNER, "join", "--name", "box", "-"], text=True,
            env=lib.peer_environ("box"), stdin=subprocess.PIPE,
            stdout=open(LOG, "ab"), stderr=subprocess.STDOUT)
        self.runner.stdin.write(self.invites["runner"] + "\n")
        self.runner.stdin.close()

    def kill_relay(self):
        self.relay.stop(signal.SIGKILL)
        time.sleep(random.uniform(0, 0.3))
        self.relay.start()

    def kill_mount(self):
        pid = daemon_of(self.alice.dir)
        if pid:
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["fusermount3", "-uz", self.alice.dir],
                       stderr=subprocess.DEVNULL)
        lib.mounted.remove(self.alice)
        self.alice = lib.Mount("alice", self.invites["sender"])

    def kill_runner(self):
        self.runner.kill()
        self.runner.wait()
        lib.wait_for(lambda: not queues(), "its mount is gone", 30)
        self.start_runner()

    def kill_queue(self):
        """Its mount: then it ends, and is started again."""
        for where in lib.wait_for(queues, "it has a mount", 30):
            pid = daemon_of(where)
            if pid:
                os.kill(pid, signal.SIGKILL)
        try:
            self.runner.wait(30 * lib.SLOW)
        except subprocess.TimeoutExpired:
            raise lib.Failed("a runner outlives its mount")
        self.start_runner()

    def kill_sandbox(self):
        for pid in keepers(self.runner.pid):
            os.kill(pid, signal.SIGKILL)

    def end(self):
        self.runner.terminate()
        self.runner.wait(60 * lib.SLOW)


def daemon_of(where):
    done = subprocess.run([sys.executable, lib.__file__, "daemon", where],
                          stdout=subprocess.PIPE, text=True)
    return int(done.stdout) if done.stdout.strip() else None


def queues():
    """Mounts of runners in our own temporary directory."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        at = [line.split()[1] for line in f]
    return [m for m in at if "/airlox-queue." in m and m.startswith(lib.T)]


def keepers(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            kids = [int(p) for p in f.read().split()]
        return [k for k in kids
                if open(f"/proc/{k}/comm").read() == "airlox-keeper\n"]
    except OSError:
        return []


class Submitter(threading.Thread):
    def __init__(self, hands):
        super().__init__(daemon=True)
        self.hands, self.over, self.failed = hands, False, 0

    def run(self):
        while not self.over:
            try:
                if len(open_jobs(self.hands)) < BACKLOG:
                    with open(self.hands.alice.path("jobs/new"), "w") as f:
                        f.write(CODE)
            except OSError:
                self.failed += 1        # killed under its hands
            time.sleep(random.uniform(0.1, 0.5))


def jobs_of(hands):
    """{name: status}"""
    where = hands.alice.path("jobs")
    return {n: hands.alice.read(f"jobs/{n}/status").decode().strip()
            for n in os.listdir(where) if n.isdigit()}


def open_jobs(hands):
    return [n for n, s in jobs_of(hands).items() if not is_over(s)]


def is_over(status):
    return status.split(" ")[0] in ENDS


def main():
    done = subprocess.run([RUNNER, "check"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        lib.skip("no sandbox here: " + done.stdout)
    random.seed(os.environ.get("SEED", os.getpid()))
    relay = lib.Relay("--max-items-minute", "0", "--claim-s", "4",
                      "--runner-silent-s", "5")
    created = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                          relay.url, "--json", "--execute", "--no-approval",
                          "--runtime", runtime())
    hands = Hands(relay, lib.json.loads(created.stdout)["invites"])
    submitter = Submitter(hands)
    submitter.start()
    kinds = [hands.kill_relay, hands.kill_mount, hands.kill_runner,
             hands.kill_queue, hands.kill_sandbox]
    until = time.monotonic() + (60 * int(os.environ.get("SOAK", 0)) or 5)
    kills = 0
    while time.monotonic() < until or kills < len(kinds):
        time.sleep(random.uniform(0.2, 1.2))
        (kinds[kills] if kills < len(kinds) else random.choice(kinds))()
        kills += 1
    submitter.over = True
    submitter.join()
    lib.wait_for(lambda: not open_jobs(hands), "each job has ended", 90)
    first = jobs_of(hands)
    ends = {}
    for status in first.values():
        word = status.split(" ")[0]
        ends[word] = ends.get(word, 0) + 1
    lib.ok(ends.get("completed", 0) > 0,
           f"{kills} kills, {len(first)} jobs ended: {ends}")
    hands.kill_mount()
    then = jobs_of(hands)
    lib.same({n: s for n, s in then.items() if first.get(n) != s}, {},
             "and are that when looked at again")
    hands.end()
    with open(LOG, encoding="utf-8", errors="replace") as f:
        ran = re.findall(r"job (\S{22}): main\.py in", f.read())
    lib.same({j for j in ran if ran.count(j) > 1}, set(),
             f"{len(ran)} were run, none twice")
    lib.same(hands.alice.end(), 0, "unmounted")
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
