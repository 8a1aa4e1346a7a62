# SPDX-License-Identifier: MIT
"""What the rows in Python share: rounds, medians, rows, other programs."""
import ctypes
import os
import re
import select
import statistics
import struct
import subprocess
import sys
import time

TOP, T, BUILD = os.environ["TOP"], os.environ["T"], os.environ["BUILD"]
sys.path.insert(0, TOP + "/tests")
import lib  # noqa: E402

median = statistics.median


def tool(name, *words):
    """What a program of tests/bench measured: numbers, in seconds."""
    done = subprocess.run(
        [f"{BUILD}/tests/bench/{name}", *map(str, words)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode:
        raise lib.Failed(f"{name}: {done.stderr.strip()[-300:]}")
    return [float(line) / 1e6 for line in done.stdout.split()]


def in_turns(rounds, *measures):
    """Each in each round, so that all see the same machine; the first round
    warms up.  A list of results for each."""
    results = [[] for _ in measures]
    for i in range(rounds + 1):
        for measure, found in zip(measures, results):
            value = measure()
            if i:
                found.append(value)
    return results


def seconds(f):
    began = time.monotonic()
    f()
    return time.monotonic() - began


def row(what, ours, anchor, which, ratio, goal, stretch):
    print(f"{what} | {ours} | {anchor} ({which}) | "
          f"{ratio if isinstance(ratio, str) else format(ratio, '.2f') + 'x'}"
          f" | {goal} | {stretch}", flush=True)


def note(text):
    print("# " + text, flush=True)


def ms(s):
    return f"{s * 1e3:.2f} ms"


def relay(**kw):
    return lib.Relay("--max-item-bytes", str(300 << 20),
                     "--max-session-bytes", str(8 << 30),
                     "--max-items", "100000", **kw)


def session(url):
    """The invites of a new session."""
    done = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay", url,
                       "--json", "--max-item-mb", "200")
    return lib.json.loads(done.stdout)["invites"]


def two_mounts(url):
    invites = session(url)
    return (lib.Mount("alice", invites["owner"]),
            lib.Mount("bob", invites["sender"]), invites)


def pid_of(mount):
    done = subprocess.run([sys.executable, TOP + "/tests/lib.py", "daemon",
                           mount.dir], stdout=subprocess.PIPE, text=True)
    return int(done.stdout)


def memory_kb(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{field}:\s*(\d+)", f.read(), re.M)[1])


def venv(name, *packages):
    """A virtual environment with these; None where it cannot be had."""
    where, log = f"{TOP}/build/venv-{name}", f"{T}/venv.log"
    if not os.path.exists(where + "/.ready"):
        with open(log, "wb") as out:
            for words in ([sys.executable, "-m", "venv", "--clear", where],
                          [where + "/bin/pip", "install", "--no-input", "-q",
                           *packages]):
                if subprocess.run(words, stdout=out,
                                  stderr=subprocess.STDOUT).returncode:
                    return None
        open(where + "/.ready", "w").close()
    return where


class Watch:
    """Names in a directory as they are closed after writing: inotify."""
    CLOSE_WRITE = 8

    def __init__(self, where):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(
                self.fd, where.encode(), self.CLOSE_WRITE) < 0:
            raise lib.Failed("inotify: " + os.strerror(ctypes.get_errno()))

    def next(self, seconds=60):
        if not select.select([self.fd], [], [], seconds)[0]:
            raise lib.Failed(f"nothing came within {seconds} s")
        event = os.read(self.fd, 4096)
        length, = struct.unpack_from("I", event, 12)
        return event[16:16 + length].rstrip(b"\0").decode()


class Sdk:
    """sdk.py, which sends or streams."""

    def __init__(self, what, invite):
        self.child = subprocess.Popen(
            [sys.executable, TOP + "/tests/bench/sdk.py", what], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=T,
            env=dict(os.environ, PYTHONPATH=TOP + "/tests/interop"))
        lib.atexit.register(self.end)
        self.tell(invite)
        first = self.child.stdout.readline().strip()
        if first != "ready":
            raise lib.Failed(f"the published SDK: {first}")

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def numbers(self, count=1):
        return [float(self.child.stdout.readline()) for _ in range(count)]

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            self.child.wait(10)


def main(measure):
    lib.steps = 1		# nothing is asserted here
    lib.run_main(measure)
