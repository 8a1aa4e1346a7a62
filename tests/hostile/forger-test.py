#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: what a sender's mount shows of its jobs is what their runners signed:
a result of another job, ciphertext, target or approval is in rejected/ and
ends nothing; a runner that falls silent is offline, and its job lost, by the
relay's word, and run by nobody else; a job whose answer was cut off is one
job, and one that is told twice runs once."""
import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                               # noqa: E402
from relay_jobs import Hall, Sse         # noqa: E402
from relay_peer import Peer, frame, now_ms     # noqa: E402

SILENT_S = 2 * lib.SLOW


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"),
                      ensure_ascii=False).encode()


class Stage(Hall):
    """A session with a mount in it, and runners that may be anything."""

    def __init__(self, relay):
        super().__init__(relay)
        self.runners, self.links = {}, {}
        for role in ("sender", "runner"):
            self.links[role] = self.sign("invite", self.owner, relay.url,
                                         role)

    def payload(self, who, kind, meta, refs=()):
        """(id, frame) of an item whose payload is whatever it says."""
        where = lib.T + "/payload"
        with open(where, "wb") as f:
            f.write(canonical(meta))
        words = ",".join(f"{r}:{self.sha[r]}" for r in refs)
        envelope = self.sign("payload", self.seeds[who], self.owner, kind,
                             now_ms(), where, where + ".blob",
                             *([words] * bool(words)))
        with open(where + ".blob", "rb") as f:
            blob = f.read()
        return (json.loads(envelope)["header"]["id"],
                frame(envelope.encode(), blob))

    def decide(self, runner, what, **more):
        """The owner's signed word."""
        meta = {"event": "runner_" + what, "participant_pub": runner.pub,
                "type": "event", **more}
        _, data = self.payload("olga", "event", meta)
        lib.same(self.olga.post("/items", data).status, 201,
                 f"{runner.name}: the owner's {what}")

    def runner_of(self, name, signed=True):
        runner = self.runner(name)      # the relay's approval
        if signed:
            self.decide(runner, "approve")
        self.runners[name] = runner
        return runner


class Pulse(threading.Thread):
    """Heartbeats of a runner, until told to be silent."""

    def __init__(self, hall, runner, job=None):
        super().__init__(daemon=True)
        self.hall, self.job, self.over = hall, job, False
        self.peer = Peer(hall.relay, runner.token, hall.sid)
        self.start()

    def run(self):
        while not self.over:
            self.hall.beat(self.peer, self.job)
            time.sleep(SILENT_S / 8)

    def end(self):
        self.over = True
        self.join()


def sha_of(hall, id_, blob):
    hall.sha[id_] = hashlib.sha256(blob).hexdigest()


def submit(hall, alice, runner, name):
    """A job for this runner, claimed by it: its name and id."""
    os.mkdir(alice.path("jobs/" + name))
    with open(alice.path(f"jobs/{name}/main.py"), "w") as f:
        f.write(f"print('{name}')\n")
    stream = Sse(runner)
    hall.beat(runner)
    with open(alice.path(f"jobs/{name}/ctl"), "w") as f:
        f.write(f"runner {runner.name}\nrun\n")
    kind, data, _ = stream.next()
    lib.same(kind, "job_assigned", f"{name} goes to {runner.name}")
    stream.close()
    job = data["job"]
    lib.same(runner.post(f"/jobs/{job}/claim").status, 200, "claimed")
    sha_of(hall, job, runner.get(f"/items/{job}/blob").body)
    state(alice, name, "running")
    return job


def state(alice, name, word, seconds=15):
    lib.wait_for(lambda: alice.read(f"jobs/{name}/status").decode()
                 .startswith(word), f"{name} is {word}", seconds)


def b64(sha):
    return base64.urlsafe_b64encode(bytes.fromhex(sha)).decode().rstrip("=")


def result_of(hall, job, **more):
    return {"code_sha256": "0" * 64, "exit_code": 0,
            "input_sha256": hashlib.sha256(b"").hexdigest(),
            "job": {"blob_sha256": b64(hall.sha[job]), "id": job},
            "out_files": [], "peak_mem_mb": 1, "reason": None,
            "status": "completed", "stderr": "", "stderr_truncated": False,
            "stdout": "true\n", "stdout_truncated": False, "type": "result",
            "wall_ms": 1, **more}


def post_result(hall, runner, header_job, meta):
    """Its number."""
    _, data = hall.payload(runner.name, "result", meta, (header_job,))
    answer = runner.post("/items", data)
    if answer.status != 201:
        raise lib.Failed(f"result: {answer.status} {answer.body}")
    return answer.json["seq"]


def rejected(alice, seq, words):
    def look():
        for n in os.listdir(alice.path("rejected")):
            if n.startswith(f"{seq:06}-"):
                return alice.read("rejected/" + n).decode()
    text = lib.wait_for(look, f"{seq} in rejected/", 15)
    lib.ok(words in text, f"rejected: {text.strip()!r}")


def is_state(alice, runner, want):
    def look():
        return alice.read(f"runners/{runner.name}/state").decode() == (
            want + "\n")
    lib.wait_for(look, f"{runner.name} is {want}", 15)
    lib.ok(True, f"{runner.name} is {want}")


def forgeries(hall, alice):
    box, other, rogue = (hall.runners[n] for n in ("box", "other", "rogue"))
    victim = submit(hall, alice, box, "victim")
    alive = Pulse(hall, box, victim)
    # of a job of its own for the relay, of the victim for who opens it
    mine = submit(hall, alice, other, "mine")
    forged = post_result(hall, other, mine, result_of(
        hall, victim, stdout="forged\n"))
    rejected(alice, forged, "not from the runner that was asked")
    state(alice, "mine", "lost")
    lib.ok(b"no result that counts" in alice.read("jobs/mine/reason"),
           "a runner whose result does not count has posted none")
    # the right id, another ciphertext
    mine = submit(hall, alice, other, "mine2")
    wrong = result_of(hall, mine)
    wrong["job"]["blob_sha256"] = b64("11" * 32)
    rejected(alice, post_result(hall, other, mine, wrong), "result:")
    state(alice, "mine2", "lost")
    # the relay took it for approved; its owner never signed that
    is_state(alice, rogue, "awaiting")
    late = submit(hall, alice, other, "late")
    hall.decide(other, "reject", reason=None)
    is_state(alice, other, "rejected")
    rejected(alice, post_result(hall, other, late, result_of(hall, late)),
             "result:")
    state(alice, "late", "lost")
    state(alice, "victim", "running", 1)
    alive.end()
    post_result(hall, box, victim, result_of(hall, victim))
    state(alice, "victim", "completed exit 0")
    lib.same(alice.read("jobs/victim/stdout"), b"true\n", "the true one")
    return victim


def given(hall, to):
    """A job of the owner's, of the relay's choice."""
    meta = {"code": "print(1)\n", "filename": "any.py", "files": [],
            "memory_mb": None, "requirements": [], "runtime": "python3.11",
            "target": {"type": "any"}, "timeout_s": 5, "type": "job"}
    job, data = hall.payload("olga", "job", meta)
    sha_of(hall, job, data[4 + int.from_bytes(data[:4], "big"):])
    for runner in hall.runners.values():
        if runner is to:
            hall.beat(to)
        else:
            runner.post("/runners/me/away")
    answer = hall.olga.post("/jobs", data, Airlox_Target='{"type":"any"}')
    lib.same((answer.status, answer.json["runner"]), (201, to.pub),
             f"the relay gives it to {to.name}")
    to.post(f"/jobs/{job}/claim")
    return job


def others(hall, alice, victim):
    """Of somebody else's jobs."""
    rogue, box = hall.runners["rogue"], hall.runners["box"]
    before = len(os.listdir(alice.path("rejected")))
    job = given(hall, rogue)
    rejected(alice, post_result(hall, rogue, job, result_of(hall, job)),
             "approved")
    job = given(hall, box)
    rejected(alice, post_result(hall, box, job, result_of(
        hall, victim, stdout="second\n")), "has one already")
    lib.same(alice.read("jobs/victim/stdout"), b"true\n", "it stays")
    lib.same(len(os.listdir(alice.path("rejected"))), before + 2,
             "each is in rejected/ once")


def silence(hall, alice):
    box = hall.runners["box"]
    hall.beat(box)
    is_state(alice, box, "idle")
    is_state(alice, box, "offline")     # it says nothing any more
    lost = submit(hall, alice, box, "lost")
    with open(alice.path("jobs/lost/wait")) as f:
        said = f.read()                 # the relay gives up on box
    lib.same(said, "lost runner lost\n", "the last word on a lost job")
    hall.beat(box)
    stream = Sse(box)
    hall.beat(box, lost)
    lib.same(stream.next(), ("job_cancel", {"job": lost}, False),
             "its runner is back, and told to stop")
    _, data = hall.payload("box", "result", result_of(hall, lost), (lost,))
    lib.same(box.post("/items", data).status, 409, "too late to answer")
    stream.close()
    again = submit(hall, alice, box, "again")
    post_result(hall, box, again, result_of(hall, again))
    state(alice, "again", "completed")
    lib.same(hall.events_of(lost), [("assigned", None), ("running", None),
                                    ("failed", "runner lost")],
             "it went to one runner, once")
    state(alice, "lost", "lost runner lost", 1)


class Liar:
    """A relay that lies, in front of the true one."""

    def __init__(self, relay):
        self.file = lib.T + "/lie"
        self.tell("none")
        self.child = subprocess.Popen(
            [sys.executable, os.environ["TOP"] + "/tests/hostile/liar.py",
             str(relay.port), self.file], stdout=subprocess.PIPE, text=True)
        lib.atexit.register(self.child.kill)
        self.url = f"http://127.0.0.1:{int(self.child.stdout.readline())}"

    def tell(self, lie):
        with open(self.file, "w") as f:
            f.write(lie)


def serve(box, code, held=None):
    """The one job in the queue, by hand; its id."""
    def look():
        return [n for n in os.listdir(box.path("queue")) if n != "ready"]
    job = lib.wait_for(look, "a job in queue/", 20)
    lib.same(len(job), 1, "one job")
    where = box.path("queue/" + job[0])
    for name, words in (("ctl", "claim"), ("exit", code), ("ctl", "done")):
        with open(f"{where}/{name}", "w") as f:
            f.write(f"{words}\n")
        if words == "claim" and held:
            held()
    lib.wait_for(lambda: not look(), "it is gone", 20)
    return job[0]


def lies(relay):
    """Our mounts on both sides, and a relay between that lies to both."""
    hall, liar = Stage(relay), Liar(relay)
    alice, box = (lib.Mount(name, hall.links[role].replace(
        relay.url, liar.url), *flags) for name, role, flags in (
            ("bob", "sender", ()), ("r1", "runner", ("--name", "r1"))))
    ready = open(box.path("queue/ready"), "w")
    runner = lib.wait_for(lambda: hall.olga.get("/runners").json["runners"],
                          "it joined")[0]
    runner = SimpleNamespace(name="r1", pub=runner["participant_pub"])
    lib.same(hall.olga.post(f"/runners/{runner.pub}/approve").status, 204,
             "approved")
    hall.decide(runner, "approve")
    is_state(alice, runner, "idle")

    def quick(lie):
        liar.tell(lie)
        with open(alice.path("jobs/new"), "w") as f:
            f.write("print(1)\n")
        return os.readlink(alice.path("jobs/last"))

    name, before = quick("cutjob"), posted(hall)
    lib.wait_for(lambda: posted(hall) > before, "it was posted, and cut off")
    time.sleep(0.5)                     # and again, and again
    liar.tell("none")
    ids = [serve(box, "7")]
    state(alice, name, "completed exit 7")
    lib.same(posted(hall), before + 1, "it is one job")
    name = quick("giveagain")
    ids.append(serve(box, "8"))
    state(alice, name, "completed exit 8")
    name = quick("jobfailed")

    def lost():
        state(alice, name, "lost runner lost")
    ids.append(serve(box, "9", lost))
    state(alice, name, "cancelled")     # r1 was told so, too
    lib.ok(True, "the relay's word yields to a result")
    lib.same([n for n in os.listdir(box.path("queue"))], ["ready"],
             "nothing runs twice")
    for job in ids:
        lib.same([e[0] for e in hall.events_of(job)],
                 ["assigned", "running", "done"], "each once")
    ready.close()
    for m in (alice, box):
        lib.same(m.end(), 0, "unmounted")
    hall.end()


def posted(hall):
    return len([e for e in hall.olga.events() if e["kind"] == "item" and
                '"kind":"job"' in e["data"]["envelope"]])


def main():
    relay = lib.Relay("--runner-silent-s", str(SILENT_S))
    hall = Stage(relay)
    for name in ("box", "other"):
        hall.runner_of(name)
    hall.runner_of("rogue", signed=False)
    alice = lib.Mount("alice", hall.links["sender"])
    victim = forgeries(hall, alice)
    others(hall, alice, victim)
    silence(hall, alice)
    lib.same(alice.end(), 0, "unmounted")
    hall.end()
    lies(relay)
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
