#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: a full disk, also in the middle of an upload: 507, nothing that was
acknowledged is lost, what frees space still works, and it recovers; direct,
and on a disk behind nginx and Caddy."""
import atexit
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                 # noqa: E402
from proxy_peer import (NGINX, Through, deployed_caddy,    # noqa: E402
                        deployed_nginx, free_port, make_certs)
from relay_peer import Party, Peer                         # noqa: E402


def mount_small(kind, where, size):
    """A file system of so many MiB: in memory, or a disk that is a file."""
    os.makedirs(where)
    how = ("-t", "tmpfs", "-o", f"size={size}m", "none")
    if kind == "ext4":
        with open(where + ".img", "wb") as f:
            f.truncate(size << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", where + ".img"],
                       check=True)
        how = ("-o", "loop", where + ".img")
    done = subprocess.run(["mount", *how, where], stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        atexit.register(subprocess.run, ["umount", where])
    return done.returncode == 0


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


LARGE = {"kind": "file", "type_": "zip"}


def direct(relay):
    party = Party(relay, most=8 << 20)
    party.create()
    alice = party.join("sender", "alice")
    bob = party.join("sender", "bob")
    large = fill(party, alice, 900000, LARGE)
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
    id_, blob, answer = party.post(alice, 900000, **LARGE)
    lib.same(answer.status, 201, "space that came back is used")
    rest = fill(party, alice, 900000, LARGE)
    rest[id_] = blob
    fill(party, alice, 20000, {})
    lib.same({party.post(alice, 900000, **LARGE)[2].status
              for _ in range(60)}, {507}, "60 times no")
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


def behind(relay, deployed, what):
    """The same through a proxy, on a disk: a sender sees the 507, whoever
    reads sees nothing of it, and there is room again by itself."""
    port = free_port()
    deployed(relay, port, what)
    party = Party(relay, most=8 << 20)
    party.create()
    alice, bob = (Through(party.join("sender", n), port)
                  for n in ("alice", "bob"))
    kept = fill(party, alice, 2000000, LARGE)
    kept.update(fill(party, alice, 60000, {}))
    all_there(bob, kept, f"{what}: all there on a full disk")
    gone = [i for i, blob in kept.items() if len(blob) > 1000000]
    for id_ in gone:
        bob.post(f"/items/{id_}/ack")
        kept.pop(id_)
    lib.wait_for(lambda: party.post(alice, 2000000, **LARGE)[2].status == 201,
                 f"{what}: room again")
    lib.same(Peer(relay).get("/v1/health").status, 200, f"{what}: healthy")
    relay.stop(signal.SIGKILL)
    relay.start()
    all_there(bob, kept, f"{what}: and after kill -9")
    seqs = [e["seq"] for e in alice.events()]
    lib.same(seqs, list(range(len(seqs))), f"{what}: no gap in the events")
    party.end()


def main():
    if not mount_small("tmpfs", lib.T + "/relay", 8):
        lib.skip("a small file system cannot be mounted here")
    relay = lib.Relay("--min-free-bytes", "0")
    direct(relay)
    lib.same(relay.stop(), 0, "a quiet end")
    with open(relay.data + ".err") as f:
        said = f.readlines()
    lib.ok(len(said) < 30, f"its log has {len(said)} lines of that")
    have = all(shutil.which(p) for p in ("caddy", "openssl", NGINX))
    if not have or not mount_small("ext4", lib.T + "/disk", 16):
        lib.ok(True, "no proxies or no loop devices here")
        return
    make_certs()
    for deployed, what, least in ((deployed_nginx, "nginx", 0),
                                  (deployed_caddy, "caddy", 4 << 20)):
        relay = lib.Relay("--min-free-bytes", str(least), "--trusted-proxies",
                          "127.0.0.1", data=f"{lib.T}/disk/{what}")
        behind(relay, deployed, what)
        lib.same(relay.stop(), 0, f"{what}: a quiet end")
        shutil.rmtree(relay.data)


lib.run_main(main)
