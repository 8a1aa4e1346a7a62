#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: default deny.  What the policy names goes through, the rest is refused
with a reason that a program can read, and each decision is a line: tunnels,
names that disagree, addresses by class, methods, paths, plain HTTP."""
import os
import socket
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import broker_peer as bp                              # noqa: E402

POLICY = """
allow:
  - api.test
  - host: "*.sub.test"
  - host: cdn.test
    method: [GET, HEAD]
    path: /pkg/*
    reason: packages
  - loop.test
  - meta.test
  - private.test
  - own.test
  - mapped.test
  - nat64.test
  - nowhere.test
  - wrong.test
  - host: pass.test
    tls: passthrough
  - host: plain.test
    tls: none
  - host: 127.0.0.2:8443
"""


def tunnels(b, up):
    status, _, body = b.ask("api.test", "/x?y=1", fields=[("A", "b")])
    lib.same(status, 200, "what is allowed goes through")
    lib.same(up.seen[-1]["target"], "/x?y=1", "as it was asked")
    line = b.last("allowed", path="/x")
    lib.same([line[k] for k in ("host", "port", "method", "door")],
             ["api.test", 443, "GET", "proxy"], "and is a line")
    end = b.last("end", n=line["n"])
    lib.same([end["status"], end["address"]], [200, "93.184.1.1"],
             "and so is its end")
    status, _, body = b.ask("evil.test")
    lib.same(status, 403, "what is not allowed is refused")
    lib.ok(b"api.test:443" in body and b"get around" in body,
           "with what is, and advice")
    lib.ok("not in the policy" in b.last("denied", host="evil.test")["reason"],
           "and is a line")
    for target in ("93.184.1.1:443", "[::1]:443", "api.test:444",
                   "api.test:80", "plain.test:80", "127.0.0.1:8443",
                   "0x7f.1:443", "api.test", "api.test:443:443"):
        s = b.connect()
        s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
                  .encode())
        lib.ok(bp.rest_of(s)[9:12] in (b"403", b"400"), f"CONNECT {target}")
    lib.same(b.ask("127.0.0.2", port=8443)[0], 200, "a literal address")


def names_disagree(b, up):
    before = len(up.seen)
    s = b.tunnel("api.test", sni="evil.test")
    got = b.ask("api.test", sock=s)
    lib.same(got[0], 421, "CONNECT api, SNI evil")
    s = b.tunnel("api.test", sni="cdn.test")
    lib.same(b.ask("cdn.test", "/pkg/a", sock=s)[0], 421, "SNI another")
    s = b.tunnel("api.test", named=False)
    lib.same(b.ask("api.test", sock=s)[0], 421, "no SNI")
    for name in ("evil.test", "api.test:444", "api.test@evil.test", "",
                 "api.test, evil.test"):
        got = b.ask("api.test", host_field=name or " ")
        lib.ok(got[0] in (400, 421), f"Host {name!r}: {got[0]}")
    s = b.tunnel("api.test")
    lib.same(b.ask("api.test", "/first", sock=s)[0], 200, "the first")
    lib.same(b.ask("evil.test", "/second", sock=s)[0], 421,
             "another Host on a connection that is kept")
    s = b.connect()
    s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    lib.ok(b" 421 " in bp.rest_of(s), "CONNECT and its own Host")
    s = b.tunnel("api.test")
    s.sendall(b"GET /one HTTP/1.1\r\nHost: api.test\r\n\r\n"
              b"GET /two HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 200, "pipelined: the first")
    lib.same(bp.read_answer(s)[0], 421, "pipelined: to another host")
    lib.same([x["target"] for x in up.seen[before:]], ["/first", "/one"],
             "nothing else arrived")
    lib.same(b.ask("API.TEST", "/case")[0], 200, "upper case")
    s = b.tunnel("api.test.", sni="api.test")
    lib.same(b.ask("api.test.", "/dot", sock=s)[0], 200, "a last dot")
    s = b.tunnel("api.test")
    s.sendall(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 405, "a tunnel within a tunnel")
    s = b.connect()
    s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    s.recv(100)
    s.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
    lib.ok(b" 403 " in bp.rest_of(s), "plain HTTP in a tunnel")
    s = b.connect()
    s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    s.recv(100)
    s.sendall(b"\0\1\2\3\4\5\6\7")
    lib.same(bp.rest_of(s), b"", "what is not TLS")


def addresses(b):
    for name, word in (("loop.test", "loopback"), ("meta.test", "metadata"),
                       ("private.test", "private network"),
                       ("own.test", "private network"),
                       ("mapped.test", "private network"),
                       ("nat64.test", "loopback")):
        status, _, body = b.ask(name)
        lib.same(status, 403, f"{name} is refused")
        lib.ok(word in b.last("denied", host=name)["reason"], f"as {word}")
    lib.same(b.ask("nowhere.test")[0], 502, "a name that is none")
    lib.same(b.ask("wrong.test")[0], 502, "another's certificate")
    lib.ok("not trusted" in b.last("failed", host="wrong.test")["reason"],
           "is named")


def methods_and_paths(b, up):
    for method, target, want in (
            ("GET", "/pkg/a", 200), ("HEAD", "/pkg/a", 200),
            ("POST", "/pkg/a", 403), ("GET", "/other", 403),
            ("GET", "/pkg/../x", 403), ("GET", "/pkg/%2e%2e/x", 403),
            ("GET", "/pkg/..%2fx", 403), ("GET", "/pkg/%5c..%5cx", 403),
            ("TRACE", "/pkg/a", 405), ("get", "/pkg/a", 403),
            ("OPTIONS", "*", 403)):
        status, _, body = b.ask("cdn.test", target, method)
        lib.same(status, want, f"{method} {target}")
        lib.ok(want != 403 or b"denied" in body, "with words")
    lib.same(b.ask("x.sub.test")[0], 200, "below a name")
    lib.same(b.ask("sub.test")[0], 403, "not the name itself")
    lib.same(b.ask("api.test", "/", fields=[("Upgrade", "websocket")])[0],
             501, "a WebSocket")
    lib.ok("X-Trace" not in str(up.seen), "nothing odd arrived")


def plain(b, plain_up):
    def ask(text):
        s = b.connect()
        s.sendall(text.encode())
        return bp.read_answer(s)
    lib.same(ask("GET http://plain.test/a?b HTTP/1.1\r\nHost: plain.test\r\n"
                 "\r\n")[0], 200, "http:// where the policy says so")
    lib.same(plain_up.seen[-1]["target"], "/a?b", "in origin form")
    for text, want, what in (
            ("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 403,
             "http:// to a host of TLS"),
            ("GET http://plain.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421,
             "another Host"),
            ("GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 400,
             "https:// without CONNECT"),
            ("GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n", 400,
             "no proxy request"),
            ("GET http://a@plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n",
             400, "a user in the address"),
            ("GET http://plain.test/ HTTP/1.1\r\n\r\n", 400, "no Host"),
            ("GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n"
             "Host: plain.test\r\n\r\n", 400, "two Hosts")):
        lib.same(ask(text)[0], want, what)


def transparent(b, up):
    s = b.context().wrap_socket(b.connect("https"), server_hostname="api.test")
    lib.same(b.ask("api.test", "/t", sock=s)[0], 200, ":443 goes by SNI")
    lib.same(b.last("allowed", path="/t")["door"], "https", "as a line says")
    s = b.context().wrap_socket(b.connect("https"),
                                server_hostname="evil.test")
    lib.same(b.ask("evil.test", sock=s)[0], 403, "another name is answered")
    s = b.context().wrap_socket(b.connect("https"), server_hostname="api.test")
    lib.same(b.ask("cdn.test", "/pkg/a", sock=s)[0], 421, "Host is compared")
    ctx = b.context()
    ctx.check_hostname = False
    try:
        ctx.wrap_socket(b.connect("https"))
        raise lib.Failed("TLS without SNI began")
    except OSError:
        lib.ok("SNI" in b.last("denied", door="https",
                               reason="TLS without a server name (SNI): nobody "
                               "knows which host is meant")["reason"],
               "no SNI, no TLS")
    s = b.connect("http")
    s.sendall(b"GET /h HTTP/1.1\r\nHost: plain.test\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 200, ":80 goes by Host")
    s = b.connect("http")
    s.sendall(b"GET /h HTTP/1.1\r\nHost: api.test\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 403, "and is as strict")
    s = b.connect("http")
    s.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 405, "no CONNECT there")


def passthrough(b):
    s = b.connect()
    s.sendall(b"CONNECT pass.test:443 HTTP/1.1\r\nHost: pass.test:443\r\n\r\n")
    s.recv(100)
    ctx = bp.ssl.create_default_context(cafile=bp.CA)
    t = ctx.wrap_socket(s, server_hostname="pass.test")
    lib.same(b.ask("pass.test", "/p", sock=t)[0], 200,
             "passthrough shows the upstream's certificate")
    t.close()
    lib.ok(b.last("end", host="pass.test")["down"] > 100, "and is counted")
    s = b.tunnel("pass.test", sni="api.test")
    lib.same(b.ask("pass.test", sock=s)[0], 421, "another SNI is not carried")


def main():
    bp.enter()
    bp.make_certs()
    with open("/etc/hosts") as f:
        lib.ok("api.test" in f.read(), "a network of our own")
    up = bp.Upstream()
    bp.Upstream("127.0.0.2", 8443)
    plain_up = bp.Upstream("93.184.1.2", 80, tls=False)
    b = bp.Broker(POLICY, doors=("proxy", "http", "https"))
    tunnels(b, up)
    names_disagree(b, up)
    addresses(b)
    methods_and_paths(b, up)
    plain(b, plain_up)
    transparent(b, up)
    passthrough(b)
    lib.same(b.end(), 0, "the broker ends with its control socket")


lib.run_main(main)
