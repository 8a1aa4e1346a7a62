# SPDX-License-Identifier: MIT
"""A queue for airlox-runner without a mount: a plain directory of the same
shape (airloxfs(4), queue/), which the runner serves by file operations."""
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
SLOW = 1 if BUILD.endswith("build") else 3
ENDS = ("done", "failed", "refuse", "timed_out")
NOBODY = 65534


def runtime():
    for minor in range(20, 7, -1):
        if os.access(f"/usr/bin/python3.{minor}", os.X_OK):
            return f"python3.{minor}"
    return "python3.11"

steps = 0


def ok(held, words):
    global steps
    if not held:
        print("FAILED: " + words)
        sys.exit(1)
    steps += 1
    print(f"ok {steps} - {words}")


def wait_until(what, seconds=30, step=0.02):
    end = time.monotonic() + seconds * SLOW
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


def hierarchies():
    """Where a control group of one's own would be: a directory for each."""
    own, found = {}, []
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        for line in f:
            _, parts, path = line.rstrip("\n").split(":", 2)
            own.update({part: path for part in parts.split(",")})
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    for _, at, kind, options, *_ in mounts:
        if kind == "cgroup":
            found += [at + own[p].rstrip("/") for p in options.split(",")
                      if p in ("memory", "pids", "cpu")]
    for _, at, kind, *_ in mounts:
        if kind == "cgroup2" and not found:
            with open(at + "/cgroup.subtree_control", "w") as f:
                f.write("+memory +pids")
            found.append(at)
    return found


class Groups:
    """Control groups that are a user's, as a service with Delegate=yes has."""

    def __init__(self, uid):
        self.dirs = []
        try:
            for top in hierarchies():
                path = f"{top}/airlox-test.{os.getpid()}"
                os.mkdir(path)
                self.dirs.append(path)
                for name in ("", "cgroup.procs", "cgroup.subtree_control"):
                    if os.path.exists(f"{path}/{name}"):
                        os.chown(f"{path}/{name}", uid, uid)
        except OSError as e:
            print(f"# no control groups to give away: {e}")
            self.end()

    def enter(self):
        """As a service manager does: what the last one left goes first."""
        for path in self.dirs:
            control = path + "/cgroup.subtree_control"
            for name in os.listdir(path):
                if name.endswith("-self"):
                    os.rmdir(f"{path}/{name}")
            if os.path.exists(control):
                with open(control, "w") as f:
                    f.write("-memory -pids -cpu")
            with open(path + "/cgroup.procs", "w") as f:
                f.write("0")

    def end(self):
        """What is in them that should not be."""
        left = []
        for path in self.dirs:
            for name in os.listdir(path):
                if os.path.isdir(f"{path}/{name}"):
                    if not name.endswith("-self"):
                        left.append(name)
                    os.rmdir(f"{path}/{name}")
            os.rmdir(path)
        self.dirs = []
        return left


class Queue:
    """As a user other than root, uid owns it all and runs the runner; with
    groups: in control groups of its own."""

    def __init__(self, where, *flags, uid=None, run=True, groups=None):
        self.uid, self.flags, self.count = uid, list(flags), 0
        self.groups = groups
        self.top = tempfile.mkdtemp(prefix="queue.", dir=where)
        self.scratch = tempfile.mkdtemp(prefix="scratch.", dir="/var/tmp")
        self.cache = self.scratch + "-cache"
        os.mkdir(self.cache)
        self.queue = self.top + "/queue"
        os.mkdir(self.queue)
        self.write(self.queue + "/ready", "")
        os.chmod(self.top, 0o755)
        os.chmod(self.scratch, 0o755)
        os.chmod(self.cache, 0o755)
        if uid:
            for path in (self.top, self.queue, self.scratch, self.cache):
                os.chown(path, uid, uid)
        self.log = self.top + "/log"
        self.process = None
        if run:
            self.start()

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if self.uid:
            os.chown(path, self.uid, self.uid)

    def start(self):
        argv = [BUILD + "/airlox-runner", "--scratch", self.scratch,
                "--cache-dir", self.cache, *self.flags, self.top]
        if self.uid:
            argv = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}",
                    "--clear-groups", *argv]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=self.groups.enter if self.groups else None,
                env={**os.environ, "AIRLOX_TEST_SECRET": "of the host"})
        atexit.register(self.end, self.process)
        if not wait_until(lambda: "serving" in self.said()
                          or self.process.poll() is not None):
            raise SystemExit("the runner does not start: " + self.said())

    @staticmethod
    def end(process):
        """Whatever became of the test."""
        if process.poll() is None:
            process.terminate()
            process.wait(60)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(60)
        return status

    def close(self):
        if self.process and self.process.poll() is None:
            self.stop()
        left = os.listdir(self.scratch)
        subprocess.run(["rm", "-rf", self.scratch, self.cache, self.top],
                       check=True)
        return left

    def submit(self, code, inputs=(), withdrawn=False, **more):
        self.count += 1
        spec = {"created_ms": 1, "entry": "main.py", "job": "j",
                "memory_mb": 512, "network": False,
                "out_max_bytes": 50 << 20, "out_max_files": 1000,
                "packages": [], "requirements": [], "return_out": True,
                "runtime": runtime(), "seq": self.count, "timeout_s": 60}
        spec.update(more)
        name = f"job{self.count:04d}"
        tmp = f"{self.top}/{name}"
        os.makedirs(tmp + "/work")
        os.mkdir(tmp + "/out")
        if withdrawn:               # no claim can be written
            os.mkdir(tmp + "/ctl")
        for path, text in [("main.py", code), *dict(inputs).items()]:
            self.write(f"{tmp}/work/{path}", text)
        self.write(tmp + "/from", "alice sender 0123456789abcdef\n")
        self.write(tmp + "/spec.json", json.dumps(
            spec, sort_keys=True, separators=(",", ":")))
        if self.uid:
            for path in (tmp, tmp + "/work", tmp + "/out"):
                os.chown(path, self.uid, self.uid)
        os.rename(tmp, f"{self.queue}/{name}")
        return Job(f"{self.queue}/{name}", self)

    def run(self, code, **more):
        return self.submit(code, **more).wait()


class Job:
    def __init__(self, path, queue):
        self.path, self.queue = path, queue

    def text(self, name):
        try:
            with open(f"{self.path}/{name}", encoding="utf-8",
                      errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    @property
    def verbs(self):
        return [line.split(" ")[0] for line in self.text("ctl").splitlines()]

    @property
    def end(self):
        ends = [v for v in self.verbs if v in ENDS]
        return ends[-1] if ends else ""

    def wait(self, seconds=90):
        if not wait_until(lambda: self.end, seconds):
            raise SystemExit(f"{self.path} does not end: {self.queue.said()}")
        return self

    @property
    def code(self):
        text = self.text("exit")
        return int(text) if text else None

    @property
    def reason(self):
        return self.text("reason").strip() or self.text("ctl").partition(
            self.end + " ")[2].strip()

    @property
    def out(self):
        return self.text("stdout")

    @property
    def err(self):
        return self.text("stderr")
