#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: readers that stall, connections that are opened and left, streams
that come and go while events flow: memory stays bounded, nobody else is
held up, who resumes misses nothing, and who dawdles hears of it in time."""
import os
import random
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                    # noqa: E402
from relay_peer import Party, Peer, Stream    # noqa: E402

OK = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"


def rss_kib(relay):
    with open(f"/proc/{relay.child.pid}/status") as f:
        return int(lib.re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def open_connections(relay):
    """The relay's side of them, from the kernel's table."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f][1:]
    return sum(r[1].endswith(f":{relay.port:04X}") and r[3] == "01"
               for r in rows)


def stall(party, peer, n):
    """Streams, and downloads of a large blob, that nobody reads."""
    id_, _, answer = party.post(peer, 900000, kind="file", type_="zip")
    lib.same(answer.status, 201, "a large blob")
    held = []
    for i in range(n):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", peer.relay.port))
        path = "stream" if i % 2 else f"items/{id_}/blob"
        s.sendall(f"GET /v1/sessions/{peer.sid}/{path} HTTP/1.1\r\nHost: x\r\n"
                  f"Authorization: Bearer {peer.token}\r\n\r\n".encode())
        held.append(s)
    return held


def resume(peer, seen, total, random_):
    """Reads the stream through connections that break at any point."""
    while len(seen) < total:
        stream = Stream(peer, after=seen[-1] if seen else None)
        for _ in range(random_.randrange(1, 120)):
            event = stream.next()
            if not event:
                break
            seen.append(event[0])
            if len(seen) >= total:
                break
        stream.close()


def resumable(peer, lagging, total):
    """A reader that was too slow was cut off; what it had goes on from
    there."""
    lagging.settimeout(5)
    got = b""
    try:
        while part := lagging.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    whole = got[:got.rindex(b"\n\n")]
    ids = [int(x) for x in lib.re.findall(rb"(?m)^id: (\d+)$", whole)]
    lib.ok(ids == list(range(len(ids))) and 0 < len(ids) < total,
           f"a lagging stream was dropped after {len(ids)} events")
    stream = Stream(peer, after=ids[-1])
    rest = [stream.next()[0] for _ in range(total - len(ids))]
    lib.same(rest, list(range(len(ids), total)), "and resumes where it was")
    stream.close()


class Deadlines:
    """Who dawdles, each from the start, beside everything else: when each
    heard something, and what."""

    def __init__(self, relay, tls_port):
        self.party = Party(relay)
        self.party.create()
        owner = self.party.join("owner", "olga")
        head = (f"POST /v1/sessions/{self.party.sid}/items HTTP/1.1\r\nHost: "
                f"x\r\nAuthorization: Bearer {owner.token}\r\n"
                "Content-Length: 2000\r\n\r\n").encode()
        self.stream = Stream(owner, after=owner.events()[-1]["seq"])
        self.began, self.heard = time.monotonic(), {}
        for what, port, data in (
                ("a head", relay.port, b"GET /v1/health HT"),
                ("half a handshake", tls_port,
                 bytes.fromhex("16030102000100")),
                ("a body", relay.port, head)):
            s = socket.create_connection(("127.0.0.1", port))
            s.sendall(data)
            self.listen(what, s, s.recv)
        self.listen("a comment", self.stream.sock,
                    lambda n: [self.stream.file.readline()
                               for _ in range(3)][2])   # the second one

    def listen(self, what, sock, read):
        def run():
            sock.settimeout(90 * lib.SLOW)
            got = read(4096)
            self.heard[what] = (time.monotonic() - self.began, got)
            sock.close()
        threading.Thread(target=run, daemon=True).start()

    def check(self):
        lib.wait_for(lambda: len(self.heard) == 4, "all were told", 45)
        for what, low, high, start in (("a head", 8, 15, b""),
                                       ("half a handshake", 8, 15, b""),
                                       ("a comment", 1, 20, b":"),
                                       ("a body", 25, 40,
                                        b"HTTP/1.1 408 ")):
            at, got = self.heard[what]
            lib.ok(low < at < high * lib.SLOW and got.startswith(start) and
                   bool(got) == bool(start), f"{what}: {got[:20]} at {at:.0f}")
        self.party.end()


def make_cert():
    words = ("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
             "-nodes -subj /CN=x -keyout key.pem -out cert.pem").split()
    subprocess.run(words, cwd=lib.T, check=True, stderr=subprocess.DEVNULL)


def main():
    make_cert()
    relay = lib.Relay("--max-streams-each", "1000", "--listen",
                      "127.0.0.1:0,tls:127.0.0.1:0", "--tls-cert",
                      lib.T + "/cert.pem", "--tls-key", lib.T + "/key.pem")
    deadlines = Deadlines(relay, int(relay.child.stdout.readline()
                                     .rsplit(":", 1)[1]))
    party = Party(relay)
    party.create()
    alice = party.join("sender", "alice")
    bob = party.join("sender", "bob")
    eve = party.join("observer", "eve")
    base = rss_kib(relay)
    held = stall(party, bob, 200)
    total, seen = 1500, {"bob": [], "eve": []}
    readers = [threading.Thread(target=resume, args=(
        peer, seen[peer.name], total, random.Random(peer.name)))
        for peer in (bob, eve)]
    for t in readers:
        t.start()
    slowest = 0.0
    while True:
        began = time.monotonic()
        if party.post(alice, 4000)[2].json["seq"] >= total:
            break
        slowest = max(slowest, time.monotonic() - began)
    for t in readers:
        t.join(60 * lib.SLOW)
    for name, got in seen.items():
        lib.same(got, list(range(total)), f"{name}: {total} events through "
                 "connections that break, each once, in order")
    lib.ok(slowest < 2 * lib.SLOW, f"the slowest post: {slowest:.3f} s")
    grown = rss_kib(relay) - base
    lib.ok(grown < 30000 * lib.SLOW, f"200 stalled readers: {grown} KiB")
    half = [socket.create_connection(("127.0.0.1", relay.port))
            for _ in range(500)]
    for i, s in enumerate(half):
        s.sendall(OK[:i % len(OK)])
    began = time.monotonic()
    lib.same(Peer(relay).get("/v1/health").status, 200, "others are served")
    lib.ok(time.monotonic() - began < 2 * lib.SLOW, "at once")
    lib.wait_for(lambda: open_connections(relay) < 300,
                 "half-open connections go after 10 s", 25)
    lib.ok(True, "half-open connections go")
    lib.wait_for(lambda: open_connections(relay) < 10,
                 "stalled readers go after 30 s", 60)
    lib.ok(True, "stalled readers go")
    deadlines.check()
    resumable(bob, held[1], total)
    for s in held + half:
        s.close()
    party.end()
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
