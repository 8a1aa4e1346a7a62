#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: a runner's mount beside the published client: any program serves its
jobs with file operations, each job has one result, and none runs twice."""
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Sdk, lib  # noqa: E402

CODE = "print('hello')\n"


class Runner(lib.Mount):
    """A runner's mount, and whoever serves it: this program."""

    def __init__(self, name, invite, *flags):
        self.invite, self.flags = invite, flags
        super().__init__(name, invite, "--name", name, *flags)
        self.ready = None

    def hold(self):
        self.ready = os.open(self.path("queue/ready"), os.O_WRONLY)

    def let_go(self):
        if self.ready is not None:
            os.close(self.ready)
        self.ready = None

    def jobs(self):
        return [n for n in os.listdir(self.path("queue")) if n != "ready"]

    def next(self):
        return Job(self, lib.wait_for(self.jobs, "a job appears")[0])

    def wait_idle(self):
        lib.wait_for(lambda: not self.jobs(), "the queue is empty")

    def kill(self):
        """As if the machine went down."""
        pid = int(subprocess.run(
            [sys.executable, lib.TOP + "/tests/lib.py", "daemon", self.dir],
            stdout=subprocess.PIPE, text=True).stdout)
        os.kill(pid, signal.SIGKILL)
        try:
            self.let_go()
        except OSError:
            self.ready = None
        lib.mounted.remove(self)
        lib.wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "killed")

    def again(self):
        super().__init__(self.name, self.invite, "--name", self.name,
                         *self.flags)


class Job:
    def __init__(self, runner, name):
        self.name, self.dir = name, runner.path("queue/" + name)
        self.spec = json.loads(self.read("spec.json"))

    def read(self, name):
        with open(f"{self.dir}/{name}", "rb") as f:
            return f.read()

    def write(self, name, data, mode="w"):
        with open(f"{self.dir}/{name}", mode) as f:
            f.write(data)

    def tell(self, verb):
        fd = os.open(self.dir + "/ctl", os.O_WRONLY)
        try:
            os.write(fd, verb.encode() + b"\n")
        finally:
            os.close(fd)

    def errno(self, verb):
        try:
            self.tell(verb)
        except OSError as e:
            return os.strerror(e.errno)
        return None

    def finish(self, code=0):
        self.write("exit", f"{code}\n")
        self.tell("done")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def make_zip(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in entries.items():
            z.writestr(name, data)
    return out.getvalue()


def submit(sender, code=CODE, **kw):
    """By name: a runner that has gone is online for half a minute."""
    if "labels" not in kw:
        kw.setdefault("runner", "files")
    return lib.wait_for(lambda: try_submit(sender, code, kw), "a runner")


def try_submit(sender, code, kw):
    try:
        return sender.session.run_python(code, **kw)
    except Exception as e:
        if type(e).__name__ != "NoRunnerAvailable":
            raise
        return None


def wait(job):
    try:
        return job.wait(timeout=30 * lib.SLOW, poll=0.05)
    except Exception as e:
        raise lib.Failed(f"{type(e).__name__}: {e}") from None


def result_of(job, *want):
    r = wait(job)
    lib.same((r.status, r.exit_code, r.reason, r.signed), (*want, True),
             "the result")
    return r


def shell_runner(invites):
    """The runner of twenty lines."""
    runner = Runner("shell", invites["runner"], "--labels", "small,blue")
    sender = Sdk("sender", invites["sender"])
    child = subprocess.Popen([lib.TOP + "/docs/runner.sh", runner.dir],
                             stderr=subprocess.DEVNULL,
                             start_new_session=True)
    lib.atexit.register(lambda: child.poll() is None and
                        os.killpg(child.pid, signal.SIGTERM))
    where = lib.T + "/inputs"
    os.makedirs(where)
    files = {"notes.md": b"# notes\n",
             "data.zip": make_zip({"d/a.txt": b"a" * 5000, "b.csv": b"1,2"})}
    refs = []
    for name, data in files.items():
        with open(f"{where}/{name}", "wb") as f:
            f.write(data)
        refs.append(sender.send_file(f"{where}/{name}"))
    code = """
import os, sys
print(open("notes.md").read(), len(open("d/a.txt").read()), end="")
print("to stderr", file=sys.stderr)
out = os.environ["AIRLOX_OUT"]
os.makedirs(out + "/sub")
open(out + "/sub/x.txt", "w").write("x" * 3000)
open(out + "/p.png", "wb").write(bytes.fromhex("%s"))
sys.exit(3)
""" % lib.make_png().hex()
    job = submit(sender, code, files=refs, labels=["blue"])
    r = result_of(job, "completed", 3, None)
    lib.same((r.stdout, r.stderr), ("# notes\n 5000", "to stderr\n"), "output")
    lib.same(r.code_sha256, sha(code.encode()), "the code's hash")
    blobs = b"".join(sender.session._req("GET", f"/items/{x['id']}/blob")
                     .content for x in refs)
    lib.same(r.input_sha256, sha(blobs), "the inputs' hash")
    lib.same([o.name for o in r.out_files], ["p.png", "out.zip"], "out files")
    with zipfile.ZipFile(io.BytesIO(r.out_file("out.zip").data)) as z:
        lib.same({n: z.read(n) for n in z.namelist()},
                 {"sub/x.txt": b"x" * 3000}, "out.zip")
    r = result_of(submit(sender, runner="shell"), "completed", 0, None)
    lib.same(r.stdout, "hello\n", "once more, by name")
    os.killpg(child.pid, signal.SIGTERM)
    child.wait()
    runner.end()


def verbs(runner, sender):
    job = submit(sender, "import json\n", filename="a b.py", timeout=17)
    j = runner.next()
    lib.same(j.name, job.id, "a job's directory is its id")
    lib.same({k: j.spec[k] for k in ("entry", "timeout_s", "memory_mb",
                                     "runtime", "requirements", "network")},
             {"entry": "a b.py", "timeout_s": 17, "memory_mb": 512,
              "runtime": "python3.11", "requirements": [],
              "network": False}, "spec.json")
    lib.same(j.read("work/a b.py"), b"import json\n", "work/")
    lib.ok(b"name sender\nrole sender\n" in j.read("from"), "from")
    lib.same(j.errno("done"), "Invalid argument", "done before a claim")
    lib.same(j.errno("claim"), None, "claim")
    lib.same(j.errno("claim"), "Stale file handle", "a second claim")
    lib.same(j.errno("done"), "Invalid argument", "done without an exit code")
    lib.same(j.errno("nothing"), "Invalid argument", "no verb")
    for bad in ("symlink", "mkfifo", "link"):
        try:
            {"symlink": lambda p: os.symlink("/etc/passwd", p),
             "mkfifo": os.mkfifo,
             "link": lambda p: os.link(j.dir + "/exit", p)}[bad](
                 j.dir + "/out/" + bad)
            raise lib.Failed(f"{bad} in out/")
        except OSError as e:
            lib.ok(e.errno, f"no {bad} in out/: {e.strerror}")
    j.write("stdout", "one\n")
    j.write("stdout", "two\n", "a")
    j.write("out/left.txt", "left")
    os.rename(j.dir + "/out/left.txt", j.dir + "/out/right.txt")
    j.write("peak_mem_mb", "77")
    j.write("reason", "as a note\n")
    j.finish(-9)
    r = result_of(job, "completed", -9, "as a note")
    lib.same((r.stdout, r.peak_mem_mb), ("one\ntwo\n", 77), "what it says")
    runner.wait_idle()

    for verb, want in (("refuse not today", ("refused", None, "not today")),
                       ("failed no disk", ("failed", None, "no disk")),
                       ("timed_out", ("timed_out", None, None))):
        job = submit(sender)
        j = runner.next()
        if not verb.startswith("refuse"):
            j.tell("claim")
        j.tell(verb)
        result_of(job, *want)
        runner.wait_idle()


def cancel(runner, sender):
    job = submit(sender)
    j = runner.next()
    job.cancel()
    runner.wait_idle()
    lib.same(job.state()["state"], "failed", "cancelled before a claim")
    job = submit(sender)
    j = runner.next()
    j.tell("claim")
    j.write("stdout", "so far")
    job.cancel()
    lib.wait_for(lambda: os.path.exists(j.dir + "/cancelled"), "cancelled")
    lib.ok(j.read("cancelled"), "it says why")
    j.finish()
    r = result_of(job, "cancelled", None, None)
    lib.same(r.stdout, "so far", "what was printed before")
    runner.wait_idle()


def went_away(runner, sender):
    job = submit(sender)
    runner.next().tell("claim")
    runner.let_go()
    result_of(job, "failed", None, "runner went away")
    runner.wait_idle()
    runner.hold()


def large(runner, sender):
    job = submit(sender)
    j = runner.next()
    j.tell("claim")
    with open(j.dir + "/stdout", "w") as f:
        f.write("first\n")
        for i in range(400):
            f.write("x" * 99999 + "\n")
    j.write("stderr", b"\xff\xfe bytes", "wb")
    with open(j.dir + "/stdout", "a") as f:
        f.write("REASON\n")
    for i in range(500):
        j.write(f"out/{i}.txt", f"{i}\n")
    j.finish()
    r = result_of(job, "completed", 0, None)
    lib.ok(r.stdout.startswith("first\nxx") and
           r.stdout.endswith("x\nREASON\n") and r.stdout_truncated and
           "bytes skipped]" in r.stdout and
           len(r.stdout) <= 1 << 20, "head, marker and tail")
    lib.same(r.stderr, "\ufffd\ufffd bytes", "what is no UTF-8")
    with zipfile.ZipFile(io.BytesIO(r.out_file("out.zip").data)) as z:
        lib.same(len(z.namelist()), 500, "500 small files")
    runner.wait_idle()


def hostile(runner, sender):
    """What cannot be unpacked is refused, and never appears."""
    where = lib.T + "/hostile"
    os.makedirs(where)
    good = make_zip({"main.py": b"evil"})
    with open(where + "/same.zip", "wb") as f:
        f.write(good)
    ref = sender.send_file(where + "/same.zip")
    job = submit(sender, files=[ref])
    r = wait(job)
    lib.same((r.status, r.signed), ("refused", True), "two of one path")
    lib.ok("path" in r.reason, r.reason)
    job = submit(sender, files=[dict(ref, blob_sha256="A" * 43)])
    r = wait(job)
    lib.same((r.status, r.signed), ("refused", True), "another input")
    lib.ok(r.reason, r.reason)
    for name, mode, kind in (("fifo", 0o010666, "a fifo"),
                             ("device", 0o020666, "a device")):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, mode << 16
            z.writestr(info, b"")
        with open(f"{where}/{name}.zip", "wb") as f:
            f.write(out.getvalue())
        ref = sender.send_file(f"{where}/{name}.zip")
        r = wait(submit(sender, files=[ref]))
        lib.same((r.status, r.signed), ("refused", True), kind)
    lib.same(runner.jobs(), [], "none of them appeared")


def killed(runner, sender):
    """kill -9 in each state: one terminal state each, none twice."""
    job = submit(sender)		# open, not claimed
    first = runner.next().name
    runner.kill()
    runner.again()
    runner.hold()
    j = runner.next()
    lib.same(j.name, first, "what was not claimed is here again")
    j.tell("claim")
    j.write("stdout", "lost")
    runner.kill()			# claimed
    runner.again()
    result_of(job, "failed", None, "runner restarted")
    lib.same(runner.jobs(), [], "and is not run again")
    runner.hold()

    job = submit(sender)
    j = runner.next()
    j.tell("claim")
    j.write("stdout", "kept\n")
    j.write("out/a.txt", "a" * 100000)
    j.finish()				# ended: whatever was done of it by now
    runner.kill()
    runner.again()
    r = result_of(job, "completed", 0, None)
    lib.same(r.stdout, "kept\n", "what was ended is not lost")
    lib.same([o.name for o in r.out_files], ["out.zip"], "nor its files")
    runner.hold()
    results = [i for i in sender.items().values() if i["kind"] == "result"]
    jobs = [i for i in sender.items().values() if i["kind"] == "job"]
    lib.ok(len(results) <= len(jobs), "no job has two results")


def unmounted(runner, sender):
    job = submit(sender)
    runner.next().tell("claim")
    runner.let_go()
    result_of(job, "failed", None, "runner went away")
    runner.hold()
    job = submit(sender)
    runner.next().tell("claim")
    lib.same(runner.end(), 0, "umount: nothing is unsent")
    r = wait(job)
    lib.same((r.status, r.signed), ("failed", True), "unmounted: " + r.reason)


def main():
    relay = lib.Relay()
    owner = Sdk("owner", relay=relay.url, ttl="1h", mode="execute",
                job_limits={"runtime": "python3.11", "timeout_s": 60,
                            "memory_mb": 512, "network": False,
                            "packages": [], "return_out": True,
                            "approve_runners": False})
    shell_runner(owner.invites)
    sender = Sdk("sender", owner.invites["sender"])
    runner = Runner("files", owner.invites["runner"])
    runner.hold()
    for test in (verbs, cancel, went_away, large, hostile, killed, unmounted):
        start = time.monotonic()
        test(runner, sender)
        print(f"# {test.__name__}: {time.monotonic() - start:.1f} s")
    lib.same(relay.stop(), 0, "the relay ends with 0")


lib.run_main(main)
