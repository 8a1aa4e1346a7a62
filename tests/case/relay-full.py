#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: a full disk, also in the middle of an upload: 507, nothing that was
acknowledged is lost, what frees space still works, and it recovers."""
import atexit
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                            # noqa: E402
from relay_peer import Party          # noqa: E402

MOUNT = lib.T + "/relay"


def mount_small(size):
    os.makedirs(MOUNT)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}",
                           "none", MOUNT], stderr=subprocess.DEVNULL)
    if done.returncode:
        lib.skip("a small file system cannot be mounted here")
    atexit.register(subprocess.run, ["umount", MOUNT])


def fill(party, peer, n, how):
    """Posts until the relay says no: what it took."""
    taken = {}
    while True:
        id_, blob, answer = party.post(peer, n, **how)
        if answer.status != 201:
            lib.same((answer.status, answer.error), (507, "disk_full"),
                     f"full after {len(taken)} items of {n} bytes")
            return taken
        taken[id_] = blob


def all_there(peer, taken, what):
    for id_, blob in taken.items():
        if peer.get(f"/items/{id_}/blob").body != blob:
            raise lib.Failed(f"{what}: blob of {id_}")
    lib.ok(True, what)


def main():
    mount_small("8m")
    relay = lib.Relay("--min-free-bytes", "0")
    party = Party(relay, most=8 << 20)
    party.create()
    alice = party.join("sender", "alice")
    bob = party.join("sender", "bob")
    large = fill(party, alice, 900000, {"kind": "file", "type_": "zip"})
    small = fill(party, alice, 30000, {})
    tiny = fill(party, alice, 10, {})
    taken = {**large, **small, **tiny}
    all_there(bob, taken, "nothing that was acknowledged is lost")
    relay.stop(signal.SIGKILL)
    relay.start()
    all_there(bob, taken, "nor by kill -9 on a full disk")
    lib.same(alice.get("/events").status, 200, "it still answers")
    for id_ in large:
        lib.same(bob.post(f"/items/{id_}/ack").status, 204,
                 "acknowledged on a full disk")
    lib.wait_for(lambda: alice.kinds().count("evicted") == len(large),
                 "and evicted")
    id_, blob, answer = party.post(alice, 900000, kind="file", type_="zip")
    lib.same(answer.status, 201, "space that came back is used")
    rest = fill(party, alice, 900000, {"kind": "file", "type_": "zip"})
    rest[id_] = blob
    fill(party, alice, 20000, {})
    all_there(bob, {**rest, **small}, "all there again")
    seqs = [e["seq"] for e in alice.events()]
    lib.same(seqs, list(range(len(seqs))), "no gap in the events")
    owner = party.join_text("owner", "olga")
    alice.token, token = None, alice.token
    answer = alice.post("/participants", owner)
    lib.ok(answer.status in (201, 507), f"a join: {answer.status}")
    alice.token = token
    lib.same(alice.post("/leave").status, 204, "leaving works when full")
    party.end()
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
