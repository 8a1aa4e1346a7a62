#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: jobs/ and runners/ of a mount with the published runner on the other
side: approved by a file, jobs by copying, inputs, files back, exit code,
cancelled, rejected."""
import io
import json
import os
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import lib                            # noqa: E402
from peer_runner import Runner                    # noqa: E402

SLOW_JOB = "import time\nprint('begun', flush=True)\ntime.sleep(50)\n"


def create(relay):
    done = lib.run_cli(lib.AIRLOXFS, "olga", "create", "--relay", relay.url,
                       "--json", "--as", "olga", "--execute", "--runtime",
                       "python3.11", "--job-timeout", "60s")
    return json.loads(done.stdout)["invites"]


def text(mount, name):
    return mount.read(name).decode()


def write(mount, name, content):
    with open(mount.path(name), "w") as f:
        f.write(content)


def join(invites, owner):
    box = Runner("box", invites["runner"], "--labels", "gpu,big")
    lib.wait_for(lambda: os.path.exists(owner.path("runners/box"))
                 or box.child.poll() is not None, "the runner is seen", 60)
    lib.ok(box.child.poll() is None, f"it stays {box.said()[-300:]}")
    lib.same(text(owner, "runners/box/state"), "awaiting\n", "it awaits")
    write(owner, "runners/box/ctl", "approve\n")
    lib.wait_for(lambda: text(owner, "runners/box/state") == "idle\n",
                 "approved and idle", 60)
    return box


def submit(mount, code):
    """By copying; the name of its directory."""
    write(mount, "jobs/new", code)
    return "jobs/" + os.readlink(mount.path("jobs/last"))


def quick(mount):
    job = submit(mount, "import sys\nprint('out')\n"
                 "print('err', file=sys.stderr)\nsys.exit(3)\n")
    lib.ok(text(mount, job + "/wait").startswith("completed exit 3"),
           "it ends, with a code")
    lib.same((text(mount, job + "/exit"), text(mount, job + "/stdout"),
              text(mount, job + "/stderr")), ("3\n", "out\n", "err\n"),
             "exit code, output, errors")
    lib.same(text(mount, job + "/output"), "out\nerr\n",
             "both, without frames: one after the other")


def full(mount):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as z:
        z.writestr("d/x.txt", "from the zip")
    os.mkdir(mount.path("jobs/train"))
    for name, data in (("in.zip", packed.getvalue()), ("t.csv", b"1,2\n"),
                       ("m.py", b"import os\n"
                        b"print(open('d/x.txt').read(), open('t.csv').read())\n"
                        b"o = os.environ['AIRLOX_OUT']\n"
                        b"open(o + '/r.txt', 'w').write('back')\n")):
        with open(mount.path("jobs/train/" + name), "wb") as f:
            f.write(data)
    write(mount, "jobs/train/ctl", "label gpu big\n")
    write(mount, "jobs/train/ctl", "run\n")
    lib.ok(text(mount, "jobs/train/wait").startswith("completed exit 0"), "0")
    lib.same(text(mount, "jobs/train/stdout"), "from the zip 1,2\n\n",
             "inputs that items cannot carry, too")
    lib.same(text(mount, "jobs/train/out/r.txt"), "back", "and a file back")


def cancelled(mount):
    job = submit(mount, SLOW_JOB)
    lib.wait_for(lambda: text(mount, job + "/status").startswith("running"),
                 "it runs", 30)
    write(mount, job + "/ctl", "cancel\n")
    lib.ok(text(mount, job + "/wait").startswith("cancelled"),
           "cancelled, and its runner says so")


def main():
    relay = lib.Relay()
    invites = create(relay)
    owner = lib.Mount("olga", invites["owner"])
    sender = lib.Mount("sue", invites["sender"])
    box = join(invites, owner)
    quick(sender)
    full(sender)
    cancelled(sender)
    quick(owner)
    write(owner, "runners/box/ctl", "reject no more\n")
    lib.wait_for(lambda: box.child.poll() is not None,
                 "a rejected runner ends", 60)
    lib.wait_for(lambda: text(sender, "runners/box/state") == "rejected\n",
                 "and is seen to be rejected")
    for m in (sender, owner):
        lib.same(m.end(), 0, f"{m.name} unmounts")
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
