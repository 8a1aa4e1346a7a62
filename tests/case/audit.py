#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: a saved audit trail is checked again without the relay, signature by
signature; every way to tamper with it is found, or is among what the report
says it does not prove."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                      # noqa: E402
from relay_peer import Party                    # noqa: E402

SAVED = lib.T + "/trail"


def verify(*words, invite=None):
    env = lib.peer_environ("judge")
    if invite:
        env["AIRLOX_INVITE"] = invite
    done = subprocess.run([lib.AIRLOXFS, "audit", "--verify", *words],
                          env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=30 * lib.SLOW)
    return done.returncode, done.stdout, done.stderr


def session(relay):
    party = Party(relay)
    party.create()
    olga, eve = party.join("owner", "olga"), party.join("observer", "eve")
    alice, bob = party.join("sender", "alice"), party.join("sender", "bob")
    first, _, _ = party.post(alice)
    party.post(bob, 300, kind="file", type_="md")
    for peer in (olga, eve, bob):
        peer.post(f"/items/{first}/ack")
    lib.wait_for(lambda: "evicted" in olga.kinds(), "evicted")
    eve.post(f"/items/{first}/want")
    party.post(olga, 70000, kind="file", type_="zip")
    bob.post("/leave")
    olga.post("/roles/sender/revoke")
    party.post(olga)
    text = eve.get("/audit.jsonl").body.decode()
    party.end()
    return party, text.splitlines()


def with_jobs(relay):
    """Approved, rejected, a job that nobody could take, and one cancelled."""
    party = Party(relay, mode="execute")
    party.create()
    olga, eve = party.join("owner", "olga"), party.join("observer", "eve")
    for name, verdict in (("good", "approve"), ("bad", "reject")):
        party.join("runner", name)
        pub = party.sign("pub", party.seeds[name])
        lib.same(olga.post(f"/runners/{pub}/{verdict}").status, 204, verdict)
    id_, _, data = party.item("olga", bytes(128), kind="job", type_="py")
    lib.same(olga.post("/jobs", data, Airlox_Target='{"type":"any"}').status,
             409, "a job without a runner")
    text = eve.get("/audit.jsonl").body.decode()
    party.end()
    return text.splitlines()


def at(lines, event, nth=0):
    return [i for i, line in enumerate(lines)
            if json.loads(line)["event"] == event][nth]


def dump(line):
    return json.dumps(line, separators=(",", ":"), sort_keys=True,
                      ensure_ascii=False)


def edit(lines, i, **fields):
    line = json.loads(lines[i])
    line.update(fields)
    return lines[:i] + [dump(line)] + lines[i + 1:]


def without(lines, i):
    return lines[:i] + lines[i + 1:]


def swapped(lines, i, k):
    out = list(lines)
    out[i], out[k] = out[k], out[i]
    return out


def renumbered(lines):
    out, n = [], 0
    for line in map(json.loads, lines):
        if "seq" in line:
            line["seq"] = n
            n += 1
        out.append(dump(line))
    return out


def flip(text):
    """Another character in the middle of a signature."""
    i = text.rindex('"sig":"') + 20
    return text[:i] + ("A" if text[i] != "A" else "B") + text[i + 1:]


def tamperings(lines, foreign):
    """(what, lines, a word of the verdict)"""
    joined, posted = at(lines, "joined", 2), at(lines, "posted")
    second = at(lines, "posted", 1)
    line = json.loads(lines[posted])
    join = json.loads(lines[joined])
    for event in ("joined", "posted", "evicted", "wanted", "left", "revoked"):
        yield (f"no {event}", without(lines, at(lines, event)), "missing")
    yield "no beginning", lines[1:], "begin"
    yield "a line twice", lines[:posted + 1] + lines[posted:], "missing"
    yield "two lines swapped", swapped(lines, posted, second), "missing"
    yield ("an item before its author", renumbered(
        swapped(lines, joined, posted)), "author")
    yield ("a join left out, and renumbered", renumbered(
        without(lines, joined)), "author")
    yield ("the item's hash", edit(lines, posted, blob_sha256=json.loads(
        lines[second])["blob_sha256"]), "signature")
    yield ("the item's signature", edit(lines, posted, envelope=flip(
        line["envelope"])), "signature")
    yield ("the item's size", edit(lines, posted, envelope=line["envelope"]
           .replace('"size":100', '"size":101')), "signature")
    yield ("the item's author", edit(lines, posted, envelope=line["envelope"]
           .replace(join["participant_pub"], json.loads(lines[joined + 1])
                    ["participant_pub"])), "signature")
    yield ("an item twice, numbered", renumbered(
        lines[:second] + [lines[posted]] + lines[second:]), "before")
    yield ("the join's signature", edit(lines, joined, signed_join=flip(
        join["signed_join"])), "signature")
    yield ("another name beside the join", edit(
        lines, joined, display_name="alicia"), "another thing")
    yield ("another role beside the join", edit(lines, joined, role="owner"),
           "another thing")
    yield ("another name in the join", edit(
        lines, joined, display_name="alicia", signed_join=join["signed_join"]
        .replace('"alice"', '"alicia"')), "signature")
    other = json.loads(foreign[at(foreign, "joined", 2)])
    other["seq"] = join["seq"]
    yield ("a join of another session",
           lines[:joined] + [dump(other)] + lines[joined + 1:], "session")
    other = json.loads(foreign[at(foreign, "posted")])
    other["seq"] = line["seq"]
    yield ("an item of another session",
           lines[:posted] + [dump(other)] + lines[posted + 1:], "author")
    yield ("another session's beginning", foreign[:1] + lines[1:], "not of")
    made = json.loads(lines[0])["signed_manifest"]
    yield ("the manifest's signature", edit(
        lines, 0, signed_manifest=flip(made)), "signature")
    yield ("the manifest's limit", edit(lines, 0, signed_manifest=made.replace(
        '"max_item_bytes":1048576', '"max_item_bytes":1048577')), "signature")
    yield ("an ack of nobody", edit(lines, at(lines, "acked"),
           participant_pub="A" * 43), "participant")
    yield ("an ack of nothing", edit(lines, at(lines, "acked"),
           item="A" * 22), "item")
    yield ("who was revoked", edit(lines, at(lines, "revoked"),
           participants=[]), "everybody")
    yield ("an item after its author left", renumbered(
        without(lines, second)[:at(lines, "left")]
        + [lines[second]] + lines[at(lines, "left") + 1:]), "any more")
    yield ("an event of no known kind", edit(lines, posted, event="Posted"),
           "knows")
    yield ("a field that is none", edit(lines, posted, note="x"), "line")
    yield "a space", lines[:1] + [lines[1] + " "] + lines[2:], ""
    yield "cut amid a line", lines[:-1] + [lines[-1][:50]], ""
    yield "no trail", ["hello"], ""


def main():
    relay = lib.Relay()
    party, lines = session(relay)
    foreign = session(relay)[1]
    jobs = with_jobs(relay)
    words = ["create", "--relay", relay.url, "--json"]
    invites = json.loads(lib.run_cli(lib.AIRLOXFS, "olga", *words)
                         .stdout)["invites"]
    lib.run_cli(lib.AIRLOXFS, "alice", "send", "text", "hello",
                invite=invites["sender"])
    code, out, err = verify("--out", SAVED + ".real",
                            invite=invites["owner"])
    lib.ok(code == 0 and "1 items" in out, f"asked of the relay: {out}{err}")
    relay.stop()

    def judge(trail, *words, **how):
        with open(SAVED, "w") as f:
            f.write("".join(line + "\n" for line in trail))
        return verify(*words, SAVED, **how)

    code, out, _ = verify(SAVED + ".real", invite=invites["observer"])
    lib.ok(code == 0 and "give its invite" not in out, "offline, by invite")
    code, out, err = judge(lines, invite=invites["owner"])
    lib.ok(code == 65 and "not of" in out, "another session's invite")
    code, out, err = judge(lines)
    lib.same(code, 0, f"as it was: {out}{err}")
    for part in ("4 participants (owner 1, sender 2, runner 0, observer 1)",
                 "4 items", "give its invite", "the relay's word",
                 f"from 0 to {json.loads(lines[-1])['seq']} without a gap"):
        lib.ok(part in out, f"it says: {part}")
    code, out, err = judge(jobs)
    lib.ok(code == 0 and "runner 2" in out, f"with jobs: {out}{err}")
    for word in ("approved", "rejected", "job"):
        at(jobs, word)
    code, out, _ = judge(lines, "--session", party.sid)
    lib.ok(code == 0 and "give its invite" not in out, "pinned by its id")
    code, out, _ = judge(lines, "--json", "--session", party.sid)
    told = json.loads(out)
    lib.ok(told["verified"] and told["items"] == 4 and told["not_proved"],
           "as JSON")
    with open(lib.T + "/manifest", "w") as f:
        f.write(party.manifest)
    lib.same(judge(lines, "--manifest", lib.T + "/manifest")[0], 0,
             "by its manifest")
    with open(lib.T + "/manifest", "w") as f:
        f.write(json.loads(foreign[0])["signed_manifest"])
    lib.same(judge(lines, "--manifest", lib.T + "/manifest")[0], 65,
             "by another one")
    for what, trail, word in tamperings(lines, foreign):
        code, out, err = judge(trail, "--session", party.sid)
        lib.ok(code == 65 and word in out and "does not hold" in err,
               f"found: {what}: {out.splitlines()[:1]}")
    code, out, _ = judge(without(lines, at(lines, "acked")))
    lib.ok(code == 0 and "some may be missing" in out,
           "not found, and so told: an ack left out")
    code, out, _ = judge(lines[:-1])
    lib.ok(code == 0 and "nothing tells of a later one" in out,
           "not found, and so told: the newest line left out")
    code, out, _ = judge(renumbered(without(lines, at(lines, "posted", 2))))
    lib.ok(code == 0 and "the numbers are not signed" in out,
           "not found, and so told: an item left out, and all renumbered")
    lib.same(judge([])[0], 65, "nothing at all")
    lib.same(verify("/nowhere")[0], 71, "no file")


lib.run_main(main)
