#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: the relay's HTTP, as a hostile client and as a strict proxy see it."""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
from relay_peer import Party, Peer, raw, statuses     # noqa: E402

OK = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\n"

REFUSED = (
    ("CL with TE", POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked"
     b"\r\n\r\n0\r\n\r\n", 400),
    ("two CLs", POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
     400),
    ("+5", POST + b"Content-Length: +5\r\n\r\nhello", 400),
    ("0x5", POST + b"Content-Length: 0x5\r\n\r\nhello", 400),
    ("gzip", POST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ("bare LF", b"GET /v1/health HTTP/1.1\nHost: x\n\n", 400),
    ("obs-fold", b"GET /v1/health HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
     400),
    ("space before the colon", b"GET /v1/health HTTP/1.1\r\nHost : x\r\n\r\n",
     400),
    ("no Host", b"GET /v1/health HTTP/1.1\r\n\r\n", 400),
    ("two Hosts", b"GET /v1/health HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
     400),
    ("NUL", b"GET /v1/he\0alth HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("NUL in a field", b"GET / HTTP/1.1\r\nHost: x\0\r\n\r\n", 400),
    ("64 KiB field", b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 65536
     + b"\r\n\r\n", 431),
    ("10,000 fields", b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A:b\r\n" * 10000
     + b"\r\n", 431),
    ("CONNECT", b"CONNECT a:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("absolute form", b"GET http://a/v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
     400),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("TLS", bytes.fromhex("160301020001000001fc0303"), 400),
    ("malformed chunk", POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
     400),
    ("chunk extension", POST + b"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\n"
     b"x\r\n0\r\n\r\n", 400),
    ("unknown expectation", POST + b"Expect: tea\r\nContent-Length: 0\r\n"
     b"\r\n", 417),
    ("manifest of 64 KiB and one", POST + b"Content-Length: 65537\r\n\r\n",
     413),
    ("the same in chunks", POST + b"Transfer-Encoding: chunked\r\n\r\n"
     b"10001\r\n" + b"x" * 65537 + b"\r\n0\r\n\r\n", 413),
    ("unknown path", b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n"
     b"Connection: close\r\n\r\n", 404),
    ("dots are no path", b"GET /v1/../v1/health HTTP/1.1\r\nHost: x\r\n"
     b"Connection: close\r\n\r\n", 404),
    ("wrong method", b"DELETE /v1/health HTTP/1.1\r\nHost: x\r\n"
     b"Connection: close\r\n\r\n", 405),
)


def hostile(port):
    for what, data, want in REFUSED:
        got = raw(port, data + OK)
        lib.same(statuses(got)[:1], [want], what)
        if want not in (404, 405, 413):
            lib.ok(len(statuses(got)) == 1,
                   f"{what}: nothing behind it is served")
        lib.ok(b'"error"' in got and b'"message"' in got, f"{what}: why")
    lib.same(statuses(raw(port, OK, 0.3)), [200], "served all the same")


def pipelining(port):
    got = raw(port, OK * 50, 0.5)
    lib.same(statuses(got), [200] * 50, "50 requests in one write")
    body = b"not a manifest"
    post = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    got = raw(port, post + OK + post + OK, 0.5)
    lib.same(statuses(got), [400, 200, 400, 200],
             "bodies stay apart from requests")
    head = OK.replace(b"GET", b"HEAD")
    lib.same(statuses(raw(port, head + OK)), [405],
             "HEAD ends the connection: its answer has a body")
    s = socket.create_connection(("127.0.0.1", port))
    for byte in OK * 2:
        s.sendall(bytes([byte]))
    s.settimeout(5)
    got = b""
    while got.count(b'"ok"') < 2:
        got += s.recv(4096)
    s.close()
    lib.ok(True, "a byte at a time")
    lib.same(statuses(raw(port, OK, 5, half=True)), [200],
             "a half-closed client is answered")


def expect(relay, party):
    text = party.manifest.encode()
    head = POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    s = socket.create_connection(("127.0.0.1", relay.port))
    s.settimeout(5)
    s.sendall(head % len(text))
    lib.same(s.recv(4096), b"HTTP/1.1 100 Continue\r\n\r\n", "100 Continue")
    s.sendall(text)
    lib.same(statuses(s.recv(4096)), [201], "and then the answer")
    s.close()
    got = raw(relay.port, head % 70000)
    lib.same(statuses(got), [413], "too large: no 100 before the refusal")
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(text[i:i + 7]), text[i:i + 7])
                       for i in range(0, len(text), 7)) + b"0\r\n\r\n"
    got = raw(relay.port, POST + b"Transfer-Encoding: chunked\r\n\r\n"
              + chunked + OK, 0.5)
    lib.same(statuses(got), [200, 200], "a body in chunks, the same again")


def a_byte_each(relay, party):
    """A large blob in chunks of a byte each."""
    owner = party.join("owner", "otto")
    blob = os.urandom(100000)
    id_, _, data = party.item("otto", blob)
    s = socket.create_connection(("127.0.0.1", relay.port))
    s.settimeout(20 * lib.SLOW)
    s.sendall(POST.replace(b"sessions", b"sessions/%s/items"
                           % party.sid.encode())
              + b"Authorization: Bearer %s\r\nTransfer-Encoding: chunked"
              b"\r\n\r\n" % owner.token.encode())
    for i in range(0, len(data), 8192):
        s.sendall(b"".join(b"1\r\n%c\r\n" % x for x in data[i:i + 8192]))
    s.sendall(b"0\r\n\r\n")
    lib.same(statuses(s.recv(4096)), [201], "chunks of a byte each")
    s.close()
    lib.ok(owner.get(f"/items/{id_}/blob").body == blob, "all of them")


def too_large(relay, party):
    """413 at once, while the client goes on writing."""
    owner = party.join("owner", "olga")
    s = socket.create_connection(("127.0.0.1", relay.port))
    s.settimeout(10)
    s.sendall(b"POST /v1/sessions/%s/items HTTP/1.1\r\nHost: x\r\n"
              b"Authorization: Bearer %s\r\nContent-Length: 100000000\r\n\r\n"
              % (party.sid.encode(), owner.token.encode()))
    got, sent = b"", 0
    try:
        while sent < 50 << 20:
            s.send(b"x" * 65536)
            sent += 65536
    except OSError:
        pass
    try:
        while part := s.recv(4096):
            got += part
    except OSError:
        pass
    lib.ok(sent < 20 << 20, f"stopped after {sent} bytes")
    s.close()
    got = raw(relay.port, b"POST /v1/sessions/%s/items HTTP/1.1\r\nHost: x\r\n"
              b"Authorization: Bearer %s\r\nContent-Length: 100000000\r\n\r\n"
              % (party.sid.encode(), owner.token.encode()) + b"x" * 100000)
    lib.same(statuses(got), [413], "the answer is not lost to a reset")


def run_relay(*flags, env=None):
    return subprocess.run([lib.BUILD + "/airlox-relay", *flags], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=20, env={**os.environ, **(env or {})})


def process(relay):
    done = run_relay("--data", lib.T + "/relay", "--listen", "127.0.0.1:0")
    lib.ok(done.returncode == 11 and "another relay" in done.stderr,
           "one relay a directory")
    done = run_relay("--ephemeral", "--listen", f"127.0.0.1:{relay.port}")
    lib.ok(done.returncode != 0 and "in use" in done.stderr,
           "one relay a port")
    for flags in ((), ("--data", "x", "--ephemeral"), ("--nonsense",),
                  ("--data",), ("--ephemeral", "--listen", "nowhere"),
                  ("--ephemeral", "--threads", "0")):
        done = run_relay(*flags)
        lib.ok(done.returncode == 64 and done.stderr.count("\n") == 1,
               f"usage: {' '.join(flags)}")
    lib.ok("--listen" in run_relay("--help").stdout, "--help")
    lib.ok(run_relay("--version").stdout.startswith("airlox-relay "),
           "--version")
    with open(f"/proc/{relay.child.pid}/limits") as f:
        lib.ok("Max core file size        0" in f.read(), "no core file")
    lib.ok(os.stat(lib.T + "/relay").st_mode & 0o077 == 0, "private data")


def unix_socket():
    path = lib.T + "/sock"
    child = subprocess.Popen(
        [lib.BUILD + "/airlox-relay"], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "AIRLOX_LISTEN": "unix:" + path,
             "AIRLOX_EPHEMERAL": "1"})
    lib.same(child.stdout.readline(), f"listening on unix:{path}\n",
             "a unix socket, by environment")
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(OK)
    lib.same(statuses(s.recv(4096)), [200], "served there")
    s.close()
    child.send_signal(2)
    lib.same(child.wait(10), 0, "SIGINT ends it with 0")
    lib.ok(not os.path.exists(path), "and the socket is gone")


def main():
    relay = lib.Relay()
    party = Party(relay)
    lib.same(Peer(relay).get("/v1/health").status, 200, "health")
    hostile(relay.port)
    pipelining(relay.port)
    expect(relay, party)
    a_byte_each(relay, party)
    too_large(relay, party)
    process(relay)
    unix_socket()
    party.end()
    lib.same(relay.stop(), 0, "SIGTERM ends it with 0")
    with open(lib.T + "/relay.err") as f:
        said = f.read()
    lib.ok("127.0.0.1" not in said and party.sid not in said,
           "no address and no session in its log")


lib.run_main(main)
