#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: a job goes to one runner that may have it, once, or has failed and
says why; each role does what it may and no more; kill -9 between any two steps
changes none of it."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                     # noqa: E402
from relay_jobs import ANY, Hall, Sse, labels, naming  # noqa: E402
from relay_peer import Party, Peer             # noqa: E402

NONE = (409, "no_runner_available")
BUSY = (409, "runner_busy")
NOBODY = "A" * 22


def says(answer, want, what):
    lib.same((answer.status, answer.error), want, what)


def crash(relay):
    relay.stop(signal.SIGKILL)
    relay.start()


def approval(hall):
    box = hall.runner("box", "gpu", beat=False, approve=False)
    row = hall.sam.get("/runners").json["runners"]
    join = json.loads(row[0].pop("signed_join"))
    lib.same(row, [{"approved": False, "job": None, "online": False,
                    "participant_pub": box.pub, "rejected": False}],
             "a runner is listed")
    lib.same(join["join"]["runner"]["labels"], ["gpu"], "with its own words")
    hall.beat(box)
    job, answer = hall.job()
    says(answer, NONE, "nobody is approved")
    lib.same(hall.state(job), ("failed", "no_runner_available"), "and so")
    lib.same(hall.events_of(job), [("failed", "no_runner_available")],
             "in the log as well")
    path = f"/runners/{box.pub}/approve"
    says(hall.sam.post(path), (403, "forbidden"), "a sender approves nobody")
    says(box.post(path), (403, "forbidden"), "nor a runner itself")
    for who in ("x", "me", NOBODY, hall.sign("pub", hall.seeds["sam"])):
        says(hall.olga.post(f"/runners/{who}/approve"), (404, "not_found"),
             f"no runner: {who[:4]}")
    event, _, answer = hall.send(hall.olga, "event")
    says(box.get(f"/items/{event}/blob"), (403, "forbidden"),
         "not approved: not even an event")
    for _ in range(2):
        lib.same(hall.olga.post(path).status, 204, "approved")
    lib.same(box.get(f"/items/{event}/blob").status, 200, "now it is")
    return box


def bad_targets(hall):
    for target in (
            "", "{}", "any", '"any"', '{"type":"all"}', '{"type":"any"} x',
            '{"type":"any","type":"any"}', '{"type":"any","x":"y"}',
            '{"type":"labels"}', '{"type":"labels","labels":[]}',
            '{"type":"labels","labels":["UP"]}', labels("a", ""),
            '{"type":"labels","labels":["a"', labels(*["a"] * 17),
            '{"type":"labels","labels":"a"}', labels("a" * 64),
            '{"type":"runner","name":"box"}', '{"type":null}',
            '{"type":"runner","name":"box","participant_pub":"AAAA"}',
            '{"type":"any"' + "," * 3000):
        answer = hall.job(target)[1]
        if (answer.status, answer.error) != (400, "bad_request"):
            raise lib.Failed(f"target {target!r:.60}: {answer.status}")
    lib.ok(True, "what is no target is refused")
    _, _, data = hall.sealed(hall.sam, "job")
    says(hall.sam.post("/jobs", data), (400, "bad_request"), "no target")
    says(hall.sam.post("/items", data), (400, "bad_request"),
         "a job is no item like others")
    _, _, data = hall.sealed(hall.sam, "file")
    says(hall.sam.post("/jobs", data, Airlox_Target=ANY),
         (400, "bad_request"), "nor is a file a job")
    seer = hall.seer = hall.join("observer", "seer")
    says(hall.job(who=seer)[1], (403, "forbidden"), "an observer posts none")


def routing(hall, box):
    bad_targets(hall)
    other = hall.runner("other", "gpu", "big")
    here = naming(box)
    says(hall.job(labels("gpu", "small"))[1], NONE, "one label of two")
    says(hall.job(here.replace("box", "bax"))[1], NONE, "another's name")
    first = hall.given(labels("big", "gpu"), to=other)
    says(hall.job(labels("big"))[1], NONE, "it has a job")
    second = hall.given(here, to=box)
    says(hall.job(here)[1], BUSY, "so has this one")
    says(hall.job()[1], NONE, "and nobody else is there")
    rows = {r["participant_pub"]: r["job"]
            for r in hall.sam.get("/runners").json["runners"]}
    lib.same(rows, {box.pub: second, other.pub: first}, "both are busy")
    for runner, job in ((other, first), (box, second)):
        lib.same(hall.result(runner, job).status, 201, "an answer")
        lib.same(hall.state(job), ("done", None), "ends it")
    turns = [hall.given() for _ in range(2)]
    lib.same({hall.sam.get(f"/jobs/{j}").json["runner"] for j in turns},
             {box.pub, other.pub}, "any: one each")
    for job in turns:
        for runner in (box, other):
            hall.result(runner, job)
        lib.same(hall.state(job), ("done", None), "of which one counted")
    return other


def claiming(hall, box, other):
    stream = Sse(box)
    job = hall.given(naming(box))
    lib.same(stream.next(), ("job_assigned", {"job": job}, False), "told")
    path = f"/jobs/{job}/claim"
    says(hall.sam.post(path), (403, "forbidden"), "no sender claims")
    says(other.post(path), (403, "forbidden"), "nor another runner")
    for id_ in (NOBODY, "x", "x" * 80):
        says(box.post(f"/jobs/{id_}/claim"), (404, "not_found"), "no job")
    for _ in range(2):
        answer = box.post(path)
        lib.same((answer.status, answer.json["state"]), (200, "running"),
                 "claimed, and said again")
    says(hall.result(other, job), (403, "forbidden"), "another's answer")
    says(hall.result(box, job, refs=()), (400, "policy"), "an answer to what")
    lib.same(hall.result(box, job).status, 201, "its runner's")
    says(hall.result(box, job), (409, "conflict"), "and that was it")
    says(box.post(path), (410, "gone"), "nothing to claim any more")
    lib.same(hall.events_of(job), [("assigned", None), ("running", None),
                                   ("done", None)], "its events")
    says(Peer(hall.relay, "x" * 43, hall.sid).post(path),
         (401, "unauthorized"), "a wrong token")
    stream.close()


def blobs(hall, box, other):
    data, blob, _ = hall.send(hall.sam, n=100000)
    secret, _, _ = hall.send(hall.sam)
    forged, _, _ = hall.send(hall.sam)
    hall.sha[forged] = "0" * 64
    job = hall.given(labels("gpu"), refs=(data, forged))
    mine, not_mine = (box, other) if hall.sam.get(
        f"/jobs/{job}").json["runner"] == box.pub else (other, box)
    lib.same(mine.get(f"/items/{job}/blob").status, 200, "its job")
    lib.same(mine.get(f"/items/{data}/blob").body, blob, "and its input")
    for id_, what in ((secret, "no other item"),
                      (forged, "nor one that the job did not pin")):
        says(mine.get(f"/items/{id_}/blob"), (403, "forbidden"), what)
        says(mine.post(f"/items/{id_}/want"), (403, "forbidden"), what)
    for id_ in (job, data):
        says(not_mine.get(f"/items/{id_}/blob"), (403, "forbidden"),
             "nothing for the other")
    hall.olga.post(f"/items/{data}/ack")
    for peer in (hall.olga, mine):
        lib.same(peer.get(f"/items/{data}/blob").status, 200,
                 "it stays until its runner has it")
    lib.same(hall.result(mine, job).status, 201, "done")
    says(mine.get(f"/items/{data}/blob"), (403, "forbidden"),
         "an input is for the time of the job")


def unlisted(hall, box):
    """The published client lists no inputs where the relay could see them."""
    data, blob, _ = hall.send(hall.sam)
    for peer in (hall.olga, hall.seer):
        lib.same(peer.post(f"/items/{data}/ack").status, 204, "it has it")
    job = hall.given(naming(box))
    after, _, _ = hall.send(hall.sam)
    lib.same(box.get(f"/items/{data}/blob").body, blob,
             "a job that lists nothing: what was here before it")
    says(box.get(f"/items/{after}/blob"), (403, "forbidden"), "not later")
    lib.same(hall.result(box, job).status, 201, "done")
    says(box.get(f"/items/{data}/blob"), (403, "forbidden"), "nor after it")
    hall.sha[NOBODY] = "0" * 64
    for how in ({"complete": "complete"}, {"refs": (NOBODY,)}):
        job = hall.given(naming(box), **how)
        says(box.get(f"/items/{data}/blob"), (403, "forbidden"),
             f"nothing for a job that needs nothing: {list(how)}")
        lib.same(hall.result(box, job).status, 201, "done")


def cancelling(hall, box):
    stream = Sse(box)
    here = naming(box)
    sue = hall.join("sender", "sue")
    job = hall.given(here)
    lib.same(stream.next()[1], {"job": job}, "told")
    path = f"/jobs/{job}/cancel"
    says(sue.post(path), (403, "forbidden"), "not by another sender")
    says(box.post(path), (403, "forbidden"), "nor by its runner")
    says(hall.sam.post(f"/jobs/{NOBODY}/cancel"), (404, "not_found"), "none")
    for _ in range(2):
        lib.same(hall.sam.post(path).status, 204, "by its sender")
    lib.same(hall.state(job), ("failed", "cancelled"), "not claimed: over")
    lib.same(stream.next(), ("job_cancel", {"job": job}, False), "told")
    says(box.post(f"/jobs/{job}/claim"), (410, "gone"), "withdrawn")
    says(hall.result(box, job), (409, "conflict"), "a failed job's answer")
    job = hall.given(here)
    lib.same(stream.next()[0], "job_assigned", "the next")
    box.post(f"/jobs/{job}/claim")
    lib.same(hall.olga.post(f"/jobs/{job}/cancel").status, 204, "by owner")
    lib.same(stream.next(), ("job_cancel", {"job": job}, False), "to stop")
    lib.same(hall.state(job)[0], "running", "its runner says when")
    again = Sse(box)
    lib.same(again.next(), ("job_cancel", {"job": job}, False),
             "said to a stream that is new")
    lib.same(hall.result(box, job).status, 201, "its answer counts")
    lib.same(hall.sam.post(f"/jobs/{job}/cancel").status, 204, "too late")
    lib.same(hall.state(job), ("done", None), "done is done")
    stream.close()
    again.close()


def again(hall, box):
    """The answer was lost: the same bytes once more."""
    id_, _, data = hall.sealed(hall.sam, "job")
    answers = [hall.sam.post("/jobs", data, Airlox_Target=ANY)
               for _ in range(3)]
    lib.same([a.status for a in answers], [201] * 3, "posted three times")
    lib.same([a.body for a in answers[1:]], [answers[0].body] * 2,
             "and given once")
    lib.same(len(hall.events_of(id_)), 1, "one event")
    crash(hall.relay)
    answer = hall.sam.post("/jobs", data, Airlox_Target=ANY)
    lib.same((answer.status, answer.body), (201, answers[0].body),
             "after a crash too")
    sha = hall.sha[id_]
    _, _, other = hall.sealed(hall.sam, "job", id_=id_)
    hall.sha[id_] = sha
    says(hall.sam.post("/jobs", other, Airlox_Target=ANY),
         (409, "conflict"), "another job of this id")
    _, _, data = hall.sealed(hall.sam, "job")
    for _ in range(2):
        says(hall.sam.post("/jobs", data, Airlox_Target=labels("none")),
             NONE, "no runner is no runner")
    runner = answer.json["runner"]
    for peer in hall.runners:
        if peer.pub == runner:
            lib.same(hall.result(peer, id_).status, 201, "done")


def crashes(hall, box):
    """Between any two steps."""
    relay, here = hall.relay, labels("only-box")
    says(hall.job(here)[1], NONE, "a label nobody has")
    solo = hall.runner("solo", "only-box")
    for steps in range(4):
        job = hall.given(here, to=solo)
        want = ("assigned", None)
        if steps > 0:
            crash(relay)
        stream = Sse(solo)
        lib.same(stream.next(), ("job_assigned", {"job": job}, False),
                 "told, by whichever relay")
        lib.same(solo.post(f"/jobs/{job}/claim").status, 200, "claimed")
        if steps > 1:
            crash(relay)
        lib.same(hall.state(job)[0], "running", "it runs")
        lib.same(hall.sam.post(f"/jobs/{job}/cancel").status, 204, "cancel")
        if steps > 2:
            crash(relay)
        stream = Sse(solo)
        lib.same(stream.next(), ("job_cancel", {"job": job}, False),
                 "and cancelled")
        lib.same(hall.result(solo, job).status, 201, "answered")
        crash(relay)
        lib.same(hall.state(job), ("done", None), "done")
        lib.same([e[0] for e in hall.events_of(job)],
                 ["assigned", "running", "done"], "each once")
        says(hall.job(here)[1], NONE, "not heard of since the start")
        hall.beat(solo)
    says(box.post("/runners/me/heartbeat", b'{"job":1}'),
         (400, "bad_request"), "a heartbeat is well formed")


def away(hall, box):
    """Who goes is offline at once, and may come back."""
    here = naming(box)
    hall.beat(box)
    hall.given(here, to=box)
    for _ in range(2):
        lib.same(box.post("/runners/me/away").status, 204, "it goes")
    says(hall.sam.post("/runners/me/away"), (403, "forbidden"), "no runner")
    rows = {r["participant_pub"]: r for r in
            hall.sam.get("/runners").json["runners"]}
    row = rows[box.pub]
    lib.same(row["online"], False, "it is seen at once")
    lib.same(box.post(f"/jobs/{row['job']}/claim").status, 200,
             "what it was given it may do")
    lib.same(hall.result(box, row["job"]).status, 201, "to the end")
    says(hall.job(here)[1], NONE, "but has no other")
    hall.beat(box)
    job = hall.given(here, to=box)
    lib.same(hall.result(box, job).status, 201, "until it is back")


def ends(hall):
    """Whoever leaves takes the job along."""
    tokens = []
    for how in ("leave", "reject", "revoke"):
        gone = hall.runner("gone-" + how, how)
        stream = Sse(gone)
        job = hall.given(labels(how), to=gone)
        gone.post(f"/jobs/{job}/claim")
        if how == "leave":
            lib.same(gone.post("/leave").status, 204, "it leaves")
        elif how == "reject":
            for _ in range(2):
                lib.same(hall.olga.post(f"/runners/{gone.pub}/reject")
                         .status, 204, "rejected")
            says(hall.olga.post(f"/runners/{gone.pub}/approve"),
                 (409, "conflict"), "for good")
        else:
            lib.same(hall.olga.post("/roles/runner/revoke").status, 204,
                     "revoked")
        hall.until(job, "failed", "runner left")
        says(gone.post("/runners/me/heartbeat", b'{"job":null}'),
             (401, "unauthorized"), "its token is dead")
        while stream.next():
            pass
        lib.ok(True, "its stream has ended")
        tokens.append(gone)
    rows = hall.olga.get("/runners").json["runners"]
    lib.same([(r["participant_pub"], r["rejected"], r["online"])
              for r in rows], [(tokens[1].pub, True, False)],
             "of them the rejected one is still listed")
    says(hall.job()[1], NONE, "nobody is left")
    return tokens


def trail(hall):
    lines = lib.json_lines(hall.olga.get("/audit.jsonl").body.decode())
    words = {}
    for line in lines:
        words.setdefault(line["event"], []).append(line)
    lib.ok(len(words["approved"]) >= 5 and len(words["rejected"]) == 1
           and len(words["cancelled"]) >= 5, "the trail says who may")
    states = [(e["job"], e["state"]) for e in words["job"]]
    lib.same(len(states), len(set(states)), "no state twice")
    over = [j for j, s in states if s in ("done", "failed")]
    lib.same(sorted(over), sorted({j for j, _ in states}),
             f"{len(over)} jobs, each ended once")


def silence(relay):
    """Who does not claim, who does not live."""
    relay.stop()
    flags, relay.flags = relay.flags, ("--claim-s", "1",
                                       "--runner-silent-s", "2")
    relay.start()
    hall = Hall(relay, mode="open")
    box = hall.runner("box", approve=False)
    late = hall.given()
    hall.until(late, "failed", "not claimed in time")
    says(box.post(f"/jobs/{late}/claim"), (410, "gone"), "too late")
    hall.beat(box)
    lost = hall.given()
    lib.same(box.post(f"/jobs/{lost}/claim").status, 200, "claimed")
    hall.until(lost, "failed", "runner lost")
    says(hall.result(box, lost), (409, "conflict"), "too late to answer")
    says(hall.job()[1], NONE, "and offline")
    hall.beat(box)
    stream = Sse(box)
    hall.beat(box, lost)
    lib.same(stream.next(), ("job_cancel", {"job": lost}, False),
             "one that lives after all is told to stop")
    empty = hall.given()
    box.post(f"/jobs/{empty}/claim")

    def not_mine():
        hall.beat(box)
        return hall.state(empty)[0] == "failed"
    lib.wait_for(not_mine, "a job that its runner never names is lost")
    hall.beat(box)
    crashed = hall.given()
    box.post(f"/jobs/{crashed}/claim")
    crash(relay)
    hall.until(crashed, "failed", "runner lost")
    lib.same(hall.sam.get("/jobs/" + crashed).json["runner"], box.pub,
             "the log knows who had it")
    relay.stop()
    relay.flags = flags
    relay.start()
    return hall


def figures(relay):
    text = Peer(relay).get("/metrics").body.decode()
    lib.ok('airlox_jobs{state="running"} 0\n' in text
           and 'airlox_jobs_ended_total{state="done"}' in text, "metrics")
    limits = Peer(relay).get("/v1/limits").json
    lib.same((limits["claim_ms"], limits["runner_silent_ms"]),
             (30000, 30000), "limits")


def over(relay, *halls):
    relay.stop()
    done = subprocess.run([lib.BUILD + "/airlox-relay", "fsck",
                           lib.T + "/relay"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lib.ok(done.returncode == 0, f"fsck: {done.stdout.strip()}")
    relay.start()
    for hall in halls:
        lib.same(hall.olga.post("/close").status, 204, "closed")
    crash(relay)
    log = b"".join(open(f"{lib.T}/relay/log/{n}", "rb").read()
                   for n in os.listdir(lib.T + "/relay/log"))
    lib.ok(b"runner left" not in log and b"no_runner" not in log,
           "a purge leaves nothing of jobs")
    for hall in halls:
        hall.end()


def main():
    relay = lib.Relay("--max-items-minute", "0")
    plain = Party(relay)
    plain.create()
    owner = plain.join("owner", "o")
    lib.same(owner.get("/runners").json, {"runners": []}, "relay mode: none")
    says(owner.get("/jobs/" + NOBODY), (404, "not_found"), "nor jobs")
    plain.end()
    hall = Hall(relay)
    box = approval(hall)
    other = routing(hall, box)
    hall.runners = (box, other)
    claiming(hall, box, other)
    blobs(hall, box, other)
    unlisted(hall, box)
    cancelling(hall, box)
    for peer in hall.runners:
        hall.beat(peer)
    again(hall, box)
    away(hall, box)
    crashes(hall, box)
    ends(hall)
    trail(hall)
    second = silence(relay)
    figures(relay)
    over(relay, hall, second)
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
