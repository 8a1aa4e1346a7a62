#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: M8.  The owner closes the session while 50 files of in/ are open and
read in loops: nobody hangs, what was received stays readable, the mounts go.
Twice; a hundred times over with `make soak`."""
import os
import sys
import threading

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402

FILES, READERS = 50, 5
ROUNDS = 100 if os.environ.get("SOAK") else 2


def session(relay):
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json")
    return lib.json.loads(made.stdout)["invites"]


def fill(alice, bob, n):
    for i in range(n):
        with open(alice.path(f"out/f{i}.md"), "wb") as f:
            f.write(b"# %d\n" % i * 3000)
    lib.wait_for(lambda: len(os.listdir(bob.path("in"))) == n,
                 f"{n} items", 30)


class Reader(threading.Thread):
    def __init__(self, files, stop):
        super().__init__(daemon=True)
        self.files, self.stop, self.rounds, self.wrong = files, stop, 0, None
        self.start()

    def run(self):
        try:
            while not self.stop.is_set():
                for f in self.files:
                    data = os.pread(f.fileno(), 1 << 20, 0)
                    if not data.startswith(b"# ") or len(data) < 9000:
                        raise ValueError(f"{len(data)} bytes")
                self.rounds += 1
        except (OSError, ValueError) as e:
            self.wrong = e


def one_round(relay, k):
    invites = session(relay)
    alice = lib.Mount(f"alice{k}", invites["sender"])
    bob = lib.Mount(f"bob{k}", invites["observer"])
    fill(alice, bob, FILES)
    where = bob.path("in")
    files = [open(f"{where}/{n}", "rb") for n in sorted(os.listdir(where))]
    stop = threading.Event()
    readers = [Reader(files[i::READERS], stop) for i in range(READERS)]
    lib.wait_for(lambda: all(r.rounds > 1 or r.wrong for r in readers),
                 "readers at work", 20)
    lib.run_cli(lib.AIRLOXFS, "creator", "close", invite=invites["owner"])
    lib.wait_for(lambda: bob.read("status").startswith(b"closed"),
                 "closed", 20)
    after = [r.rounds for r in readers]
    lib.wait_for(lambda: all(r.wrong or r.rounds > n + 1
                             for r, n in zip(readers, after)),
                 "they read on", 20)
    stop.set()
    for r in readers:
        r.join(20 * lib.SLOW)
        if r.is_alive() or r.wrong:
            raise lib.Failed(f"a reader: {r.wrong or 'hangs'}")
    for f in files:
        f.close()
    if (alice.end(), bob.end()) != (0, 0):
        raise lib.Failed("umount")
    for m in (alice, bob):
        os.rmdir(m.dir)


def main():
    relay = lib.Relay()
    for k in range(ROUNDS):
        one_round(relay, k)
    lib.ok(True, f"{ROUNDS} sessions closed under {FILES} files that are read")


if __name__ == "__main__":
    lib.run_main(main)
