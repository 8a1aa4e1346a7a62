#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 150
"""Goal: strangers who try everything at once are refused, cost a bounded
amount, and harm nobody: two participants go on talking all the while."""
import base64
import os
import random
import resource
import secrets
import socket
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                 # noqa: E402
from relay_peer import Party, Peer, Stream, raw, statuses  # noqa: E402

OK = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"


def rss_kib(relay):
    with open(f"/proc/{relay.child.pid}/status") as f:
        return int(lib.re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def relay_connections(relay):
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f][1:]
    return sum(r[1].endswith(f":{relay.port:04X}") and r[3] == "01"
               for r in rows)


class Talk(threading.Thread):
    """Alice posts, bob's stream tells; how long the slowest took."""

    def __init__(self, party, alice, bob):
        super().__init__(daemon=True)
        self.party, self.alice = party, alice
        self.stream = Stream(bob, after=bob.events()[-1]["seq"])
        self.on, self.n, self.slowest, self.fault = True, 0, 0.0, None

    def run(self):
        try:
            while self.on:
                began = time.monotonic()
                answer = self.party.post(self.alice, 200)[2]
                if answer.status != 201:
                    self.fault = answer.body
                    return
                while self.stream.next()[0] != answer.json["seq"]:
                    pass
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.n += 1
                time.sleep(0.02)
        except Exception as e:
            self.fault = e


def bulk(relay, requests):
    """Many requests, a thousand to a connection: how often each status."""
    seen = {}
    for i in range(0, len(requests), 1000):
        data = b"".join(requests[i:i + 1000]) + OK.replace(
            b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        for status in statuses(raw(relay.port, data, 20 * lib.SLOW)):
            seen[status] = seen.get(status, 0) + 1
    return seen


def guess_tokens(relay, party, n):
    def request():
        token = base64.urlsafe_b64encode(secrets.token_bytes(32))[:43]
        return (b"GET /v1/sessions/%s/events HTTP/1.1\r\nHost: x\r\n"
                b"Authorization: Bearer %s\r\n\r\n"
                % (party.sid.encode(), token))
    seen = bulk(relay, [request() for _ in range(n)])
    lib.same(seen.get(401), n, f"{n} wrong tokens")


def guess_sessions(relay, alice, n):
    def request():
        sid = b"ax_" + base64.b32encode(secrets.token_bytes(16))[:26].lower()
        return (b"GET /v1/sessions/%s HTTP/1.1\r\nHost: x\r\n"
                b"Authorization: Bearer %s\r\n\r\n"
                % (sid, alice.token.encode()))
    seen = bulk(relay, [request() for _ in range(n)])
    lib.same(seen.get(404), n, f"{n} guessed sessions")


def open_many(relay, n):
    held = []
    for _ in range(n):
        s = socket.socket()
        s.settimeout(5)
        try:
            s.connect(("127.0.0.1", relay.port))
            held.append(s)
        except OSError:
            s.close()
    return held


def dribble(held, rounds):
    for i in range(rounds):
        for s in held:
            try:
                s.send(OK[i:i + 1])
            except OSError:
                pass
        time.sleep(0.5)


def loris(relay, n):
    held = open_many(relay, n)
    lib.ok(len(held) == n, f"{n} connections that dribble")
    dribble(held, 8)
    began = time.monotonic()
    lib.same(statuses(raw(relay.port, OK, 0.5)), [200], "others are served")
    lib.ok(time.monotonic() - began < 2 * lib.SLOW, "at once")
    lib.wait_for(lambda: relay_connections(relay) < 40,
                 "they are given up after 10 s", 15)
    lib.ok(True, "they are given up after 10 s")
    for s in held:
        s.close()


def join_flood(relay, party, n):
    """Wrong signatures; then more valid ones than there are places."""
    text = party.join_text("sender", "flood").encode()
    head = (b"POST /v1/sessions/%s/participants HTTP/1.1\r\nHost: x\r\n"
            b"Content-Length: %d\r\n\r\n" % (party.sid.encode(), len(text)))
    forged = []
    for _ in range(n):
        i = text.rindex(b'"sig":"') + 7 + random.randrange(80)
        forged.append(head + text[:i] + (b"A" if text[i:i + 1] != b"A"
                                         else b"B") + text[i + 1:])
    seen = bulk(relay, forged)
    lib.same(seen.get(400), n, f"{n} forged joins")
    peer = Peer(relay, None, party.sid)
    answers = [peer.post("/participants", party.join_text(
        "sender", f"f{i}")).status for i in range(40)]
    lib.ok(answers.count(201) == 30 and answers.count(409) == 10,
           f"no more than there are places: {answers.count(201)}")
    replayed = bulk(relay, [head + text] * 200)
    lib.same(replayed.get(409), 200, "one join 200 times, places taken")


def headers(relay):
    for _ in range(100):
        got = raw(relay.port, b"GET / HTTP/1.1\r\nHost: x\r\nA: "
                  + b"a" * 65536 + b"\r\n\r\n", 3)
        if statuses(got) != [431]:
            raise lib.Failed(f"a huge header: {got!r:.100}")
    lib.ok(True, "100 huge headers")


def after_the_end(relay):
    party = Party(relay)
    party.create()
    owner = party.join("owner", "olga")
    peers = {n: party.join("sender", n) for n in ("left", "cut")}
    text = party.join_text("sender", "left2", party.seeds["left"])
    peers["left"].post("/leave")
    anyone = Peer(relay, None, party.sid)
    lib.same(anyone.post("/participants", text).status, 409,
             "who left does not come back as the same")
    owner.post("/roles/sender/revoke")
    for name, peer in peers.items():
        seen = {peer.get(p).status for p in ("/events", "/stream",
                                             "/items/" + "A" * 22 + "/blob")}
        seen |= {peer.post(p).status for p in ("/items", "/leave", "/close")}
        lib.same(seen, {401}, f"{name}: the token opens nothing")
    lib.same(anyone.post("/participants", party.join_text(
        "sender", "new")).status, 403, "nor does the invite")
    party.end()


def hoard(relay):
    """Uploads that are begun and never end take no more of the disk than
    their session may."""
    party = Party(relay, most=6 << 20)
    party.create()
    eve = party.join("sender", "eve")
    held, full = [], 0
    for _ in range(6):
        data = party.item("eve", bytes(5 << 20), kind="file",
                          type_="zip")[2]
        s = socket.create_connection(("127.0.0.1", relay.port))
        s.sendall(f"POST /v1/sessions/{party.sid}/items HTTP/1.1\r\nHost: x"
                  f"\r\nAuthorization: Bearer {eve.token}\r\nContent-Length: "
                  f"{len(data)}\r\n\r\n".encode() + data[:40000])
        s.settimeout(0.3 * lib.SLOW)
        try:
            full += b"this session is full" in s.recv(4096)
        except TimeoutError:
            held.append(s)
    lib.same((len(held), full), (3, 3), "3 of 6 uploads of 5 MiB have room in "
             "16 MiB")
    for s in held:
        s.close()
    lib.wait_for(lambda: party.post(eve, 5 << 20, kind="file", type_="zip")
                 [2].status == 201, "they end: room again")
    lib.wait_for(lambda: len(os.listdir(relay.data + "/blobs")) == 1,
                 "and nothing of them is left")
    party.end()


def talks_back(relay, alice):
    """A stream is listened to; who talks into it is not read for long."""
    stream, sent = Stream(alice), 0
    try:
        while sent < 64 << 20:
            stream.sock.sendall(bytes(65536))
            sent += 65536
    except OSError:
        pass
    lib.ok(sent < 32 << 20, f"a stream that talks: {sent} bytes")
    stream.close()


def few_descriptors():
    """With room for 200 connections: who dawdles gives way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (456, hard))
    os.environ["AIRLOX_EPHEMERAL"] = "1"
    child = lib.subprocess.Popen(
        ["prlimit", "--nofile=456:456", lib.BUILD + "/airlox-relay",
         "--listen", "127.0.0.1:0", "--max-address-connections", "900"],
        text=True, stdout=lib.subprocess.PIPE,
        stderr=lib.subprocess.DEVNULL)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port = int(child.stdout.readline().rsplit(":", 1)[1])
    held = []
    for _ in range(600):
        s = socket.create_connection(("127.0.0.1", port))
        s.send(b"GET /")
        held.append(s)
    began = time.monotonic()
    got = raw(port, OK.replace(b"x\r\n", b"x\r\nConnection: close\r\n"),
              15 * lib.SLOW)
    took = time.monotonic() - began
    lib.same(statuses(got)[:1], [200], "600 dawdle where 200 have room: "
             "others are served")
    lib.ok(len(got) > 0, f"it took {took:.1f} s")
    for s in held:
        s.close()
    child.terminate()
    lib.same(child.wait(20), 0, "a quiet end")


def main():
    random.seed(5)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    relay = lib.Relay("--max-participants", "32", "--max-session-bytes",
                      str(16 << 20))
    party = Party(relay)
    party.create()
    alice = party.join("sender", "alice")
    bob = party.join("sender", "bob")
    crowd = Party(relay)
    crowd.create()
    # what the first thousand leave in malloc's pools is no leak
    guess_tokens(relay, party, 2000)
    base = rss_kib(relay)
    talk = Talk(party, alice, bob)
    talk.start()
    n = 10000 // lib.SLOW
    guess_tokens(relay, party, n)
    guess_sessions(relay, alice, n)
    join_flood(relay, party, 500)
    headers(relay)
    after_the_end(relay)
    hoard(relay)
    talks_back(relay, alice)
    loris(relay, min(3000, hard // 2 - 200))
    talk.on = False
    talk.join(30)
    lib.same(talk.fault, None, f"two talked all the while: {talk.n} items")
    lib.ok(talk.n > 20 and talk.slowest < 2 * lib.SLOW,
           f"the slowest took {talk.slowest:.3f} s")
    grown = rss_kib(relay) - base
    lib.ok(grown < 30000 * lib.SLOW, f"memory: {grown} KiB more")
    talk.stream.close()
    for p in (party, crowd):
        p.end()
    lib.same(relay.stop(), 0, "a quiet end")
    few_descriptors()


lib.run_main(main)
