#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: kill -9 at any moment: every 201 is there after the restart, nothing
is there by half, and nobody is told an event twice or out of order."""
import hashlib
import http.client
import os
import random
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                    # noqa: E402
from relay_peer import Party, Peer, Stream    # noqa: E402

SIZES = (0, 1, 100, 4000, 65508, 65509, 300000)


class Poster(threading.Thread):
    """Posts until the relay is gone; knows what was acknowledged."""

    def __init__(self, party, peer, lock, most):
        super().__init__()
        self.party, self.peer, self.lock = party, peer, lock
        self.acked, self.most, self.odd = {}, most, []

    def run(self):
        while len(self.acked) < self.most:
            blob = os.urandom(random.choice(SIZES) + 28)
            with self.lock:
                id_, _, data = self.party.item(self.peer.name, blob,
                                               kind="file", type_="zip")
            try:
                answer = self.peer.post("/items", data)
            except (OSError, http.client.HTTPException):
                return
            if answer.status != 201:
                self.odd.append((answer.status, answer.body))
                return
            self.acked[id_] = (answer.json["seq"],
                               hashlib.sha256(blob).digest())


def check(reader, acked):
    """Everything acknowledged, at its place, with its blob."""
    events = reader.events()
    lib.ok([e["seq"] for e in events] == list(range(len(events))),
           f"{len(events)} events, gapless")
    where = {}
    for e in events:
        if e["kind"] == "item":
            header = lib.json.loads(e["data"]["envelope"])["header"]
            lib.ok(header["id"] not in where or None,
                   "no item twice") if header["id"] in where else None
            where[header["id"]] = e["seq"]
    lost = [i for i, (seq, _) in acked.items() if where.get(i) != seq]
    lib.same(lost, [], f"{len(acked)} acknowledged items are in place")
    for id_ in where:
        blob = reader.get(f"/items/{id_}/blob")
        if blob.status != 200:
            raise lib.Failed(f"blob of {id_}: {blob.status}")
        if id_ in acked:
            if hashlib.sha256(blob.body).digest() != acked[id_][1]:
                raise lib.Failed(f"blob of {id_} is another")
    lib.ok(True, f"{len(where)} whole blobs, "
           f"{len(where) - len(acked)} of them not acknowledged")


def watch(reader, seen):
    stream = Stream(reader, after=seen[-1] if seen else None)
    while event := stream.next():
        seen.append(event[0])


def stop_amid(relay, party, peer):
    """SIGTERM with requests waiting behind each other on a connection."""
    with socket.create_connection(("127.0.0.1", relay.port)) as s:
        for _ in range(60):
            data = party.item(peer.name, os.urandom(528))[2]
            s.sendall(b"POST /v1/sessions/%s/items HTTP/1.1\r\nHost: x\r\n"
                      b"Authorization: Bearer %s\r\nContent-Length: %d\r\n"
                      b"\r\n" % (party.sid.encode(), peer.token.encode(),
                                 len(data)) + data)
        lib.same(relay.stop(), 0, "SIGTERM amid requests: 0")


def in_log(needle):
    where = lib.T + "/relay/log/"
    for name in os.listdir(where):
        with open(where + name, "rb") as f:
            if needle in f.read():
                return True
    return False


def kill_amid_purge(relay):
    """The end is durable before the purge; a start finishes what is left."""
    party = Party(relay)
    party.create()
    owner = party.join("owner", "olga")
    other = Party(relay)
    other.create()
    stays = other.join("owner", "otto")
    kept = {}
    for i in range(120):
        party.post(owner, SIZES[i % len(SIZES)], kind="file", type_="zip")
        id_, blob, answer = other.post(stays, 300)
        kept[id_] = (answer.json["seq"], hashlib.sha256(blob).digest())
    needle = b'\\"session_id\\":\\"' + party.sid.encode()
    lib.ok(in_log(needle), "its envelopes are in the log")
    lib.same(owner.post("/close").status, 204, "closed")
    relay.stop(signal.SIGKILL)
    relay.start()
    lib.same(owner.get("/events").status, 404, "it stays closed")
    check(stays, kept)
    lib.ok(not in_log(needle), "and are not any more")
    party.end()
    other.end()


def rounds(relay, kills):
    """In a session of its own; how many posts were acknowledged."""
    party = Party(relay)
    party.create()
    owner = party.join("owner", "olga")
    reader = party.join("observer", "reader")
    peers = [party.join("sender", f"p{i}") for i in range(4)]
    lock, acked, seen, odd = threading.Lock(), {}, [], []
    for _ in range(kills):
        posters = [Poster(party, p, lock, 250) for p in peers]
        watcher = threading.Thread(target=watch, args=(reader, seen))
        for t in [watcher, *posters]:
            t.start()
        time.sleep(random.uniform(0.2, 1.0))
        relay.stop(signal.SIGKILL)
        for t in [*posters, watcher]:
            t.join(30)
        for p in posters:
            acked.update(p.acked)
            odd += p.odd
        relay.start()
        check(reader, acked)
    lib.same(odd, [], "no post was refused")
    lib.same(seen, list(range(len(seen))), f"{len(seen)} events streamed, "
             "none twice, none out of order")
    return party, owner, reader, peers[0], acked


def main():
    random.seed(os.getpid())
    relay = lib.Relay("--max-items", "10000000", "--max-items-minute",
                      "0")
    # `make soak` asks for 200; each ten are of a session of their own
    left, posts = int(os.environ.get("KILLS", 6)), 0
    kills = left
    while left > 0:
        party, owner, reader, peer, acked = rounds(relay, min(left, 10))
        left -= 10
        posts += len(acked)
        if left > 0:
            owner.post("/close")
            party.end()
    lib.ok(posts > 100, f"{posts} posts acknowledged, {kills} kills, each "
           "post there after each kill")
    for _ in range(3):
        kill_amid_purge(relay)
    stop_amid(relay, party, peer)
    relay.start()
    check(reader, acked)
    lib.ok(relay.stop() == 0, "a quiet end")
    party.end()


lib.run_main(main)
