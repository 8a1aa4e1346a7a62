#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: every endpoint of a session: who may, what is refused and how, what
is durable, and that what was purged is gone from the disk."""
import os
import secrets
import signal
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
from relay_peer import (Party, Peer, Stream, frame,   # noqa: E402
                        now_ms)

DATA = lib.T + "/relay"


def verdict(answer):
    return (answer.status, answer.error) if answer.body else answer.status


def on_disk(needle):
    for where, _, names in os.walk(DATA):
        for name in names:
            with open(f"{where}/{name}", "rb") as f:
                if needle in f.read():
                    return True
    return False


def sessions(relay):
    party = Party(relay)
    lib.same(verdict(Peer(relay, None, party.sid).get("")),
             (404, "not_found"), "no such session yet")
    answer = party.create()
    lib.same((answer.status, answer.json), (201, {"session_id": party.sid}),
             "created")
    lib.same(party.create().status, 200, "the same again")
    other = party.sign("manifest", party.owner, "relay", party.created,
                       party.created + 7200000, 5)
    lib.same(verdict(Peer(relay).post("/v1/sessions", other)),
             (409, "conflict"), "another manifest")
    party.sign("manifest", party.owner, "relay", party.created,
               party.created + 3600000, 1 << 20)
    answer = Peer(relay, None, party.sid).get("")
    lib.same(answer.json, {"signed_manifest": party.manifest},
             "the exact manifest")
    lib.ok("Date" in answer.headers, "a Date, for clocks")
    for what, text in (("no JSON", "x"), ("empty", ""),
                       ("a space", party.manifest + " ")):
        lib.same(verdict(Peer(relay).post("/v1/sessions", text)),
                 (400, "bad_request"), what)
    forged = party.manifest[:-4] + ("AAA" if party.manifest[-4] != "A"
                                    else "BBB") + party.manifest[-1]
    lib.ok(verdict(Peer(relay).post("/v1/sessions", forged))[0] == 400,
           "a forged signature")
    old = Party(relay, created=now_ms() - 9000, expires=now_ms() - 1000)
    lib.same(old.create().status, 400, "an expired one")
    old.end()
    return party


def joins(relay, party):
    owner = party.join("owner", "olga")
    alice = party.join("sender", "alice")
    bob = party.join("sender", "bob")
    eve = party.join("observer", "eve")
    text = party.join_text("sender", "mallory")
    anyone = Peer(relay, None, party.sid)
    mallory = Peer(relay, None, party.sid)
    answer = anyone.post("/participants", text)
    lib.same(answer.status, 201, "mallory joined")
    mallory.token = answer.json["token"]
    lib.same(verdict(anyone.post("/participants", text)), (409, "conflict"),
             "a join seen in the events gives no second token")
    lib.same(verdict(anyone.post("/participants", text.replace(
        '"mallory"', '"malory"'))), (400, "bad_signature"), "an edited join")
    lib.same(verdict(anyone.post("/participants", "x" * 9000)),
             (413, "too_large"), "a join over 8 KiB")
    lib.same(verdict(anyone.get("/events")), (401, "unauthorized"),
             "no token")
    stranger = Peer(relay, "A" * 43, party.sid)
    lib.same(verdict(stranger.get("/events")), (401, "unauthorized"),
             "an unknown token")
    for peer in (owner, alice, eve):
        lib.ok(not on_disk(peer.token.encode()),
               f"{peer.name}'s token is not on the disk")
    joined = owner.events()
    lib.same([e["seq"] for e in joined], [0, 1, 2, 3, 4], "from 0, gapless")
    lib.same([e["data"]["display_name"] for e in joined],
             ["olga", "alice", "bob", "eve", "mallory"], "who they are")
    lib.same(joined[1]["data"]["participant_pub"],
             party.sign("pub", party.seeds["alice"]), "alice's key")
    lib.same([e["seq"] for e in owner.events(2)], [3, 4], "after=2")
    lib.same(owner.events(99), [], "after the end")
    lib.same(owner.get("/events?after=-1").status, 400, "after=-1")
    return owner, alice, bob, eve, mallory


def policy(party, owner, alice, eve):
    blob = secrets.token_bytes(128)

    def try_item(peer, why, want, data=None, signer=None, **how):
        id_, envelope, made = party.item(signer or peer.name, blob, **how)
        got = verdict(peer.post("/items", data(envelope) if data else made))
        lib.same(got, want, why)

    try_item(eve, "an observer may not post", (403, "forbidden"))
    try_item(alice, "a sender may not post a result", (403, "forbidden"),
             kind="result")
    try_item(owner, "no job in relay mode", (403, "forbidden"), kind="job",
             type_="py")
    try_item(alice, "an image is not allowed", (400, "policy"), kind="file",
             type_="image")
    try_item(alice, "too early", (400, "policy"), created=party.created - 1)
    try_item(alice, "too late", (400, "policy"),
             created=party.created + 3600000)
    try_item(alice, "too large", (413, "too_large"), size=(1 << 20) + 1)
    try_item(alice, "in another's name", (400, "policy"), signer="bob")
    try_item(alice, "a blob too short", (400, "bad_request"), size=101)
    try_item(alice, "a blob too long", (400, "bad_request"), size=99)
    try_item(alice, "another blob", (400, "bad_signature"), data=lambda e:
             frame(e.encode(), secrets.token_bytes(128)))
    try_item(alice, "envelope over 8 KiB", (413, "too_large"), data=lambda e:
             frame(e.encode() + b" " * 9000, blob))
    try_item(alice, "a space behind the envelope", (400, "bad_request"),
             data=lambda e: frame(e.encode() + b" ", blob))
    try_item(alice, "no envelope", (400, "bad_request"), data=lambda e:
             frame(b"", blob))
    try_item(alice, "nothing", (400, "bad_request"), data=lambda e: b"")
    lib.same(owner.events(4), [], "no event of all that")


def items(party, alice, bob):
    id_, blob, answer = party.post(alice)
    lib.same((answer.status, answer.json), (201, {"seq": 5}), "an item")
    lib.same(bob.get(f"/items/{id_}/blob").body, blob, "its blob")
    _, envelope, data = party.item("alice", blob, id_=id_, created=now_ms())
    lib.same(verdict(alice.post("/items", data)), (409, "duplicate"),
             "the same blob under the same id again")
    lib.same(verdict(party.post(alice, id_=id_)[2]), (409, "conflict"),
             "another blob under this id")
    lib.same(verdict(party.post(bob, id_=id_)[2]), (409, "conflict"),
             "another author under this id")
    big_id, big, answer = party.post(alice, 700000, kind="file", type_="zip")
    lib.same(answer.json, {"seq": 6}, "a large one")
    lib.same(bob.get(f"/items/{big_id}/blob").body, big, "its blob")
    lib.same(len(os.listdir(DATA + "/blobs")), 1, "it is a file")
    _, envelope, data = party.item("alice", big, id_=big_id)
    lib.same(verdict(alice.post("/items", data)), (409, "duplicate"),
             "a large one again")
    lib.wait_for(lambda: len(os.listdir(DATA + "/blobs")) == 1,
                 "its second file goes")
    lib.same(verdict(bob.get("/items/AAAAAAAAAAAAAAAAAAAAAA/blob")),
             (404, "not_found"), "an unknown item")
    for path in ("ack", "want"):
        lib.same(bob.post(f"/items/nothing/{path}").status, 404, path)
    sent = party.item("alice", secrets.token_bytes(528))
    pieces = [sent[2][i:i + 100] for i in range(0, len(sent[2]), 100)]
    lib.same(alice.ask("POST", "/items", iter(pieces),
                       Transfer_Encoding="chunked").status, 201,
             "an item in chunks")
    return (id_, blob), (big_id, big)


def evict_and_reseed(party, owner, everybody, item):
    id_, blob = item
    alice, bob = everybody["alice"], everybody["bob"]
    lib.same(verdict(bob.post(f"/items/{id_}/want")), (409, "present"),
             "want of what is here")
    lib.same(alice.post(f"/items/{id_}/ack").status, 204, "the author's ack")
    for name, peer in everybody.items():
        if name != "alice":
            lib.same(peer.post(f"/items/{id_}/ack").status, 204,
                     f"{name}'s ack")
    lib.wait_for(lambda: [e for e in owner.events() if e["kind"] == "evicted"
                          and e["data"] == {"item": id_}], "evicted")
    lib.same(verdict(bob.get(f"/items/{id_}/blob")), (410, "gone"), "gone")
    lib.wait_for(lambda: not on_disk(blob), "gone from the disk")
    lib.same(bob.post(f"/items/{id_}/want").status, 204, "want")
    lib.same(bob.post(f"/items/{id_}/want").status, 204, "want again")
    wants = [e["data"] for e in owner.events() if e["kind"] == "want"
             and e["data"]["item"] == id_]
    lib.same(wants, [{"by": party.sign("pub", party.seeds["bob"]),
                      "item": id_}], "one event for both")
    path = f"/items/{id_}/blob"
    lib.same(verdict(alice.ask("PUT", path, blob[:-1])), (400, "bad_request"),
             "a short re-seed")
    wrong = blob[:-1] + bytes([blob[-1] ^ 1])
    lib.same(verdict(alice.ask("PUT", path, wrong)), (400, "bad_signature"),
             "a wrong re-seed")
    lib.same(alice.ask("PUT", path, blob).status, 204, "a re-seed")
    lib.same(verdict(alice.ask("PUT", path, blob)), (409, "present"),
             "a second one")
    lib.same(bob.get(path).body, blob, "it is back")
    lib.same(owner.kinds()[-1], "reseeded", "the event")
    lib.same(bob.post(f"/items/{id_}/ack").status, 204, "the wanter's ack")
    lib.wait_for(lambda: owner.kinds()[-1] == "evicted", "evicted again")


def evict(party, owner, everybody, small, big):
    # mallory never acknowledges: she leaves, and then all have it
    mallory = everybody.pop("mallory")
    for item in (small, big):
        for name, peer in everybody.items():
            if name != "alice":
                peer.post(f"/items/{item[0]}/ack")
    lib.ok("evicted" not in owner.kinds(), "mallory has not acknowledged")
    mallory.post("/leave")
    lib.wait_for(lambda: owner.kinds().count("evicted") == 2,
                 "her leaving frees both")
    lib.wait_for(lambda: not os.listdir(DATA + "/blobs"), "the file is gone")
    for kind in ({"n": 100}, {"n": 300000, "kind": "file", "type_": "zip"}):
        id_, blob, answer = party.post(everybody["alice"], **kind)
        evict_and_reseed(party, owner, everybody, (id_, blob))


def streams(party, owner, bob):
    seqs = [e["seq"] for e in owner.events()]
    s = Stream(bob)
    lib.ok(b"text/event-stream" in s.head and b"no-store" in s.head
           and b"X-Accel-Buffering: no" in s.head, "a stream's head")
    got = [s.next() for _ in seqs]
    lib.same([e[0] for e in got], seqs, "it replays")
    lib.same([{"seq": a, "kind": b, "data": c} for a, b, c in got],
             owner.events(), "the same events as the list's")
    id_, blob, answer = party.post(owner)
    live = s.next()
    lib.same(live[:2], (answer.json["seq"], "item"), "then live")
    s.close()
    s = Stream(bob, after=seqs[-1])
    lib.same(s.next(), live, "Last-Event-ID resumes")
    s.close()


def restart(relay, party, owner, big):
    before, audit = owner.events(), owner.get("/audit.jsonl").body
    relay.stop(signal.SIGKILL)
    with open(DATA + "/log/00000001.log", "ab") as f:
        f.write(secrets.token_bytes(1000))
    open(DATA + "/blobs/0123456789abcdef", "w").close()
    relay.start()
    with open(lib.T + "/relay.err") as f:
        said = f.read()
    lib.ok("dropped 1000 bytes" in said, "a torn tail is cut, and said")
    lib.same(len(os.listdir(DATA + "/blobs")), 1, "left-overs are swept")
    lib.same(owner.events(), before, "the same events")
    lib.same(owner.get("/audit.jsonl").body, audit, "the same audit trail")
    lib.same(owner.get(f"/items/{big[0]}/blob").body, big[1],
             "a large blob is there")
    answer = party.post(owner)[2]
    lib.same(answer.json["seq"], before[-1]["seq"] + 1, "and it goes on")


def damage(relay):
    relay.stop()
    path = DATA + "/log/00000001.log"
    with open(path, "rb") as f:
        whole = f.read()
    for at in (60, 300, len(whole) // 2):
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(bytes([whole[at] ^ 1]))
        try:
            relay.start()
            started = True
        except lib.Failed:
            started = False
            relay.child.wait(10)
            relay.child = None
        lib.ok(not started, f"damage at byte {at} is refused")
        with open(path, "wb") as f:
            f.write(whole)
    with open(lib.T + "/relay.err") as f:
        lib.ok("damaged" in f.read(), "with that sentence")
    relay.start()


def audit(party, owner, eve, alice):
    lib.same(verdict(alice.get("/audit.jsonl")), (403, "forbidden"),
             "no audit for a sender")
    trail = lib.json_lines(eve.get("/audit.jsonl").body.decode())
    words = {line["event"] for line in trail}
    lib.ok({"created", "joined", "posted", "acked", "evicted", "wanted",
            "reseeded"} <= words, f"the audit trail: {sorted(words)}")
    lib.ok(all(line["at_ms"] >= party.created - 1000 for line in trail),
           "with times")
    lib.ok(all("signed_join" in line for line in trail
               if line["event"] == "joined"), "with the signed joins")
    lib.ok(all("envelope" in line for line in trail
               if line["event"] == "posted"), "with the envelopes")


def ends(relay, party, owner, alice, bob, eve):
    lib.same(verdict(alice.post("/close")), (403, "forbidden"),
             "a sender may not close")
    lib.same(verdict(alice.post("/roles/observer/revoke")),
             (403, "forbidden"), "nor revoke")
    lib.same(verdict(owner.post("/roles/owner/revoke")),
             (400, "bad_request"), "the owner cannot be revoked")
    lib.same(bob.post("/leave").status, 204, "leave")
    lib.same(verdict(bob.get("/events")), (401, "unauthorized"),
             "the token is dead")
    s = Stream(alice, after=owner.events()[-1]["seq"])
    lib.same(owner.post("/roles/sender/revoke").status, 204, "revoke")
    event = s.next()
    lib.ok(event[1] == "revoked" and event[2]["role"] == "sender" and
           party.sign("pub", party.seeds["alice"])
           in event[2]["participants"], "alice is told")
    lib.same(s.next(), None, "and her stream ends")
    lib.same(verdict(party.post(alice)[2]), (401, "unauthorized"),
             "she may not post")
    late = Peer(relay, None, party.sid)
    lib.same(verdict(late.post("/participants",
                               party.join_text("sender", "late"))),
             (403, "forbidden"), "the invite admits no one")
    s = Stream(eve, after=owner.events()[-1]["seq"])
    needle = party.sid.encode()
    lib.ok(on_disk(needle), "the session is on the disk")
    lib.same(owner.post("/close").status, 204, "close")
    lib.same((s.next() or [0, 0])[1], "closed", "streams are told")
    lib.same(s.next(), None, "and end")
    lib.same(verdict(owner.get("/events")), (404, "not_found"), "all gone")
    lib.same(verdict(party.create()), (410, "gone"),
             "it cannot be made again")
    relay.stop(signal.SIGKILL)
    relay.start()
    lib.same(verdict(party.create()), (410, "gone"), "nor after a restart")
    lib.wait_for(lambda: not os.listdir(DATA + "/blobs"), "no blob is left")
    for name in ("olga", "alice", "eve"):
        lib.ok(not on_disk(f'"{name}"'.encode())
               and not on_disk(f'\\"{name}\\"'.encode()),
               f"nothing of {name} on the disk")


def expiry(relay):
    party = Party(relay, expires=now_ms() + 2000 * lib.SLOW)
    party.create()
    owner = party.join("owner", "otto")
    eve = party.join("observer", "emil")
    id_, blob, answer = party.post(owner)
    lib.ok(on_disk(blob), "posted")
    s = Stream(eve)
    kinds = []
    while event := s.next():
        kinds.append(event[1])
    lib.same(kinds[-1], "closed", "a stream is told of the end")
    lib.same(owner.get("/events").status, 404, "expired")
    lib.wait_for(lambda: not on_disk(blob), "and purged")
    party.end()


def main():
    relay = lib.Relay()
    lib.ok(Peer(relay).get("/v1/limits").json["envelope_bytes"] == 8192,
           "limits")
    party = sessions(relay)
    owner, alice, bob, eve, mallory = joins(relay, party)
    policy(party, owner, alice, eve)
    small, big = items(party, alice, bob)
    everybody = {"olga": owner, "alice": alice, "bob": bob, "eve": eve,
                 "mallory": mallory}
    restart(relay, party, owner, big)
    damage(relay)
    streams(party, owner, bob)
    evict(party, owner, everybody, small, big)
    audit(party, owner, eve, alice)
    ends(relay, party, owner, alice, bob, eve)
    expiry(relay)
    party.end()
    lib.same(relay.stop(), 0, "SIGTERM ends it with 0")


lib.run_main(main)
