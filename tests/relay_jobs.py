# SPDX-License-Identifier: MIT
"""Jobs and runners by hand, for tests of the relay: who posts, who claims, who
answers is whoever the test says."""
import hashlib
import json
import secrets
import socket

import lib
from relay_peer import Party, Peer, now_ms

ANY = '{"type":"any"}'


def labels(*words):
    return json.dumps({"type": "labels", "labels": words})


def naming(runner):
    return json.dumps({"type": "runner", "name": runner.name,
                       "participant_pub": runner.pub})


class Hall(Party):
    """A session that takes jobs: an owner, a sender, and runners by name."""

    def __init__(self, relay, mode="execute", **how):
        super().__init__(relay, mode=mode, **how)
        lib.same(self.create().status, 201, f"a session: {mode}")
        self.olga = self.join("owner", "olga")
        self.sam = self.join("sender", "sam")
        self.sha = {}

    def runner(self, name, *words, beat=True, approve=True):
        peer = Peer(self.relay, None, self.sid)
        self.seeds[name] = secrets.token_hex(32)
        text = self.sign("join", self.owner, "runner", self.seeds[name],
                         name, ",".join((name, *words)))
        answer = peer.post("/participants", text)
        lib.same(answer.status, 201, f"runner {name} joined")
        peer.token, peer.name = answer.json["token"], name
        peer.pub = self.sign("pub", self.seeds[name])
        if approve:
            lib.same(self.olga.post(f"/runners/{peer.pub}/approve").status,
                     204, f"{name} is approved")
        if beat:
            self.beat(peer)
        return peer

    def beat(self, peer, job=None):
        answer = peer.post("/runners/me/heartbeat", json.dumps({"job": job}))
        if (answer.status, answer.body) != (200, b"{}"):
            raise lib.Failed(f"heartbeat: {answer.status} {answer.body!r}")

    def sealed(self, who, kind, refs=(), n=64, id_="-"):
        """(id, blob, frame) of a job, result or file."""
        blob = secrets.token_bytes(n + 28)
        words = ",".join(f"{r}:{self.sha[r]}" for r in refs)
        sha = hashlib.sha256(blob).hexdigest()
        envelope = self.sign("item", self.seeds[who.name], kind,
                             {"job": "py", "file": "zip"}.get(kind, "-"),
                             now_ms(), id_, sha, n, *([words] * bool(words)))
        got = json.loads(envelope)["header"]["id"]
        self.sha[got] = sha
        data = len(envelope).to_bytes(4, "big") + envelope.encode() + blob
        return got, blob, data

    def send(self, who, kind="file", **how):
        id_, blob, data = self.sealed(who, kind, **how)
        return id_, blob, who.post("/items", data)

    def job(self, target=ANY, who=None, refs=(), complete=None, **how):
        """(id, answer)"""
        who = who or self.sam
        id_, _, data = self.sealed(who, "job", refs=refs, **how)
        more = {"Airlox_Refs": complete} if complete else {}
        return id_, who.post("/jobs", data, Airlox_Target=target, **more)

    def given(self, target=ANY, to=None, **how):
        """The id of a job that went to this runner."""
        id_, answer = self.job(target, **how)
        lib.same(answer.status, 201, f"posted: {answer.body!r}")
        want = {"job": id_, "reason": None, "runner": answer.json["runner"],
                "state": "assigned"}
        lib.same(answer.json, want, "given to a runner")
        if to:
            lib.same(answer.json["runner"], to.pub, f"which is {to.name}")
        return id_

    def state(self, id_, who=None):
        j = (who or self.sam).get(f"/jobs/{id_}").json
        return j["state"], j["reason"]

    def result(self, runner, job, refs=None, **how):
        return self.send(runner, "result",
                         refs=(job,) if refs is None else refs, **how)[2]

    def events_of(self, job):
        """[(state, reason)] of its events, in order."""
        return [(e["data"]["state"], e["data"]["reason"])
                for e in self.olga.events()
                if e["kind"] == "job" and e["data"]["job"] == job]

    def until(self, id_, state, reason=None, seconds=10):
        lib.wait_for(lambda: self.state(id_) == (state, reason),
                     f"{id_} is {state}, {reason}", seconds)
        lib.ok(True, f"it is {state}: {reason}")


class Sse:
    """A stream as it is: (kind, data, whether it had an id)."""

    def __init__(self, peer, path="/runners/me/stream"):
        self.sock = socket.create_connection(("127.0.0.1", peer.relay.port))
        self.sock.sendall(
            f"GET /v1/sessions/{peer.sid}{path} HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {peer.token}\r\n\r\n".encode())
        self.sock.settimeout(20 * lib.SLOW)
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def next(self):
        event = {}
        while line := self.file.readline().decode():
            line = line.rstrip("\n")
            if line == "" and event:
                return (event["event"], json.loads(event["data"]),
                        "id" in event)
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value
        return None

    def next_of(self, *kinds):
        while (event := self.next()) and event[0] not in kinds:
            pass
        return event

    def close(self):
        self.file.close()
        self.sock.close()
