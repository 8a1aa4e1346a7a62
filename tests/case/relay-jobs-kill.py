#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: jobs flow while the relay is killed at random: each that was posted
ends in one state, once, and none is given out or run twice; and a crash that
tears a job from where it goes, or a result from what it ends, is mended."""
import http.client
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                              # noqa: E402
from relay_jobs import ANY, Hall, Sse   # noqa: E402
from relay_peer import Peer             # noqa: E402

REC_JOB = 11
BROKEN = (OSError, http.client.HTTPException)


class Worker(threading.Thread):
    """A runner that does what it is told, until the relay is gone; then
    again, by the same name."""

    def __init__(self, hall, peer, lock, ran):
        super().__init__(daemon=True)
        self.hall, self.peer, self.lock, self.ran = hall, peer, lock, ran
        self.over, self.odd = False, []

    def work(self):
        self.hall.beat(self.peer)
        threading.Thread(target=self.live, daemon=True).start()
        stream = Sse(self.peer)
        while not self.over and (event := stream.next()):
            if event[0] == "job_assigned":
                self.do(event[1]["job"])

    def live(self):
        """Heartbeats of their own connection, for this life of the relay."""
        peer = Peer(self.hall.relay, self.peer.token, self.hall.sid)
        child = self.hall.relay.child
        try:
            while not self.over and child is self.hall.relay.child:
                self.hall.beat(peer)
                time.sleep(0.3)
        except (*BROKEN, lib.Failed):
            pass

    def do(self, job):
        if self.peer.post(f"/jobs/{job}/claim").status != 200:
            return
        self.ran.append(job)
        time.sleep(random.uniform(0, 0.02))
        with self.lock:
            if job not in self.hall.sha:
                return
            _, _, data = self.hall.sealed(self.peer, "result", refs=(job,))
        for _ in range(30):     # through a crash, the same bytes
            try:
                answer = self.peer.post("/items", data)
            except BROKEN:
                time.sleep(0.1)
                continue
            if answer.status not in (201, 409):
                self.odd.append((job, answer.status, answer.body))
            return

    def run(self):
        while not self.over:
            try:
                self.work()
            except (*BROKEN, lib.Failed, ValueError):
                pass
            time.sleep(0.05)


class Sender(threading.Thread):
    """Posts jobs; where the answer is lost, the same again."""

    def __init__(self, hall, peer, lock):
        super().__init__(daemon=True)
        self.hall, self.peer, self.lock = hall, peer, lock
        self.over, self.posted, self.again, self.odd = False, {}, 0, []

    def run(self):
        while not self.over:
            with self.lock:
                id_, _, data = self.hall.sealed(self.peer, "job")
            while True:
                try:
                    answer = self.peer.post("/jobs", data, Airlox_Target=ANY)
                    break
                except BROKEN:
                    self.again += 1
                    time.sleep(0.05)
            self.posted[id_] = answer.status
            if answer.status not in (201, 409):
                self.odd.append((id_, answer.status, answer.body))
            if answer.status == 409:
                time.sleep(0.01)


def rounds(relay, n):
    for _ in range(n):
        time.sleep(random.uniform(0.3, 1.0))
        relay.stop(signal.SIGKILL)
        relay.start()


def settle(hall, jobs):
    """Until none is open."""
    def look():
        return all(hall.state(j)[0] in ("done", "failed") for j in jobs)
    lib.wait_for(look, "every job has ended", 30)


def verdict(hall, jobs, ran):
    seen = {}
    for e in hall.olga.events():
        if e["kind"] == "job":
            seen.setdefault(e["data"]["job"], []).append(e["data"])
    ends = {"done": 0, "failed": 0}
    for id_ in jobs:
        states = [d["state"] for d in seen.get(id_, [])]
        if states not in (["failed"], ["assigned", "failed"],
                          ["assigned", "running", "failed"],
                          ["assigned", "running", "done"]):
            raise lib.Failed(f"{id_}: {states}")
        ends[states[-1]] += 1
        if len({d["runner"] for d in seen[id_] if d["runner"]}) > 1:
            raise lib.Failed(f"{id_}: two runners")
    lib.same(set(seen) - set(jobs), set(), "no job that nobody posted")
    twice = {j for j in ran if ran.count(j) > 1}
    lib.same(twice, set(), f"{len(ran)} were run, none twice")
    lib.ok(ends["done"] > 5, f"{len(jobs)} jobs, each ended once: {ends}")


def flow(relay, n):
    hall, lock, ran = Hall(relay, mode="open"), threading.Lock(), []
    workers = [Worker(hall, hall.runner(f"r{i}", approve=False), lock, ran)
               for i in range(3)]
    senders = [Sender(hall, hall.join("sender", f"s{i}"), lock)
               for i in range(2)]
    for t in workers + senders:
        t.start()
    rounds(relay, n)
    for t in senders:
        t.over = True
        t.join(30)
    jobs = [j for s in senders for j in s.posted]
    settle(hall, jobs)
    for w in workers:
        w.over = True
    lib.same([t.odd for t in workers + senders if t.odd], [],
             "nobody was told nonsense")
    verdict(hall, jobs, ran)
    lib.ok(sum(s.again for s in senders) > 0, "some answers were lost")
    hall.olga.post("/close")
    hall.end()


def tear(relay):
    """Killed, and the log ends before its last record, which says where the
    job goes: written in one go with the job, but not yet on the disk."""
    relay.stop(signal.SIGKILL)
    where = lib.T + "/relay/log/"
    path = where + sorted(os.listdir(where))[-1]
    mark = b"AXLR\x01" + bytes([REC_JOB, 0, 0])
    with open(path, "r+b") as f:
        at = f.read().rfind(mark)
        if at < 0 or at % 8:
            raise lib.Failed("no record to tear off")
        f.truncate(at)
    relay.start()


def torn(relay):
    hall = Hall(relay, mode="open")
    box = hall.runner("box", approve=False)
    id_, _, data = hall.sealed(hall.sam, "job")
    lib.same(hall.sam.post("/jobs", data, Airlox_Target=ANY).status, 201,
             "posted")
    tear(relay)
    hall.until(id_, "failed", "relay restarted")
    hall.beat(box)
    answer = hall.sam.post("/jobs", data, Airlox_Target=ANY)
    lib.same((answer.status, answer.json["state"]), (201, "failed"),
             "posted again: it is not given out any more")
    lib.same(box.post(f"/jobs/{id_}/claim").status, 403, "to nobody")
    job = hall.given()
    lib.same(box.post(f"/jobs/{job}/claim").status, 200, "claimed")
    lib.same(hall.result(box, job).status, 201, "answered")
    tear(relay)
    hall.until(job, "done")
    lib.same(hall.events_of(job), [("assigned", None), ("running", None),
                                   ("done", None)], "mended, once")
    hall.end()


def main():
    random.seed(os.getpid())
    relay = lib.Relay("--max-items-minute", "0", "--claim-s", "2",
                      "--runner-silent-s", "3")
    torn(relay)
    # SOAK: minutes; a kill takes about a second
    flow(relay, max(5, int(os.environ.get("SOAK", 0)) * 60))
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
