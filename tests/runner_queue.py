# SPDX-License-Identifier: MIT
"""A queue for airlox-runner without a mount: a plain directory of the same
shape (airloxfs(4), queue/), which the runner serves by file operations."""
import atexit
import json
import os
import signal
import subprocess
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


def wait_until(what, seconds=30, step=0.02):
    end = time.monotonic() + seconds * SLOW
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


class Queue:
    """As a user other than root, uid owns it all and runs the runner."""

    def __init__(self, where, *flags, uid=None, run=True):
        self.uid, self.flags, self.count = uid, list(flags), 0
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

    def submit(self, code, inputs=(), **more):
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
