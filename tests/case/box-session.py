#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: a sealed program works with its session through names of it, never its
root: it reads a task from in/, writes the answer to out/, and the record has
each write with its hash, and nobody else's; what is no live mount, or more than
the policy gives, is refused with a sentence."""
import hashlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import box_user                                       # noqa: E402
import lib                                            # noqa: E402

BOX = lib.BUILD + "/airlox-box"
READS = ["README", "events", "in", "log", "participants", "rejected",
         "session", "status"]
NEVER = ["audit", "ctl", "invites", "queue", "runners", "latest"]


def policy(text):
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write(text)


def run(mount, code, status=0):
    """Python in a box; its output, and the record as text."""
    record = lib.T + "/r.html"
    done = subprocess.run(
        [BOX, "run", lib.T + "/policy.yaml", "--session", mount, "--record",
         record, "--", "/usr/bin/python3", "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, timeout=60 * lib.SLOW)
    if done.returncode != status:
        raise lib.Failed(f"exit {done.returncode}: {done.stdout[-800:]} "
                         f"{done.stderr[-800:]}")
    if status == 64:
        return done.stderr, ""
    shown = subprocess.run([BOX, "show", record], stdout=subprocess.PIPE,
                           text=True, check=True).stdout
    return done.stdout, shown


WORK = r"""
import glob, os, time
task = glob.glob('/session/in/*-task.md')[0]
text = open(task).read()
with open('/session/out/answer.md', 'w') as f:
    f.write('# answer\n' + text.upper())
with open('/session/say', 'w') as f:
    f.write('done\n')
with open('/session/jobs/new', 'w') as f:
    f.write('print(42)\n')
until = time.monotonic() + 20
while open('/session/jobs/1/status').read().split()[0] == 'draft' \
        and time.monotonic() < until:
    time.sleep(0.02)
print(sorted(os.listdir('/session')))
"""

PRY = f"""
import os
NEVER = {NEVER!r}
""" + r"""
def attempt(path, flags=os.O_RDONLY):
    try:
        os.close(os.open(path, flags))
        print('OPEN', path)
    except OSError as e:
        pass
for base in ('/session', '/session/in/..', '/session/out/..',
             '/proc/self/root/session', '/proc/1/root/session',
             '/session/participants/../..', '/proc/1/cwd/session'):
    for name in NEVER:
        attempt(f'{base}/{name}')
os.chdir('/session/in')
for name in NEVER:
    attempt('../' + name)
d = os.open('/session/in', os.O_RDONLY)
for name in NEVER:
    attempt(f'/proc/self/fd/{d}/../{name}')
for name in ('in', 'participants', 'rejected'):
    for x in os.listdir('/session/' + name):
        try:
            os.unlink(f'/session/{name}/{x}')
            print('REMOVED', name, x)
        except OSError as e:
            print(name, e.errno)
for name in ('README', 'session', 'status', 'log', 'events', 'new', 'in/x'):
    attempt('/session/' + name, os.O_WRONLY | os.O_CREAT)
try:
    os.setxattr('/session/in', 'user.x', b'1')
    print('XATTR')
except OSError:
    pass
print('END')
"""


def works(bob, alice):
    bob.send("task.md", b"do this\n")
    lib.wait_for(lambda: os.listdir(alice.path("in")), "the task")
    policy("session: write\n")
    out, shown = run(alice.dir, WORK)
    lib.same(out, f"{sorted(READS + ['out', 'say', 'jobs'])}\n",
             "the names it sees")
    entry = lib.wait_for(
        lambda: [n for n in os.listdir(bob.path("in"))
                 if n.endswith("-answer.md")], "the answer at the peer")[0]
    answer = bob.read("in/" + entry)
    lib.same(answer, b"# answer\nDO THIS\n", "the answer, whole")
    for name, data in (("out/answer.md", answer), ("say", b"done"),
                       ("jobs/1/main.py", b"print(42)\n")):
        line = (f"session  bytes={len(data)}  change=wrote  name={name}  "
                f"sha256={hashlib.sha256(data).hexdigest()}\n")
        lib.ok(line in shown, f"the record: {name}, with its hash")
    lib.ok("change=sent  id=" in shown and "  name=out/answer.md  seq="
           in shown, "and that it was sent")


def pries(alice):
    out, shown = run(alice.dir, PRY)
    lib.ok("OPEN" not in out and "REMOVED" not in out and "XATTR" not in out
           and out.endswith("END\n"), "nothing else leads anywhere: " + out)
    lib.ok(" session  " not in shown, "a run that wrote nothing")
    lib.ok(os.listdir(alice.path("in")), "nothing was taken away")


def others(alice):
    """What the user writes meanwhile is not the box's."""
    here = alice.path("out/mine.md")
    out, shown = run(alice.dir, f"""
import os, time
print('started', flush=True)
with open('/session/out/box.md', 'w') as f:
    f.write('of the box\\n')
until = time.monotonic() + 20
while not os.path.exists('/session/out/mine.md') and time.monotonic() < until:
    time.sleep(0.02)
print(os.path.exists('/session/out/mine.md'))
""") if not os.fork() else (None, None)
    if out is not None:
        with open(lib.T + "/others", "w") as f:
            f.write(out + shown)
        os._exit(0)
    lib.wait_for(lambda: os.path.exists(alice.path("out/box.md")), "it runs",
                 30)
    with open(here, "w") as f:
        f.write("of the user\n")
    os.wait()
    with open(lib.T + "/others") as f:
        text = f.read()
    lib.ok("name=out/box.md" in text and "name=out/mine.md" not in text
           and "True" in text, "the record has the box's writes alone")


def reads(alice):
    policy("session: read\n")
    out, _ = run(alice.dir, "import os; print(sorted(os.listdir('/session')))"
                 "\nprint(open('/session/status').read().split()[0])")
    lib.same(out, f"{sorted(READS)}\nonline\n", "session: read")


def refused(bob, alice):
    policy("session: read\n")
    plain = lib.T + "/plain"
    os.mkdir(plain)
    for name in ("in", "out"):
        os.mkdir(f"{plain}/{name}")
    with open(plain + "/session", "w") as f:
        f.write("role sender\n")
    link = lib.T + "/link"
    os.symlink(alice.dir, link)
    for where, word in ((plain, "is no mounted session"),
                        (alice.path("in"), "name the mount itself"),
                        (lib.T + "/nowhere", "No such file"),
                        (bob.dir, "is an owner's mount"),
                        (alice.path("session"), "Not a directory")):
        status = 71 if word[0] in "N" else 64
        done = subprocess.run([BOX, "run", lib.T + "/policy.yaml",
                               "--session", where, "--", "true"],
                              stderr=subprocess.PIPE, text=True, cwd=lib.T)
        lib.ok(word in done.stderr and done.returncode in (64, status)
               and done.stderr.count("\n") == 1, done.stderr.strip())
    out, _ = run(link, "print(open('/session/session').read().split()[0])")
    lib.same(out, "id\n", "a symbolic link to a mount is that mount")
    policy("session: read\nsession_owner: true\n")
    out, _ = run(bob.dir, "import os; print(sorted(os.listdir('/session')))")
    lib.same(out, f"{sorted(READS)}\n", "an owner's, where the policy says so")
    policy("limits:\n  time: 60s\n")
    said, _ = run(alice.dir, "0", status=64)
    lib.ok("the policy gives the box none" in said, said.strip())


def offline(relay, alice):
    policy("session: write\n")
    relay.stop()
    out, shown = run(alice.dir, "open('/session/out/late.md', 'w')"
                     ".write('later\\n')")
    lib.ok("change=wrote  name=out/late.md  sha256="
           + hashlib.sha256(b"later\n").hexdigest() in shown,
           "written while the relay is away")
    lib.ok("had not been sent when the run ended" in shown, "and not sent")
    relay.start()


def dies(alice):
    """The mount is killed while the box runs."""
    pid = lib.find_daemon(alice.dir)
    code = f"""
import os, time
open('/session/out/last.md', 'w').write('x\\n')
until = time.monotonic() + 30
while time.monotonic() < until:
    try:
        os.listdir('/session/in')
        open('/session/status').read()
    except OSError as e:
        print(e.errno in (103, 107) or e)  # ECONNABORTED, ENOTCONN
        break
    time.sleep(0.02)
"""
    child = os.fork()
    if child == 0:
        out, shown = run(alice.dir, code)
        with open(lib.T + "/dies", "w") as f:
            f.write(out + shown)
        os._exit(0)
    lib.wait_for(lambda: os.path.exists(alice.path("out/last.md")) and
                 os.getxattr(alice.path("out/last.md"),
                             "user.airlox.state") == b"sent", "it runs", 60)
    os.kill(pid, signal.SIGKILL)
    os.wait()
    with open(lib.T + "/dies") as f:
        text = f.read()
    lib.ok(text.startswith("True\n"), "the box meets ENOTCONN and goes on: "
           + text[:4])
    lib.ok("its mount, ended while the box ran" in text,
           "which the record says")
    done = subprocess.run([BOX, "run", lib.T + "/policy.yaml", "--session",
                           alice.dir, "--", "true"], stderr=subprocess.PIPE,
                          text=True)
    subprocess.run(["fusermount3", "-uz", alice.dir])
    lib.mounted.remove(alice)
    lib.ok(done.returncode == 64 and "is dead" in done.stderr,
           done.stderr.strip())


def main():
    relay = lib.Relay()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json", "--profile", "host-runner")
    links = lib.json.loads(made.stdout)["invites"]
    bob = lib.Mount("bob", links["owner"])
    alice = lib.Mount("alice", links["sender"])
    works(bob, alice)
    pries(alice)
    others(alice)
    reads(alice)
    refused(bob, alice)
    offline(relay, alice)
    dies(alice)


box_user.run(main)
