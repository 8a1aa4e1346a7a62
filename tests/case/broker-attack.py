#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: what a program in a box tries with raw sockets, and a hostile upstream
with its answers: names in disguise, framing that can be read in two ways, TLS
that is no client's, heads that name other methods and paths.  Nothing but what
was decided on arrives, no credential comes back, nobody keeps the broker busy,
and it lives."""
import os
import re
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import broker_peer as bp                              # noqa: E402

TOKEN = "the-token-that-is-not-told/9+x"
POLICY = """
allow:
  - api.test
  - {host: cdn.test, method: GET, path: /pkg/*}
  - {host: plain.test, tls: none}
  - {host: pass.test, tls: passthrough}
  - {host: "pass.test:444", tls: passthrough}
credentials:
  - {host: api.test, scheme: bearer, from: env:TOKEN}
"""


def send(b, data, kind="proxy", seconds=10):
    s = b.connect(kind)
    s.sendall(data)
    s.settimeout(seconds * lib.SLOW)
    return bp.rest_of(s)


def status(data):
    return int(data[9:12]) if data[:5] == b"HTTP/" else 0


def names(b, up):
    """The host in CONNECT, in Host and in an address."""
    before = len(up.seen)
    for host in ("api.test..", ".api.test", "api..test", "api.test%00", "*",
                 "api.test%2eevil.test", "apI.test.evil.test", "api.test/",
                 "api.test@evil.test", "evil.test#api.test", "api_test",
                 "api\u3002test", "\uff41pi.test", "xn--pi-xka.test",
                 "[fe80::1%25lo]", "[fe80::1%lo]", "[::ffff:127.0.0.1]",
                 "[::]", "[0:0::1]", "2130706433", "0177.0.0.1", "127.1",
                 "0x7f000001", "127.0.0.1", "localhost", "ip6-localhost",
                 "093.184.1.1", "api.test\t", "api.test,evil.test",
                 "a" * 300 + ".test", ""):
        line = f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n"
        got = status(send(b, line.encode()))
        if got not in (400, 403):
            raise lib.Failed(f"CONNECT {host!r}: {got}")
        line = f"GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n"
        got = status(send(b, line.encode()))
        if got not in (400, 403, 421):
            raise lib.Failed(f"GET http://{host!r}: {got}")
        got = status(send(b, f"GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n"
                          .encode(), "http"))
        if got not in (400, 403):
            raise lib.Failed(f"Host {host!r}: {got}")
    for port in ("0443", "+443", "443 ", "65979", "-1", "443x", "4 43", "0",
                 "99999999999999999999", "443:443"):
        got = status(send(b, f"CONNECT api.test:{port} HTTP/1.1\r\n\r\n"
                          .encode()))
        if got not in (400, 403):
            raise lib.Failed(f"port {port!r}: {got}")
    s = b.tunnel("api.test")
    s.sendall(b"GET https://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 400, "an address in a tunnel")
    lib.same(b.ask("api.test", host_field="api.test:80")[0], 421, "a port")
    lib.same(len(up.seen), before, "nothing of it arrived")


TWO_WAYS = [
    "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "Content-Length: 3\r\nContent-Length: 4", "Content-Length: 3, 3",
    "Content-Length: +3", "Content-Length: 0x3", "Content-Length: 3 3",
    "Content-Length:", "Content-Length: 18446744073709551619",
    "Content-Length : 3", "Content-Length\t: 3", " Content-Length: 3",
    "Content-Length: 3\r\n Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: identity", "Transfer_Encoding: chunked\r\n"
    "Content-Length: 3\r\nContent_Length: 9\x00",
    "X: a\nContent-Length: 3", "X: a\rContent-Length: 3", "X\x00: 1",
    "Host: evil.test", "X: \x7f",
]
CHUNKS = [b"3;a=b\r\nabc\r\n0\r\n\r\n", b"3 \r\nabc\r\n0\r\n\r\n",
          b"0x3\r\nabc\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"+3\r\nabc\r\n",
          b"1000000000000000003\r\nabc\r\n0\r\n\r\n", b"3\r\nabcd\r\n0\r\n\r\n",
          b"-1\r\nabc\r\n", b"\r\n3\r\nabc\r\n0\r\n\r\n",
          b"3\r\nabc\r\n0\r\nX: 1\n\r\n", b"3\r\nabc\r\n0\r\nX\x00: 1\r\n\r\n"]


def smuggling(b, up):
    before = len(up.seen)
    hidden = b"GET /hidden HTTP/1.1\r\nHost: api.test\r\n\r\n"
    for field in TWO_WAYS:
        s = b.tunnel("api.test")
        s.sendall(b"POST /outer HTTP/1.1\r\nHost: api.test\r\n"
                  + field.encode("latin-1") + b"\r\n\r\n0\r\n\r\n" + hidden)
        got = bp.rest_of(s)
        if status(got) not in (400, 431, 501) or got.count(b"HTTP/1.1 ") > 1:
            raise lib.Failed(f"{field!r}: {got[:90]}")
    lib.same(len(up.seen), before, f"{len(TWO_WAYS)} framings are refused")
    for body in CHUNKS:
        s = b.tunnel("api.test")
        s.sendall(b"POST /outer HTTP/1.1\r\nHost: api.test\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n" + body + hidden)
        s.settimeout(0.4 * lib.SLOW)
        bp.rest_of(s)
    for version in ("HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 "):
        s = b.tunnel("api.test")
        s.sendall(f"POST /outer {version}\r\nHost: api.test\r\nTransfer-"
                  "Encoding: chunked\r\n\r\n0\r\n\r\n".encode() + hidden)
        lib.ok(status(bp.rest_of(s)) in (400, 505), version)
    lib.ok(not [r for r in up.seen[before:] if r["target"] == "/hidden"],
           f"nor do {len(CHUNKS)} chunks hide a request")
    s = b.tunnel("api.test")
    s.sendall(b"GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n" * 20)
    lib.same([bp.read_answer(s)[0] for _ in range(20)], [200] * 20,
             "pipelined, in order")


def overrides(b, up):
    before = len(up.seen)
    for name in ("X-HTTP-Method-Override", "x-http-method",
                 "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"):
        got = b.ask("cdn.test", "/pkg/a", fields=[(name, "DELETE")])
        lib.same(got[0], 403, name)
    for path in ("/pkg/%c0%ae%c0%ae/x", "/pkg/%e0%80%ae%e0%80%ae/x",
                 "/pkg/%252e%252e/x", "/pkg/..%00/x", "/pkg/.%2e;a/x",
                 "/PKG/a", "//pkg/a", "/pkg//../x", "/pkg\\..\\x",
                 "/pkg/\u2025/x".encode().decode("latin-1"), "/./pkg/a",
                 "/pkg/%2", "/pkg/a b"):
        got = b.ask("cdn.test", path)[0]
        if got not in (400, 403):
            raise lib.Failed(f"{path}: {got}")
    lib.same(len(up.seen), before, "no other method or path arrives")
    lib.same(b.ask("api.test", "/", fields=[("X-HTTP-Method", "GET")])[0], 200,
             "where all are allowed they are the box's own matter")


def hello(names, pieces=None):
    """A ClientHello with these names (type, bytes), as records."""
    listed = b"".join(struct.pack(">BH", kind, len(n)) + n
                      for kind, n in names)
    ext = struct.pack(">HHH", 0, len(listed) + 2, len(listed)) + listed
    versions = b"\0\x2b\0\3\2\3\4"
    body = (b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\x01" + b"\1\0"
            + struct.pack(">H", len(ext + versions)) + ext + versions)
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    size = pieces or len(message)
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(message[i:i + size]))
                    + message[i:i + size]
                    for i in range(0, len(message), size))


def odd_tls(b, up):
    api = b"api.test"
    for what, data in (
            ("a NUL", hello([(0, b"api.test\0.evil.test")])),
            ("no name", hello([(0, b"")])), ("too long", hello([(0, b"a" * 400)])),
            ("two names", hello([(0, api), (0, b"evil.test")])),
            ("another kind", hello([(1, api)])),
            ("an address", hello([(0, b"93.184.1.1")])),
            ("blanks", hello([(0, b" api.test ")])),
            ("UTF-8", hello([(0, "\uff41pi.test".encode())])),
            ("junk", b"\x16\3\1\x40\0" + b"\1\xff\xff\xff" + b"a" * 20000),
            ("an alert", b"\x15\3\1\0\2\2\x28"),
            ("application data", b"\x17\3\3\0\5hello"),
            ("SSLv2", b"\x80\x2e\1\0\2\0\x15\0\0\0\x10" + bytes(40)),
            ("empty records", b"\x16\3\1\0\0" * 100)):
        got = send(b, data, "https", 0.4)
        if b"HTTP/" in got or got[:1] == b"\x16":
            raise lib.Failed(f"{what}: {got[:40]}")
        head = b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n"
        if b"\r\n\r\nHTTP/" in send(b, head + data, seconds=0.4):
            raise lib.Failed(what)
    got = send(b, hello([(0, api)], 1), "https")
    lib.ok(got and got[-1] != 112, "a hello in records of one byte has a name")
    ctx = b.context()
    ctx.maximum_version = bp.ssl.TLSVersion.TLSv1_2
    s = ctx.wrap_socket(b.connect("https"), server_hostname="api.test")
    lib.same(b.ask("api.test", sock=s)[0], 200, "TLS 1.2 is taken")
    ctx = bp.ssl.SSLContext(bp.ssl.PROTOCOL_TLS_CLIENT)
    ctx.load_verify_locations(b.ca)
    ctx.set_alpn_protocols(["h2"])
    try:
        ctx.wrap_socket(b.connect("https"), server_hostname="api.test")
        raise lib.Failed("HTTP/2 was taken")
    except OSError:
        lib.ok(True, "HTTP/2 alone is refused")


def answers(b, up):
    token = TOKEN.encode()
    ok = b"HTTP/1.1 200 OK\r\n"

    def ask(answer, method="GET", ends=False):
        def give(_):
            yield answer
            if ends:
                raise EOFError
        up.answer = give
        s = b.tunnel("api.test")
        s.sendall(f"{method} / HTTP/1.1\r\nHost: api.test\r\nConnection: "
                  "close\r\n\r\n".encode())
        got = bp.rest_of(s)
        up.answer = None
        if token in got:
            raise lib.Failed(f"the token came back: {got}")
        return got
    got = ask(b"HTTP/1.1 103 Early Hints\r\nLink: " + token + b"\r\n\r\n"
              + b"HTTP/1.1 100 Continue\r\n\r\n" + bp.plain(b"late"))
    lib.ok(got.count(b"HTTP/1.1") == 1 and got.endswith(b"late"),
           "answers that are none yet do not go on")
    got = ask(ok + b"Content-Length: 30\r\nSet-Cookie: k=" + token
              + b"; Path=/\r\nWWW-Authenticate: Basic realm=\"" + token
              + b"\"\r\n\r\n" + token, "HEAD")
    lib.ok(got.endswith(b"\r\n\r\n") and b"k=***" in got, "HEAD has no body")
    for code in (b"204 No", b"304 Not"):
        got = ask(b"HTTP/1.1 " + code + b"\r\nContent-Length: 5\r\n\r\nHTTP/"
                  b"1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        lib.ok(b"evil" not in got and got.count(b"HTTP/1.1") == 1,
               code.decode() + ": what comes after it is nobody's answer")
    for answer, what in (
            (ok + b"Content-Encoding: x-gzip\r\nContent-Length: 1\r\n\r\nx",
             "an encoding"),
            (ok + b"Content-Encoding: identity, gzip\r\nContent-Length: 1\r\n"
             b"\r\nx", "encodings"),
            (ok + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
             "a coding"),
            (ok + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
             b"0\r\n\r\n", "two lengths"),
            (ok + b"X: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
             "a bare CR"),
            (ok + b"X: a\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
             "a bare LF"),
            (b"HTTP/2 200\r\n\r\n", "a version"), (b"220 ftp\r\n\r\n", "FTP"),
            (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "101"),
            (b"HTTP/1.1 099 x\r\n\r\n", "a status"),
            (ok + b"X: " + b"a" * 70000 + b"\r\n\r\n", "a long head")):
        lib.same(status(ask(answer)), 502, f"refused: {what}")
    got = ask(b"HTTP/1.0 200 OK\r\n\r\n" + token + b" to the end",
              ends=True)
    lib.ok(b"*" * len(token) + b" to" in got.replace(b"\r\n", b""),
           "HTTP/1.0 to the end of the connection")
    lib.same(b.ask("api.test")[0], 200, "others do not notice")


def busy(b, up):
    """A tunnel of which one end has gone and the other does not read."""
    sock = socket.create_server(("93.184.1.1", 444))

    def serve():
        s, _ = sock.accept()
        try:
            s.sendall(b"x" * (8 << 20))
        except OSError:
            pass
        s.close()
    threading.Thread(target=serve, daemon=True).start()
    s = b.connect()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(b"CONNECT pass.test:444 HTTP/1.1\r\nHost: pass.test:444\r\n\r\n"
              + hello([(0, b"pass.test")]))
    s.recv(39)
    s.shutdown(socket.SHUT_WR)
    t = b.connect("https")
    t.sendall(hello([(0, b"api.test")]))
    t.shutdown(socket.SHUT_WR)
    time.sleep(0.5)

    def ticks():
        with open(f"/proc/{b.child.pid}/stat") as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    before = ticks()
    time.sleep(1)
    used = ticks() - before
    lib.ok(used < 30, f"waiting costs {used} ticks a second")


def main():
    bp.enter()
    bp.make_certs()
    up = bp.Upstream()
    bp.Upstream("93.184.1.2", 80, tls=False)
    b = bp.Broker(POLICY, env={"TOKEN": TOKEN},
                  doors=("proxy", "http", "https"))
    for part in (names, smuggling, overrides, odd_tls, answers, busy):
        began = time.monotonic()
        part(b, up)
        print(f"# {part.__name__}: {time.monotonic() - began:.1f} s",
              flush=True)
    lib.ok(all(re.fullmatch(r"[\x20-\x7e]*", str(x)) for x in b.lines()),
           "the account is clean text")
    lib.same(b.end(), 0, "the broker lives")


lib.run_main(main)
