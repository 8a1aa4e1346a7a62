#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: the published client and the published runner do jobs on our relay:
approval, by name, by label, any, nobody, busy, cancelled, inputs and out
files; and a relay that dies in the middle of a job."""
import json
import os
import signal
import sys
import threading
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import AIRLOX, Cli, Sdk, airlox, lib  # noqa: E402
from peer_runner import Runner                    # noqa: E402


def create(relay):
    done = lib.run_cli(AIRLOX, "olga", "session", "create", "--relay",
                       relay.url, "--json", "--as", "olga", "--execute",
                       "--runtime", "python3.11", "--job-timeout", "60s")
    return json.loads(done.stdout)["invites"]


def listed(sdk, name):
    return [r for r in sdk.session.runners() if r.name == name]


def join(invites, owner):
    box = Runner("box", invites["runner"], "--labels", "gpu,big")
    found = lib.wait_for(lambda: [r for r in listed(owner, "box")
                                  if r.online] or box.child.poll(),
                         "the runner is online", 60)
    if not isinstance(found, list):
        raise lib.Failed(f"the runner ended: {box.said()[-500:]}")
    lib.same((found[0].approved, sorted(found[0].labels), found[0].job),
             (False, ["big", "gpu"], None), "it awaits approval")
    return box


def run(sender, *words, code="print('hi')", status=0):
    path = f"{lib.T}/main.py"
    with open(path, "w") as f:
        f.write(code)
    done = sender.run("run", "--json", *words, path, status=status)
    return json.loads(done.stdout)


def refused(sdk, what, **target):
    try:
        sdk.session.run_python("print(1)", **target)
    except airlox.NoRunnerAvailable as e:
        state = e.job.state()
        lib.same((state["state"], state["reason"]),
                 ("failed", "no_runner_available"), what)
    else:
        raise lib.Failed(what)


def targets(sender, sdk):
    lib.same(run(sender)["stdout"], "hi\n", "any")
    lib.same(run(sender, "--runner", "box", code="import sys\n"
                 "print('no', file=sys.stderr); sys.exit(3)",
                 status=3)["stderr"], "no\n", "by name, and its exit code")
    lib.same(run(sender, "--label", "gpu,big")["status"], "completed",
             "by labels")
    job = sdk.session.run_python("print(7)", labels=["big"])
    lib.same(job.wait(60).stdout, "7\n", "by the SDK")
    refused(sdk, "a label that it does not have", labels=["gpu", "small"])


def files(sender):
    with zipfile.ZipFile(lib.T + "/in.zip", "w") as z:
        z.writestr("d/x.txt", "from the zip")
    with open(lib.T + "/t.md", "w") as f:
        f.write("# t\n")
    where = lib.T + "/got"
    got = run(sender, "--input", lib.T + "/in.zip", "--input",
              lib.T + "/t.md", "--out-dir", where, code="import os\n"
              "print(open('d/x.txt').read(), open('t.md').read())\n"
              "open(os.environ['AIRLOX_OUT']+'/r.txt','w').write('back')\n")
    lib.same(got["stdout"], "from the zip # t\n\n", "inputs are there")
    with zipfile.ZipFile(where + "/" + os.listdir(where)[0]) as z:
        lib.same(z.read("r.txt"), b"back", "and what it wrote comes back")


def busy(sender, sdk):
    """A long one: others are refused; then it is cancelled."""
    job = sdk.session.run_python("import time; time.sleep(50)")
    lib.wait_for(lambda: job.state()["state"] == "running", "it runs", 20)
    refused(sdk, "none is idle")
    try:
        sdk.session.run_python("1", runner="box")
        raise lib.Failed("a busy runner took a second one")
    except airlox.RelayError as e:
        lib.same((e.status, e.code), (409, "runner_busy"), "by name: busy")
    job.cancel()
    result = job.wait(30)
    lib.same((result.status, result.signed), ("cancelled", True),
             "cancelled, signed by its runner")
    lib.same(job.state()["state"], "done", "done")


def dies(relay, sdk, box):
    """The relay, in the middle of a job.  (A runner that never heard the
    answer to its claim does not run it, and it is lost.)"""
    job = sdk.session.run_python("import time; time.sleep(3); print('all')")
    lib.wait_for(lambda: f"running job={job.id}" in box.said(), "it runs", 20)
    relay.stop(signal.SIGKILL)
    timer = threading.Timer(1, relay.start)
    timer.start()
    timer.join()
    lib.same(job.wait(60).stdout, "all\n", "its result arrives all the same")
    lib.same(job.state()["state"], "done", "once")
    results = [i for i in sdk.session.items() if i.kind == "result"
               and i.meta["job"]["id"] == job.id]
    lib.same(len(results), 1, "one result")


def main():
    relay = lib.Relay()
    invites = create(relay)
    owner = Sdk("owner", invites["owner"])
    sdk = Sdk("sdk", invites["sender"])
    sender = Cli("sue", invites["sender"])
    refused(sdk, "no runner at all")
    box = join(invites, owner)
    refused(sdk, "not approved yet")
    owner.session.approve_runner("box")
    lib.wait_for(lambda: listed(sdk, "box")[0].approved, "approved")
    targets(sender, sdk)
    files(sender)
    busy(sender, sdk)
    dies(relay, sdk, box)
    owner.session.reject_runner("box", "no more")
    lib.wait_for(lambda: box.child.poll() is not None,
                 "a rejected runner ends", 40)
    lib.same([r.rejected for r in listed(sdk, "box")], [True], "listed so")
    owner.session.close()
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
