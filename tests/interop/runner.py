#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: the published client runs jobs on airlox-runner: approval, by name, by
label, inputs, out files, a package it may not have, cancel, time, and a runner
that is told to stop."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import AIRLOX, Cli, Sdk, airlox, lib  # noqa: E402

sys.path.insert(0, lib.TOP + "/tests")
import runner_queue  # noqa: E402

BIN = lib.BUILD + "/airlox-runner"


def listed(sdk, name):
    return [r for r in sdk.session.runners() if r.name == name]


class Ours:
    """`airlox-runner join`, until end()."""

    def __init__(self, name, invite, *flags):
        self.log = f"{lib.T}/runner-{name}.log"
        where = tempfile.mkdtemp(prefix="airlox-t.", dir="/var/tmp")
        os.chmod(where, 0o755)
        atexit.register(shutil.rmtree, where, True)
        with open(self.log, "wb") as out:
            self.child = subprocess.Popen(
                [BIN, "join", "--name", name, "--scratch", where,
                 "--cache-dir", where + "/cache", *flags, "-"],
                env=lib.peer_environ(name), stdout=out, stderr=out,
                stdin=subprocess.PIPE)
        self.child.stdin.write(invite.encode())
        self.child.stdin.close()
        atexit.register(self.end)

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            self.child.wait(60)
        return self.child.returncode


def run(cli, *flags, code="print('hi')", status=0):
    path = lib.T + "/m.py"
    with open(path, "w") as f:
        f.write(code)
    done = cli.run("run", "--json", *flags, path, status=status)
    return json.loads(done.stdout)


def targets(sender, sdk):
    got = run(sender, "--runner", "box", status=3, code="import sys\n"
              "print('out'); print('no', file=sys.stderr); sys.exit(3)")
    lib.same((got["stdout"], got["stderr"], got["exit_code"]),
             ("out\n", "no\n", 3), "by name, with output and exit code")
    lib.same(run(sender, "--label", "big")["status"], "completed", "by label")
    job = sdk.session.run_python("print(7)")
    lib.same(job.wait(60).stdout, "7\n", "any, by the SDK")


def files(sender):
    with zipfile.ZipFile(lib.T + "/in.zip", "w") as z:
        z.writestr("d/x.txt", "from the zip")
    with open(lib.T + "/t.md", "w") as f:
        f.write("# t\n")
    where = lib.T + "/got"
    got = run(sender, "--input", lib.T + "/in.zip", "--input",
              lib.T + "/t.md", "--out-dir", where, code="import os\n"
              "print(open('d/x.txt').read(), open('t.md').read())\n"
              "open(os.environ['AIRLOX_OUT']+'/r.txt','w').write('back')\n"
              "os.mkfifo(os.environ['AIRLOX_OUT']+'/pipe')\n")
    lib.same(got["stdout"], "from the zip # t\n\n", "inputs are there")
    with zipfile.ZipFile(where + "/" + os.listdir(where)[0]) as z:
        lib.same(z.namelist(), ["r.txt"], "what it may leave comes back")


def ends(sdk, box):
    job = sdk.session.run_python("import time; time.sleep(50)", timeout=1)
    lib.same(job.wait(30).status, "timed_out", "its time is up")
    job = sdk.session.run_python("a = []\nwhile True: a.append(bytearray(1 "
                                 "<< 22))", memory_mb=64)
    result = job.wait(30)
    lib.ok(result.status == "failed" and "out of memory" in result.reason,
           f"out of memory: {result.status} {result.reason}")
    job = sdk.session.run_python("import time; time.sleep(50)")
    lib.wait_for(lambda: job.state()["state"] == "running", "it runs", 20)
    job.cancel()
    result = job.wait(30)
    lib.same((result.status, result.signed), ("cancelled", True),
             "cancelled, signed by its runner")
    job = sdk.session.run_python("import time; time.sleep(50)")
    lib.wait_for(lambda: job.state()["state"] == "running", "it runs", 20)
    box.child.terminate()
    result = job.wait(30)
    lib.same(result.status, "failed", f"a runner stopped: {result.reason}")
    lib.same(box.child.wait(60), 0, "and ended quietly")


def main():
    if not shutil.which("bwrap") or subprocess.run(
            [BIN, "check"], stdout=subprocess.DEVNULL).returncode:
        lib.skip("no sandbox here")
    relay = lib.Relay()
    done = lib.run_cli(AIRLOX, "olga", "session", "create", "--relay",
                       relay.url, "--json", "--as", "olga", "--execute",
                       "--runtime", runner_queue.runtime())
    invites = json.loads(done.stdout)["invites"]
    owner, sdk = Sdk("owner", invites["owner"]), Sdk("sdk", invites["sender"])
    sender = Cli("sue", invites["sender"])
    box = Ours("box", invites["runner"], "--labels", "gpu,big",
               "--description", "a box")
    lib.wait_for(lambda: "serving" in box.said() and listed(owner, "box")
                 and listed(owner, "box")[0].online, "it is online", 60)
    try:
        sdk.session.run_python("print(1)")
        raise lib.Failed("a job before the approval")
    except airlox.NoRunnerAvailable:
        pass
    owner.session.approve_runner("box")
    lib.wait_for(lambda: listed(sdk, "box")[0].approved, "approved")
    targets(sender, sdk)
    files(sender)
    ends(sdk, box)
    owner.session.close()
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
