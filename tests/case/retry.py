#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: our clients come back when the relay says so, and not before; what
waited because its disk was full goes once there is room again; each item
arrives once."""
import atexit
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                            # noqa: E402
from relay_peer import Peer           # noqa: E402

CODES = lib.T + "/codes"


def says_no(relay):
    with open(CODES, "w"):
        pass
    child = subprocess.Popen(
        [sys.executable, lib.TOP + "/tests/hostile/codes.py",
         str(relay.port), CODES], stdout=subprocess.PIPE, text=True)
    atexit.register(lambda: (child.terminate(), child.wait()))
    return int(child.stdout.readline())


def tell(codes):
    with open(CODES + ".new", "w") as f:
        f.write(codes)
    os.rename(CODES + ".new", CODES)
    with open(CODES + ".log", "w"):
        pass


def obeyed(codes, what):
    """Each post after a refusal came no sooner than it said."""
    with open(CODES + ".log") as f:
        posts = [line.split() for line in f]
    waits = [float(b[0]) - float(a[0]) for a, b in zip(posts, posts[1:])]
    said = [float(c.partition(":")[2] or 0) for c in codes.split()]
    lib.same([c for _, c in posts], [c.partition(":")[0]
                                     for c in codes.split()] + ["0"],
             f"{what}: one post for each answer")
    lib.ok(all(w >= s - 0.05 for w, s in zip(waits, said)),
           f"{what}: told {said}, came after "
           f"{[round(w, 1) for w in waits]}")


def clients(port, invite):
    a, b = lib.Mount("alice", invite), lib.Mount("bob", invite)
    codes = "429:2 503:1 507:1"
    tell(codes)
    sent = a.send("note.md", b"once\n")
    obeyed(codes, "a mount")
    b.entry(sent)
    lib.same(len(os.listdir(b.path("in"))), 1, "it arrives once")
    codes = "429:1 503:1"
    tell(codes)
    lib.run_cli(lib.AIRLOXFS, "carol", "send", "text", "hello",
                invite=invite)
    obeyed(codes, "a command")
    a.end()
    b.end()


def has_no_room(relay, invite):
    """Below the watermark: 507, nothing lost; above it, all goes on."""
    a, b = lib.Mount("dave", invite), lib.Mount("erin", invite)
    with open(lib.T + "/relay/ballast", "wb") as f:
        f.write(bytes(20 << 20))
    lib.wait_for(lambda: Peer(relay).get("/v1/health").status == 503,
                 "below the watermark")
    sent = []
    writers = [threading.Thread(target=lambda i=i: sent.append(
        a.send(f"w{i}.md", b"%d\n" % i))) for i in range(3)]
    for w in writers:
        w.start()

    def refused():
        text = Peer(relay).get("/metrics").body.decode()
        n = lib.re.search(r'answers_total{status="5xx"} (\d+)', text)[1]
        return int(n) > 3
    lib.wait_for(refused, "the relay refuses", 20)
    lib.ok(b"w0" not in b"".join(map(os.fsencode, os.listdir(b.path("in")))),
           "nothing was taken")
    os.unlink(lib.T + "/relay/ballast")
    for w in writers:
        w.join(60 * lib.SLOW)
    lib.same(len(sent), 3, "above it: all were sent")
    for id_ in sent:
        b.entry(id_, 30)
    lib.same(Peer(relay).get("/v1/health").status, 200, "and health says so")
    a.end()
    b.end()


def main():
    os.makedirs(lib.T + "/relay")
    small = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none",
                            lib.T + "/relay"], stderr=subprocess.DEVNULL)
    if small.returncode == 0:
        atexit.register(subprocess.run, ["umount", lib.T + "/relay"])
    relay = lib.Relay("--min-free-bytes", str(16 << 20))
    port = says_no(relay)
    made = lib.run_cli(lib.AIRLOXFS, "olga", "create", "--json", "--relay",
                       f"http://127.0.0.1:{port}")
    invite = lib.json.loads(made.stdout)["invites"]["sender"]
    clients(port, invite)
    if small.returncode == 0:
        tell("")
        has_no_room(relay, invite)
    else:
        lib.ok(True, "a small file system cannot be mounted here")
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
