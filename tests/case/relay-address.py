#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: one address takes neither all connections nor all requests, a trusted
proxy is no address, and who is elsewhere notices nothing; a SIGHUP does no
harm at any moment; a revocation names everybody it cuts off."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                 # noqa: E402
from relay_peer import Party, Peer, Stream, raw, statuses  # noqa: E402

OK = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
MOST = 10


def dial(relay, source):
    return socket.create_connection(("127.0.0.1", relay.port), 20,
                                    (source, 0))


def answer(s, data=OK):
    """(status, Retry-After) of the next answer, or None where it is cut."""
    try:
        s.sendall(data)
        got = s.recv(4096)
    except OSError:
        return None
    found = lib.re.search(rb"Retry-After: (\d+)", got)
    return (statuses(got) or [0])[0], int(found[1]) if found else None


def connections(relay):
    held = [dial(relay, "127.0.0.6") for _ in range(MOST)]
    lib.same([answer(s)[0] for s in held], [200] * MOST,
             f"{MOST} connections of one address")
    with dial(relay, "127.0.0.6") as s:
        lib.ok(s.recv(4096).startswith(b"HTTP/1.1 429 ") and
               s.recv(1) == b"", "one more is told, and closed")
    with dial(relay, "127.0.0.6") as s:
        lib.ok(answer(s) in (None, (429, 10)), "also when it asks at once")
    with dial(relay, "127.0.0.3") as s:
        lib.same(answer(s)[0], 200, "another address is served")
    held.pop().close()

    def back():
        with dial(relay, "127.0.0.6") as s:
            return (answer(s) or [0])[0] == 200
    lib.wait_for(back, "room again when one has gone")
    for s in held:
        s.close()


def behind_a_proxy(relay):
    """127.0.0.2 is trusted: it has no limit, its clients' streams have."""
    held = [dial(relay, "127.0.0.2") for _ in range(3 * MOST)]
    lib.same({answer(s)[0] for s in held}, {200},
             f"{3 * MOST} connections of a trusted proxy")
    party = Party(relay)
    Peer(relay).post("/v1/sessions", party.manifest)
    alice = party.join("sender", "alice")

    def stream(s, client):
        return answer(s, f"GET /v1/sessions/{party.sid}/stream HTTP/1.1\r\n"
                      f"Host: x\r\nX-Forwarded-For: {client}\r\n"
                      f"Authorization: Bearer {alice.token}\r\n\r\n"
                      .encode())[0]
    lib.same([stream(s, "192.0.2.1") for s in held[:MOST]], [200] * MOST,
             "as many streams of one client")
    lib.same(stream(held[MOST], "192.0.2.1"), 429, "and no more")
    lib.same(stream(held[MOST], "192.0.2.2"), 200, "but of another")
    lib.same([stream(s, "2001:db8::%x" % i) for i, s in
              enumerate(held[MOST + 1:2 * MOST + 1])], [200] * MOST,
             "addresses of one /64")
    lib.same(stream(held[2 * MOST + 1], "2001:db8::ffff"), 429, "are one")
    held.pop(0).close()
    lib.wait_for(lambda: stream(held[-1], "192.0.2.1") == 200,
                 "room again when one has gone")
    for s in held:
        s.close()
    party.end()


def requests(relay, most):
    with dial(relay, "127.0.0.4") as s:
        seen = [answer(s) for _ in range(most + 3)]
    lib.same([x[0] for x in seen], [200] * most + [429] * 3,
             f"{most} requests a minute, and no more")
    lib.ok(1 <= seen[-1][1] <= 60, f"come back in {seen[-1][1]} s")
    with dial(relay, "127.0.0.4") as s:
        lib.same(answer(s, b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")[0],
                 429, "whatever is asked, on any connection")
    with dial(relay, "127.0.0.5") as s:
        lib.same(answer(s)[0], 200, "another address is served")
    with dial(relay, "127.0.0.2") as s:
        as_client = (b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"
                     b"X-Forwarded-For: %s\r\n\r\n")
        lib.same([answer(s, as_client % b"127.0.0.4")[0],
                  answer(s, as_client % b"192.0.2.9")[0]], [429, 200],
                 "a client is who a trusted proxy says")
    with dial(relay, "127.0.0.4") as s:
        lib.same(answer(s, as_client % b"192.0.2.9")[0], 429,
                 "and not who it says itself")


def hangup():
    """SIGHUP while it starts (the access log is a pipe that nobody reads
    yet), and while it serves; without TLS."""
    pipe = lib.T + "/pipe"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [lib.BUILD + "/airlox-relay", "--ephemeral", "--listen",
         "127.0.0.1:0", "--access-log", pipe], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)

    def waits():
        with open(f"/proc/{child.pid}/wchan") as f:
            where = f.read()
        with open(f"/proc/{child.pid}/status") as f:
            caught = lib.re.search(r"SigCgt:\s+(\w+)", f.read())[1]
        return "fifo" in where or (int(caught, 16) & 1 and
                                   child.poll() is None)
    lib.wait_for(waits, "it starts")
    for _ in range(3):
        child.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    lib.same(child.poll(), None, "SIGHUP while it starts")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    port = int(child.stdout.readline().rsplit(":", 1)[1])
    for _ in range(20):
        child.send_signal(signal.SIGHUP)
        lib.same(statuses(raw(port, OK.replace(
            b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))), [200],
            "SIGHUP while it serves") if _ % 10 == 0 else time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    lib.same(child.wait(20), 0, "and it ends when told")
    os.close(reader)


def revoked(relay):
    """A join that is on its way while the revocation is decided."""
    missing = 0
    for _ in range(15):
        party = Party(relay)
        Peer(relay).post("/v1/sessions", party.manifest)
        owner = party.join("owner", "olga")
        texts = [party.join_text("sender", f"s{i}").encode()
                 for i in range(12)]
        data = b"".join(
            b"POST /v1/sessions/%s/participants HTTP/1.1\r\nHost: x\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (party.sid.encode(), len(t), t)
            for t in texts)
        flood = threading.Thread(target=raw, args=(relay.port, data, 0.3))
        flood.start()
        owner.post("/roles/sender/revoke")
        flood.join()
        events = owner.events()
        joined = {e["data"]["participant_pub"] for e in events
                  if e["kind"] == "participant"
                  and e["data"]["role"] == "sender"}
        named = [e["data"]["participants"] for e in events
                 if e["kind"] == "revoked"]
        missing += len(joined - set(named[0]))
        lib.same(len(named), 1, "revoked once") if _ == 0 else None
        party.end()
    lib.same(missing, 0, "nobody who had joined is missing in `revoked`")


def main():
    relay = lib.Relay("--max-address-connections", str(MOST),
                      "--trusted-proxies", "127.0.0.2", "--max-streams-each",
                      "100", "--threads", "2")
    limits = Peer(relay).get("/v1/limits").json
    lib.same((limits["address_connections"],
              limits["address_requests_minute"]), (MOST, 600000),
             "/v1/limits")
    connections(relay)
    behind_a_proxy(relay)
    relay.stop()
    relay.flags = ("--max-address-requests", "40", "--trusted-proxies",
                   "127.0.0.2")
    relay.start()
    requests(relay, 40)
    relay.stop()
    relay.flags = ("--threads", "2")
    relay.start()
    lib.ok(Peer(relay).get("/v1/limits").json["address_connections"] > 99,
           "by default half of what there is room for")
    revoked(relay)
    hangup()


lib.run_main(main)
