#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 90
"""Goal: a running job's output reaches every stream but other runners', in
its place among the events, without a number, from its runner alone; nothing of
it is kept, and readers that are stuck cost no memory and nobody's time."""
import json
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                     # noqa: E402
from relay_jobs import Hall, Sse, naming       # noqa: E402
from relay_peer import Peer                    # noqa: E402


class Output:
    """What a runner says of a job."""

    def __init__(self, hall, runner, job):
        self.hall, self.runner, self.job = hall, runner, job

    def frame(self, seq, n=20, stream="stdout", who=None, job=None):
        return self.hall.sign("progress", self.hall.seeds[
            who or self.runner.name], job or self.job, seq, stream, n)

    def post(self, body, peer=None, job=None):
        return (peer or self.runner).post(
            f"/jobs/{job or self.job}/progress", body)

    def patient(self, body):
        """As a runner does: no faster than it may."""
        while (answer := self.post(body)).status == 429:
            time.sleep(0.1)
        return answer


def says(answer, want, what):
    lib.same((answer.status, answer.error), want, what)


def running(hall, runner):
    job = hall.given(naming(runner))
    lib.same(runner.post(f"/jobs/{job}/claim").status, 200, "claimed")
    return Output(hall, runner, job)


def place(hall, out, other):
    """Between the event that it runs and the one that it is done."""
    streams = [Sse(p, "/stream") for p in (hall.olga, hall.sam)]
    blind = [Sse(p, "/stream") for p in (out.runner, other)]
    for s in streams + blind:
        while True:
            event = s.next()
            if event[0] == "job" and event[1]["state"] == "running":
                break
    sent = [out.frame(i, stream=("stdout", "stderr")[i % 2])
            for i in range(3)]
    for body in sent:
        lib.same(out.patient(body).status, 204, "passed on")
    text, _, _ = hall.send(hall.sam, "text")
    lib.same(out.patient(out.frame(9)).status, 204, "a later one")
    lib.same(hall.result(out.runner, out.job).status, 201, "done")
    for s in streams:
        kinds = []
        for _ in range(7):
            kind, data, numbered = s.next()
            kinds.append(kind)
            if (kind == "progress") == numbered:
                raise lib.Failed(f"{kind}: an id is {numbered}")
            if kind == "progress" and len(kinds) < 4:
                lib.same(data, json.loads(sent[len(kinds) - 1]),
                         "byte for byte")
        lib.same(kinds, ["progress"] * 3 + ["item", "progress", "item",
                                            "job"], "each in its place")
    for s in blind:
        lib.same([s.next()[0] for _ in range(3)], ["item", "item", "job"],
                 "no output for runners")
    says(out.post(out.frame(10)), (409, "conflict"), "it runs no more")
    for s in streams + blind:
        s.close()


def refusals(hall, out, other):
    later = out.frame(5)
    says(out.post(later, peer=other), (403, "forbidden"), "another's")
    says(out.post(later, peer=hall.sam), (403, "forbidden"), "a sender's")
    says(out.post(later, job="A" * 22), (404, "not_found"), "no job")
    says(out.patient(out.frame(5, who="other")), (400, "bad_signature"),
         "another's signature")
    says(out.patient(out.frame(5, job="B" * 22)), (400, "bad_request"),
         "of another job")
    for body in ("", "{}", later[:-1], later.replace("stdout", "stdin"),
                 later + " "):
        answer = out.patient(body)
        if answer.status != 400:
            raise lib.Failed(f"{body[:20]!r}: {answer.status}")
    says(out.patient(later.replace('"seq":5', '"seq":6')),
         (400, "bad_signature"), "a number that was not signed")
    says(out.post("x" * 50000), (413, "too_large"), "too large")
    lib.same(out.patient(later).status, 204, "the true one")
    for seq in (5, 4, 0):
        says(out.patient(out.frame(seq)), (409, "conflict"), f"then {seq}")
    answers = [out.post(out.frame(20 + i)) for i in range(20)]
    fast = [a for a in answers if a.status == 429]
    lib.ok(len(fast) >= 8 and fast[0].headers["Retry-After"] == "1",
           f"{len(fast)} of 20 at once are too many")


def memory(relay):
    with open(f"/proc/{relay.child.pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def stuck(hall, out):
    """Readers that do not read, and one that does."""
    relay = hall.relay
    lazy = [Sse(hall.sam, "/stream") for _ in range(20)]
    seer = hall.join("observer", "seer")
    keen = Sse(seer, "/stream")
    got = []

    def read():
        while (event := keen.next()) and not (
                event[0] == "job" and event[1]["job"] == out.job
                and event[1]["state"] == "done"):
            if event[0] == "progress":
                got.append(event[1]["seq"])
    reader = threading.Thread(target=read)
    reader.start()
    before = memory(relay)
    sent = [100 + i for i in range(16)]
    for seq in sent:
        lib.same(out.patient(out.frame(seq, n=32768)).status, 204, "sent")
    lib.same(hall.result(out.runner, out.job).status, 201, "done")
    reader.join(20 * lib.SLOW)
    lib.same(got, sent, "who reads has them all")
    grown = memory(relay) - before
    lib.ok(grown < 8192 * lib.SLOW, f"{grown} KiB for the others")
    for s in (*lazy, keen):
        s.close()


def main():
    relay = lib.Relay("--max-items-minute", "0")
    hall = Hall(relay)
    box, other = hall.runner("box"), hall.runner("other")
    place(hall, running(hall, box), other)
    out = running(hall, box)
    refusals(hall, out, other)
    stuck(hall, out)
    text = Peer(relay).get("/metrics").body.decode()
    frames = int(re.search(r"\nairlox_live_frames_total (\d+)", text)[1])
    lib.ok(frames >= 20, f"metrics: {frames} frames")
    lib.ok(not any("frame" in json.dumps(e) or e["kind"] == "progress"
                   for e in hall.olga.events()), "nothing of it is an event")
    hall.end()
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
