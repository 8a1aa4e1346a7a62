#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 170
"""How long a job takes to begin, and from its submission to its result."""
import http.client
import json
import os
import shutil
import subprocess
import threading
import time

import bench
from bench import BUILD, T, lib, median, ms, row

ROUNDS, EACH = 4, 6
FIRST_LINE = "import time; print(time.monotonic())\n"
BWRAP = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session",
         "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
         "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
         "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir",
         "/tmp", "--clearenv"]


LIVE = """import time
for i in range(20):
    print(time.monotonic(), flush=True)
    time.sleep(.02 * (i * 7 % 20))
"""


class Given(threading.Thread):
    """When the relay told everybody that a job had gone to a runner: all that
    follows, from fetching it to its sandbox, is what there is to be quick
    at."""

    def __init__(self, url, invite):
        super().__init__(daemon=True)
        sid = invite.split("/s/")[1].split("#")[0]
        with open(f"{T}/peers/alice/.cache/airlox/{sid}/identity-sender.json",
                  encoding="utf-8") as f:
            token = json.load(f)["token"]
        self.times = []
        conn = http.client.HTTPConnection(url.split("//")[1])
        conn.request("GET", f"/v1/sessions/{sid}/stream",
                     headers={"Authorization": "Bearer " + token})
        self.answer = conn.getresponse()
        self.start()

    def run(self):
        for line in self.answer:
            if line.startswith(b"data:") and b'"state":"assigned"' in line:
                self.times.append(time.monotonic())


def runtime():
    done = subprocess.run(["/usr/bin/python3", "-c", "import sys; print("
                           "'python%d.%d' % sys.version_info[:2])"],
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def session(url):
    done = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay", url,
                       "--json", "--execute", "--no-approval", "--runtime",
                       runtime())
    return json.loads(done.stdout)["invites"]


def start_runner(invite):
    child = subprocess.Popen(
        [BUILD + "/airlox-runner", "join", "--name", "box", "-"],
        env=lib.peer_environ("box"), stdin=subprocess.PIPE, text=True,
        stdout=open(T + "/box.log", "wb"), stderr=subprocess.STDOUT)
    child.stdin.write(invite + "\n")
    child.stdin.close()

    def end():
        child.terminate()
        child.wait(30)
    lib.atexit.register(end)


def submit(mount, code):
    """One job through the mount: seconds to its result, and its stdout."""
    began = time.monotonic()
    with open(mount.path("jobs/new"), "w") as f:
        f.write(code)
    where = mount.path("jobs/last")
    with open(where + "/wait") as f:
        status = f.read()
    with open(where + "/result.json") as f:
        result = json.load(f)
    took = time.monotonic() - began
    if result["exit_code"] != 0:
        raise lib.Failed(f"the job: {status} {result}")
    return took, result["stdout"]


def begin_ours(mount, given):
    found = []
    for _ in range(EACH):
        n = len(given.times)
        line = float(submit(mount, FIRST_LINE)[1])
        lib.wait_for(lambda: len(given.times) > n, "it was given")
        found.append(line - given.times[n])
    return found


def live(mount):
    """From print to where it can be read, of lines at uneven times."""
    with open(mount.path("jobs/new"), "w") as f:
        f.write(LIVE)
    path, found, text = mount.path("jobs/last/stdout"), [], ""
    while len(found) < 20:
        with open(path) as f:
            text = f.read()
        now = time.monotonic()
        lines = text.split("\n")[:-1]
        found += [now - float(line) for line in lines[len(found):]]
        time.sleep(.001)
    mount.read("jobs/last/wait")
    return found


def begin_by_hand():
    found = []
    for _ in range(EACH):
        began = time.monotonic()
        done = subprocess.run(
            BWRAP + ["/usr/bin/" + runtime(), "-c", FIRST_LINE],
            stdout=subprocess.PIPE, text=True, check=True)
        found.append(float(done.stdout) - began)
    return found


def flat(lists):
    return [x for one in lists for x in one]


def trips_of(sdk):
    sdk.tell(f"jobs {EACH}")
    return sdk.numbers(EACH)


def main():
    if not shutil.which("bwrap") or not os.path.exists(
            BUILD + "/airlox-runner"):
        lib.skip("no bwrap, or no airlox-runner")
    relay = bench.relay()
    invites = session(relay.url)
    alice = lib.Mount("alice", invites["sender"])
    start_runner(invites["runner"])
    lib.wait_for(lambda: [n for n in os.listdir(alice.path("runners"))
                          if "idle" in alice.read(f"runners/{n}/state")
                          .decode()], "an idle runner", 30)
    given = Given(relay.url, invites["sender"])
    ours, hand = map(flat, bench.in_turns(
        ROUNDS, lambda: begin_ours(alice, given), begin_by_hand))
    row("job: given to its first line of Python, p50", ms(median(ours)),
        ms(median(hand)), "bwrap and python by hand",
        median(ours) / median(hand), "<= 1.3x", "1.1x")
    lines = live(alice)
    row("job: print to the submitter's stdout, longest of 20 "
        f"(p50 {ms(median(lines))})", ms(max(lines)), ms(0.3),
        "300 ms; frames go four a second", max(lines) / 0.3, "<= 1x", "")
    theirs = session(relay.url)
    sdk = bench.Sdk("jobs", theirs["sender"] + " " + theirs["runner"])
    trips, polled = map(flat, bench.in_turns(
        ROUNDS, lambda: [submit(alice, "print(1)\n")[0]
                         for _ in range(EACH)], lambda: trips_of(sdk)))
    row("job: print(1), submission to result file, p50", ms(median(trips)),
        ms(median(polled)), "published runner, SDK polling at 10 ms",
        median(trips) / median(polled), "<= 0.6x", "0.45x")


bench.main(main)
