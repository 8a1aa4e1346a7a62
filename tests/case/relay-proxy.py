#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 150
"""Goal: the relay behind Caddy and behind nginx, with the files of deploy/:
items, blobs, streams, mounts; kills, cuts, slow readers, no room, hostile
requests; a relay that lies; a proxy that cuts idle streams, one that keeps
them back; and where nginx refuses a request, so do we."""
import atexit
import concurrent.futures
import email.utils
import http.client
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                 # noqa: E402
from proxy_peer import (CA, NGINX, Through, deployed_caddy,  # noqa: E402
                        deployed_nginx, ends, free_port, make_certs, nginx)
from relay_peer import Party, Peer, statuses               # noqa: E402


class Watch(threading.Thread):
    """A stream that comes back whenever it is cut; when each seq came."""

    def __init__(self, peer, port, tls):
        super().__init__(daemon=True)
        self.peer, self.port, self.tls = peer, port, tls
        self.came, self.cuts, self.on = [], 0, True
        self.sock = None
        self.last = peer.events()[-1]["seq"]

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.settimeout(60)
        if self.tls:
            s = ssl.create_default_context(cafile=CA).wrap_socket(
                s, server_hostname="localhost")
        s.sendall(f"GET /v1/sessions/{self.peer.sid}/stream HTTP/1.1\r\n"
                  f"Host: localhost\r\nConnection: close\r\nAuthorization: "
                  f"Bearer {self.peer.token}\r\nLast-Event-ID: "
                  f"{self.last}\r\n\r\n"
                  .encode())
        return s

    def cut(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def run(self):
        while self.on:
            try:
                with self.connect() as s:
                    self.sock = s
                    answer = http.client.HTTPResponse(s)
                    answer.begin()      # a proxy cuts it into chunks
                    for line in iter(answer.readline, b""):
                        if line.startswith(b"id: ") and line[-1:] == b"\n":
                            self.last = int(line[4:])
                            self.came.append((self.last, time.monotonic()))
            except (OSError, http.client.HTTPException):
                pass
            self.cuts += 1
            time.sleep(0.1)

    def wait(self, seq, seconds):
        return lib.wait_for(lambda: [t for s, t in self.came if s == seq],
                            f"event {seq} on the stream", seconds)[0]


def begin_large(party, peer, port):
    """The answer to the first part of what is too large."""
    data = party.item(peer.name, bytes(9 << 20), kind="file",
                      type_="zip")[2]
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.settimeout(20 * lib.SLOW)
        s = ssl.create_default_context(cafile=CA).wrap_socket(
            plain, server_hostname="localhost")
        s.sendall(f"POST /v1/sessions/{peer.sid}/items HTTP/1.1\r\nHost: "
                  f"localhost\r\nAuthorization: Bearer {peer.token}\r\n"
                  f"Content-Length: {len(data)}\r\n\r\n".encode()
                  + data[:600000])
        return statuses(s.recv(65536))


def carries(relay, port, what):
    party = Party(relay, most=8 << 20)
    lib.same(Through(Peer(relay), port).post("/v1/sessions", party.manifest)
             .status, 201, f"{what}: a session")
    alice = Through(party.join("sender", "alice"), port)
    bob = Through(party.join("sender", "bob"), port)
    watch = Watch(bob, port, True)
    watch.start()
    for n in (0, 1000, 5 << 20):
        id_, blob, answer = party.post(alice, n, kind="file", type_="zip")
        lib.same(answer.status, 201, f"{what}: {n} bytes up")
        lib.ok(bob.get(f"/items/{id_}/blob").body == blob,
               f"{what}: {n} bytes down")
        watch.wait(answer.json["seq"], 1)
    for _ in range(20):
        watch.wait(party.post(alice, 100)[2].json["seq"], 1)
    lib.ok(True, f"{what}: each event within 1 s")
    if what == "nginx":     # Caddy reads on before it answers
        lib.same(begin_large(party, alice, port), [413],
                 f"{what}: too large")
    lib.same(Through(alice, port).get("/metrics").status, 404,
             f"{what}: no metrics")
    lib.same([s for s, _ in watch.came],
             list(range(watch.came[0][0], watch.came[-1][0] + 1)),
             f"{what}: each once, in order")
    watch.on = False
    party.end()


class Poster(threading.Thread):
    """Posts through the proxy, whatever it answers meanwhile."""

    def __init__(self, party, peer, port, lock):
        super().__init__()
        self.party, self.name, self.lock = party, peer.name, lock
        self.peer, self.on, self.acked, self.seen = Through(peer, port), \
            True, {}, set()

    def run(self):
        while self.on:
            blob = os.urandom(random.choice((100, 100, 4000, 70000)) + 28)
            with self.lock:
                id_, _, data = self.party.item(self.name, blob, kind="file",
                                               type_="zip")
            try:
                answer = self.peer.post("/items", data)
            except (OSError, http.client.HTTPException):
                self.peer.conn.close()
                time.sleep(0.05)
                continue
            self.seen.add(answer.status)
            if answer.status == 201:
                self.acked[id_] = blob
            else:
                time.sleep(0.05)


def in_order(watch, last, what):
    watch.wait(last, 20)
    first = watch.came[0][0]
    lib.same([s for s, _ in watch.came], list(range(first, last + 1)), what)


def killed(relay, port, what):
    """R2, R3, R7: the relay is killed, streams are cut, and posts go on."""
    party = Party(relay)
    party.create()
    peers = [party.join("sender", f"p{i}") for i in range(3)]
    reader = party.join("observer", "reader")
    watch, lock = Watch(reader, port, True), threading.Lock()
    posters = [Poster(party, p, port, lock) for p in peers]
    for t in (watch, *posters):
        t.start()
    for _ in range(3):
        for _ in range(8):
            time.sleep(0.05)
            watch.cut()
        relay.stop(signal.SIGKILL)
        time.sleep(0.2)
        relay.start()
        time.sleep(0.3)
    for p in posters:
        p.on = False
        p.join(60)
    acked = {k: v for p in posters for k, v in p.acked.items()}
    odd = set().union(*(p.seen for p in posters)) - {201, 502, 503, 504}
    lib.same(odd, set(), f"{what}: answers while it was killed")
    through = Through(reader, port)
    lib.ok(len(acked) > 10 and all(
        through.get(f"/items/{i}/blob").body == b for i, b in acked.items()),
        f"{what}: {len(acked)} posts acknowledged, 3 kills, all there")
    in_order(watch, reader.events()[-1]["seq"],
             f"{what}: a stream cut {watch.cuts} times: each event once")
    watch.on = False
    watch.cut()
    party.end()


def is_taken(party, peer):
    """A proxy may have closed the connection while nobody used it."""
    try:
        answer = party.post(peer, 1 << 20, kind="file", type_="zip")[2]
    except http.client.HTTPException:
        return False
    return answer.status == 201


def slow(relay, port, what):
    """R4: readers that dawdle; R6: a Date; R8: no room, and room again."""
    party = Party(relay, most=8 << 20)
    party.create()
    alice, bob = (Through(party.join("sender", n), port)
                  for n in ("alice", "bob"))
    lazy = [Watch(bob, port, True).connect() for _ in range(30)]
    ids, full = [], None
    for _ in range(80):
        began = time.monotonic()
        id_, _, answer = party.post(alice, 1 << 20, kind="file", type_="zip")
        if answer.status != 201:
            full = answer
            break
        ids.append(id_)
        lib.ok(False, "slow") if time.monotonic() - began > 5 * lib.SLOW \
            else None
    lib.same((full.status, full.error), (507, "disk_full"),
             f"{what}: 30 readers dawdle, {len(ids)} MiB later it is full")
    when = email.utils.parsedate_to_datetime(full.headers["Date"])
    lib.ok(abs(when.timestamp() - time.time()) < 5, f"{what}: a true Date")
    for id_ in ids:
        bob.post(f"/items/{id_}/ack")
    lib.wait_for(lambda: is_taken(party, alice),
                 f"{what}: acknowledged: room again")
    for s in lazy:
        s.close()
    party.end()


def hostile(relay, port, what):
    """R9: nothing of it becomes two requests, and all go on."""
    inner = (b"GET /v1/limits HTTP/1.1\r\nHost: x\r\n\r\n")
    cases = HOSTILE + [
        b"POST /v1/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5"
        b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
        b"POST /v1/health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:"
        b" xchunked\r\nContent-Length: %d\r\n\r\n%s" % (len(inner), inner),
        b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        b"%d\r\n\r\n%s" % (len(inner), inner)]

    def ask(data):
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.settimeout(0.5 * lib.SLOW)
            got = b""
            try:
                s = ssl.create_default_context(cafile=CA).wrap_socket(
                    plain, server_hostname="localhost")
                s.sendall(data)
                while part := s.recv(65536):
                    got += part
            except OSError:
                pass
            return got
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, cases))
    lib.same([c[:80] for c, a in zip(cases, answers)
              if b"max_item" in a or b"session_bytes" in a], [],
             f"{what}: {len(cases)} hostile requests, none smuggled")
    lib.same(Peer(relay).get("/v1/health").status, 200, f"{what}: it serves")


def mounts(port, what):
    made = lib.run_cli(lib.AIRLOXFS, "olga", "create", "--json", "--relay",
                       f"https://localhost:{port}")
    invite = lib.json.loads(made.stdout)["invites"]["sender"]
    a = lib.Mount("a" + what, invite)
    b = lib.Mount("b" + what, invite)
    data = random.Random(1).randbytes(700000)
    with open(b.entry(a.send("x.bin", data)), "rb") as f:
        lib.ok(f.read() == data, f"{what}: from mount to mount")
    a.end()
    b.end()


class Liar:
    """tests/hostile/liar.py, and the lie of the moment."""

    def __init__(self, relay, what):
        self.file = f"{lib.T}/lie-{what}"
        self.tell("none")
        self.child = subprocess.Popen(
            [sys.executable, lib.TOP + "/tests/hostile/liar.py",
             str(relay.port), self.file], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        atexit.register(ends, self.child)
        self.port = int(self.child.stdout.readline())

    def tell(self, lie):
        with open(self.file, "w") as f:
            f.write(lie)


# What is shown, and what refused, of three items sent under each lie.
LIES = {"envelope": (0, 3), "author": (0, 3), "blob": (0, 3),
        "flip": (0, 3), "short": (0, 3), "long": (0, 3), "repeat": (3, 3),
        "noise": (3, 0), "back": (0, 0)}


def number(mount, what):
    return int(re.search(rf"^{what} (\d+)$", mount.read("status").decode(),
                         re.M)[1])


def all_true(mount, sent, what):
    """What it shows is what was sent, by whom it was sent, and once."""
    names = []
    for n in os.listdir(mount.path("in")):
        path = mount.path("in/" + n)
        names.append(lib.attr(path, "name"))
        with open(path, "rb") as f:
            if (f.read(), lib.attr(path, "author")) != sent[names[-1]]:
                raise lib.Failed(f"{what}: {n} is not true")
    lib.ok(len(names) == len(set(names)), f"{what}: it shows the truth, once")


def lies(relay, deployed, what):
    """R5: a relay that lies, with a proxy before it that does not mind."""
    port, liar = free_port(), Liar(relay, what)
    deployed(liar, port, "lies-" + what)
    made = lib.run_cli(lib.AIRLOXFS, "olga", "create", "--json", "--relay",
                       relay.url)
    invite = lib.json.loads(made.stdout)["invites"]["sender"]
    a = lib.Mount("la" + what, invite)
    b = lib.Mount("lb" + what, invite.replace(
        relay.url, f"https://localhost:{port}"))
    sent = {}

    def send(name):
        sent[name] = (os.urandom(9).hex().encode() + b"\n", a.name)
        return a.send(name, sent[name][0])
    b.entry(send("true.md"))
    for lie, (shown, refused) in LIES.items():
        log = len(b.read("log"))
        shown += len(os.listdir(b.path("in")))
        refused += number(b, "rejected")
        liar.tell(lie)
        for i in range(3):
            send(f"{lie}{i}.md")
        lib.wait_for(lambda: len(os.listdir(b.path("in"))) == shown and
                     number(b, "rejected") == refused and
                     len(b.read("log")) > log, f"{what}: {lie}", 15)
        all_true(b, sent, f"{what}: {lie}")
    a.end()
    b.end()


def idle(relay):
    """R1: cut after 3 s of silence, and again, and then one item."""
    port = free_port()
    nginx("idle", f"server {{ listen 127.0.0.1:{port}; location / {{ "
          f"proxy_pass http://127.0.0.1:{relay.port}; proxy_http_version 1.1; "
          "proxy_read_timeout 3s; proxy_buffering off; } }\n", port)
    party = Party(relay)
    party.create()
    alice, bob = (party.join("sender", n) for n in ("alice", "bob"))
    watch = Watch(bob, port, False)
    watch.start()
    time.sleep(10)
    lib.ok(watch.cuts >= 2, f"idle streams were cut {watch.cuts} times")
    began = time.monotonic()
    seq = party.post(alice, 100)[2].json["seq"]
    lib.ok(watch.wait(seq, 5) - began < 1 * lib.SLOW,
           "a proxy with 3 s of patience: the item comes within 1 s")
    watch.on = False
    party.end()


def buffers(relay):
    """R1's other half: a proxy that keeps what it gets, whatever the relay
    asks of it, until it has had 3 s of silence."""
    port = free_port()
    nginx("buffers", f"server {{ listen 127.0.0.1:{port}; location / {{ "
          f"proxy_pass http://127.0.0.1:{relay.port}; proxy_http_version 1.1; "
          "proxy_read_timeout 3s; proxy_buffering on; proxy_buffers 8 64k; "
          "proxy_ignore_headers X-Accel-Buffering; } }\n", port)
    made = lib.run_cli(lib.AIRLOXFS, "olga", "create", "--json", "--relay",
                       f"http://127.0.0.1:{port}")
    invite = lib.json.loads(made.stdout)["invites"]["sender"]
    a, b = lib.Mount("abuf", invite), lib.Mount("bbuf", invite)
    for i in range(3):
        began = time.monotonic()
        b.entry(a.send(f"note{i}.md", b"hello\n"), 20)
        took = time.monotonic() - began
        lib.ok(took < 4 * lib.SLOW, "a proxy that buffers, from mount to "
               f"mount: within one timeout and a second ({took:.1f} s)")
        lib.ok(b.read("status").startswith(b"online"), "online")
    a.end()
    b.end()


# --- where nginx refuses, we refuse ----------------------------------------

GOOD = (b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"POST /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Length: 3\r\n\r\nabc",
        b"POST /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
HOSTILE = [
    b"GET /v1/health HTTP/1.1\r\nHost: a b\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: a/b\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: ..\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: [::1\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: \r\n\r\n",
    b"GET /v1/health HTTP/3.1\r\nHost: x\r\n\r\n",
    b"GET /v1/health HTTP/1.10\r\nHost: x\r\n\r\n",
    b"GET  /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/health\r\nHost: x\r\n\r\n",
    b"GET /v1/../../health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/%00health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/%zzhealth HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/health#f HTTP/1.1\r\nHost: x\r\n\r\n",
    b"get /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"TRACE /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT a:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\0GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\nA\0: y\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: 1 \r\n 2\r\n\r\n",
    b"POST /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: "
    b"99999999999999999999\r\n\r\n",
    b"POST /v1/health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    b"POST /v1/health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n"
    b"\r\n",
    b"POST /v1/health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, "
    b"chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/health HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"\r\n0\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 40000 + b"\r\n\r\n",
    b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
]
REFUSES = {400, 408, 411, 413, 414, 417, 431, 494, 501, 505}


def mutations(n):
    rng = random.Random(7)
    pieces = [b"\0", b"\n", b"\r", b" ", b"\t", b":", b"\r\n", b"\r\n\r\n",
              b"%", b"/", b"HTTP", b"Host: y\r\n", b"\x80", b"\x7f", b"0x",
              b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n"]
    for _ in range(n):
        data = bytearray(rng.choice(GOOD))
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(data))
            what = rng.randrange(3)
            if what == 0:
                data[at] = rng.randrange(256)
            elif what == 1:
                data[at:at] = rng.choice(pieces)
            else:
                del data[at:at + rng.randrange(1, 4)]
        yield bytes(data)


def verdict(port, data):
    """The first status; 0: closed without one; -1: it waits for more."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(0.4 * lib.SLOW)
        got = b""
        try:
            s.sendall(data)
            while part := s.recv(65536):
                got += part
        except TimeoutError:
            return (statuses(got) or [-1])[0]
        except OSError:
            pass
        return (statuses(got) or [0])[0]


def verdicts(port, cases):
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        return list(pool.map(lambda data: verdict(port, data), cases))


def differential(relay):
    port = free_port()
    inner = free_port()
    nginx("diff", "client_max_body_size 0;\n"
          f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass "
          f"http://127.0.0.1:{inner}; }} }}\n"
          f"server {{ listen 127.0.0.1:{inner}; location = /v1/health "
          "{ return 200 ok; } location / { return 404; } }\n", port)
    lib.same([verdict(port, g) for g in GOOD], [200] * 3, "nginx serves")
    lib.same([verdict(relay.port, g) for g in GOOD], [200, 405, 405],
             "and we")
    cases = HOSTILE + list(mutations(600 // lib.SLOW))
    theirs, ours = verdicts(port, cases), verdicts(relay.port, cases)
    rows = [row for row in zip(cases, theirs, ours)
            if row[1] in REFUSES or row[1] == 0]
    odd = [(data[:120], a, b) for data, a, b in rows
           if 0 < b < 400]
    refused = len(rows)
    lib.same(odd, [], f"{len(cases)} requests, {refused} that nginx refuses: "
             "we refuse them all")
    lib.ok(refused > 50, "and they are not few")


def behind(deployed, what):
    """All of it through one of them, on a relay of its own."""
    relay = lib.Relay("--trusted-proxies", "127.0.0.1",
                      "--max-session-bytes", str(40 << 20),
                      data=f"{lib.T}/relay-{what}")
    port = free_port()
    deployed(relay, port, what)
    carries(relay, port, what)
    mounts(port, what)
    lies(relay, deployed, what)
    killed(relay, port, what)
    slow(relay, port, what)
    hostile(relay, port, what)
    lib.same(relay.stop(), 0, f"{what}: a quiet end")


def main():
    for program in ("caddy", "openssl", NGINX):
        if not shutil.which(program):
            lib.skip(f"no {program} here")
    make_certs()
    os.environ["SSL_CERT_FILE"] = CA
    relay = lib.Relay("--trusted-proxies", "127.0.0.1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for stage in [pool.submit(f, *words) for f, *words in (
                (behind, deployed_nginx, "nginx"),
                (behind, deployed_caddy, "caddy"),
                (idle, relay), (buffers, relay))]:
            stage.result()
    differential(relay)
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
