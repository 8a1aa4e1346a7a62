#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: each call on the way to the disk fails once, or for a while, with
ENOSPC, EIO, EINTR or half of it written: nobody is told 201 for what is not
there, nothing that was acknowledged is lost, and it goes on by itself."""
import errno
import mmap
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                            # noqa: E402
from relay_jobs import Hall           # noqa: E402
from relay_peer import Party, Peer    # noqa: E402

CALLS = {"open": 1, "write": 2, "sync": 4, "rename": 8, "unlink": 32,
         "truncate": 64, "reserve": 128}
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR,
          "short": 10000}
FAULTS = lib.T + "/faults"


class Faults:
    def __init__(self):
        with open(FAULTS, "wb") as f:
            f.write(bytes(4096))
        self.file = open(FAULTS, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    def arm(self, call, error, after, count):
        self.map[:20] = struct.pack("5i", 0, error, after, count, 0)
        self.map[:4] = struct.pack("i", call)

    def rest(self):
        self.map[:4] = bytes(4)
        return struct.unpack("5i", self.map[:20])[4]


class World:
    """What the relay has acknowledged."""

    def __init__(self, relay):
        self.relay = relay
        self.party = Party(relay)
        self.party.create()
        self.alice = self.party.join("sender", "alice")
        self.bob = self.party.join("sender", "bob")
        self.here, self.gone, self.said = {}, set(), {}
        self.hall = Hall(relay, mode="open")
        self.box = self.hall.runner("box", approve=False)
        self.jobs, self.ended = {}, 0

    def note(self, answer, good):
        self.said[answer.status] = self.said.get(answer.status, 0) + 1
        if answer.status not in (*good, 503, 507):
            raise lib.Failed(f"answered {answer.status} {answer.body!r:.200}")
        return answer.status in good

    def post(self, n):
        id_, blob, answer = self.party.post(self.alice, n, kind="file",
                                            type_="zip")
        if self.note(answer, (201,)):
            self.here[id_] = blob

    def ack(self):
        if len(self.here) < 6:
            return
        id_ = next(iter(self.here))
        if self.note(self.bob.post(f"/items/{id_}/ack"), (204,)):
            del self.here[id_]
            self.gone.add(id_)

    def short_session(self):
        party = Party(self.relay)
        if self.note(party.create(), (200, 201)):
            peer = Peer(self.relay, None, party.sid)
            answer = peer.post("/participants",
                               party.join_text("owner", "o"))
            if self.note(answer, (201,)):
                peer.token, peer.name = answer.json["token"], "o"
                self.note(party.post(peer, 200000, kind="file",
                                     type_="zip")[2], (201,))
                self.note(peer.post("/close"), (204,))
        party.end()

    def job(self):
        """Each step by itself: what was said of it holds."""
        hall, box = self.hall, self.box
        hall.beat(box)
        id_, answer = hall.job()
        if answer.status == 409:    # box still has one that got stuck
            self.said[409] = self.said.get(409, 0) + 1
            for old in self.jobs:
                self.note(hall.sam.post(f"/jobs/{old}/cancel"), (204, 404))
                self.note(hall.result(box, old), (201, 403, 409))
            return
        if not self.note(answer, (201,)):
            return
        self.jobs[id_] = "assigned"
        if self.note(box.post(f"/jobs/{id_}/claim"), (200,)):
            self.jobs[id_] = "running"
        if self.note(hall.result(box, id_), (201,)):
            self.jobs[id_] = "done"
            self.ended += 1

    def check_jobs(self, what):
        order = ["assigned", "running", "done"]
        for id_, said in self.jobs.items():
            state = self.hall.state(id_)[0]
            if state == "failed" and said != "done":
                continue
            if state not in order[order.index(said):]:
                raise lib.Failed(f"{what}: job {id_} was {said}, is {state}")
            states = [e[0] for e in self.hall.events_of(id_)]
            if len(states) != len(set(states)):
                raise lib.Failed(f"{what}: job {id_}: {states}")

    def live(self):
        self.post(100)
        self.post(70000)
        self.ack()
        self.post(3000)

    def check(self, what):
        ids = {}
        for e in self.bob.events():
            if e["kind"] == "item":
                header = lib.json.loads(e["data"]["envelope"])["header"]
                if header["id"] in ids:
                    raise lib.Failed(f"{what}: an item twice")
                ids[header["id"]] = e["seq"]
        for id_, blob in self.here.items():
            if id_ not in ids:
                raise lib.Failed(f"{what}: item {id_} is lost")
            got = self.bob.get(f"/items/{id_}/blob")
            if got.status != 200 or got.body != blob:
                raise lib.Failed(f"{what}: blob of {id_}: {got.status}")
        if not self.gone <= ids.keys():
            raise lib.Failed(f"{what}: an acknowledged item is lost")


def start():
    os.environ["FAULTS"] = FAULTS
    os.environ["LD_PRELOAD"] = lib.BUILD + "/tests/hostile/faults.so"
    try:
        return lib.Relay("--max-sessions-hour", "0", "--max-items-minute",
                         "0", "--min-free-bytes", "0")
    finally:
        del os.environ["LD_PRELOAD"]


def restart(relay):
    os.environ["LD_PRELOAD"] = lib.BUILD + "/tests/hostile/faults.so"
    try:
        relay.start()
    finally:
        del os.environ["LD_PRELOAD"]


def recovers(world, what):
    """Within the seconds that its own try takes."""
    lib.wait_for(lambda: Peer(world.relay).get("/v1/health").status == 200,
                 f"{what}: health", 5)
    n = len(world.here)
    world.post(10)
    if len(world.here) != n + 1:
        raise lib.Failed(f"{what}: it does not take items again")


def fsck():
    done = subprocess.run([lib.BUILD + "/airlox-relay", "fsck",
                           lib.T + "/relay"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lib.ok(done.returncode == 0, f"fsck: {done.stdout.strip()} {done.stderr}")


def main():
    if lib.SLOW > 1:
        lib.ok(True, "a preloaded library and a sanitizer do not mix")
        return
    faults = Faults()
    relay = start()
    world = World(relay)
    for name, call in CALLS.items():
        hits = 0
        for word, error in ERRORS.items():
            if word == "short" and name != "write":
                continue
            for after in (0, 1, 3):
                for count in (1, 3):
                    faults.arm(call, error, after, count)
                    world.live()
                    if after == 0:
                        world.short_session()
                        world.job()
                    hits += faults.rest()
                    world.check(f"{name} {word} {after} {count}")
            recovers(world, f"{name} {word}")
            relay.stop(signal.SIGKILL)
            restart(relay)
            world.check(f"{name} {word}, after kill -9")
            world.check_jobs(f"{name} {word}, after kill -9")
            world.job()
        lib.ok(hits > 3 or name in ("rename", "truncate"),
               f"{name}: {hits} faults, nothing lost, nothing made up")
    # a write that fails and cannot be cut off either, then kill -9
    for word, error in ERRORS.items():
        for after in (0, 1, 2):
            faults.arm(2 | 4 | 64, error, after, 4)
            world.live()
            world.job()
            faults.rest()
            world.check(f"write and truncate {word}")
        recovers(world, f"write and truncate {word}")
        relay.stop(signal.SIGKILL)
        restart(relay)
        world.check(f"write and truncate {word}, after kill -9")
        world.check_jobs(f"write and truncate {word}, after kill -9")
        world.job()
    lib.ok(True, "nor when what was written cannot be cut off")
    faults.arm(4, errno.EIO, 0, 1 << 30)
    world.post(100)
    lib.same(Peer(relay).get("/v1/health").status, 503,
             "a disk that stays broken: health says so")
    time.sleep(1.5)
    lib.same(Peer(relay).get("/v1/health").status, 503, "and goes on to")
    faults.rest()
    recovers(world, "a disk that works again")
    lib.ok(world.said[201] > 100 and world.said[503] + world.said.get(
        507, 0) > 30, f"answers: {world.said}")
    lib.ok(world.ended > 20, f"{len(world.jobs)} jobs, {world.ended} done")
    world.hall.end()
    world.party.end()
    lib.same(relay.stop(), 0, "a quiet end")
    fsck()


lib.run_main(main)
