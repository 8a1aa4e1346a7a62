#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: credentials go where the policy says and nowhere else, and never come
back: schemes, surfaces, what the box sends itself, answers that echo them in
each form, and the broker's own files, memory of others, environment, errors."""
import base64
import json
import os
import re
import sys
import urllib.parse

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import broker_peer as bp                              # noqa: E402

TOKEN = "tok-5f0c/9+e1\"d\\7'%41&x"
PASS = "pässwörd-of-the-basic-one"
KEY = "key-in-a-file-0123456789"
SUB = "sub/real+secret=value~1"
FILE = lib.T + "/key"

POLICY = f"""
allow:
  - api.test
  - other.test
  - host: api.test:8080
    tls: none
  - host: plain.test
    tls: none
  - x.sub.test
  - cdn.test
  - wrong.test
credentials:
  - {{host: api.test, path: /v1/*, scheme: bearer, from: env:TOKEN}}
  - {{host: x.sub.test, scheme: basic, user: reader, from: env:PASS}}
  - {{host: cdn.test, scheme: header, header: X-Api-Key, from: file:{FILE}}}
  - host: other.test
    path: /sub/*
    scheme: substitute
    placeholder: placeholder-0001
    surfaces: [header, query, body]
    from: ["cmd:echo", "{SUB}"]
  - host: wrong.test
    scheme: substitute
    placeholder: placeholder-0002
    from: cmd:echo only-in-the-header
  - host: plain.test
    path: /ok/*
    scheme: bearer
    plaintext: true
    from: env:TOKEN
"""


def fields(req, name):
    return [v for k, v in req["fields"] if k.lower() == name]


def schemes(b, up):
    own = [("Authorization", "Bearer mine"), ("authorization", "Basic eDp5"),
           ("Cookie", "a=b"), ("Proxy-Authorization", "Basic eDp5"),
           ("Range", "bytes=0-3"), ("Accept-Encoding", "gzip"),
           ("Connection", "keep-alive, X-Drop"), ("X-Drop", "1"),
           ("X-Keep", "1")]
    b.ask("api.test", "/v1/me", fields=own)
    req = up.seen[-1]
    lib.same(fields(req, "authorization"), ["Bearer " + TOKEN],
             "bearer: exactly one Authorization, and it is ours")
    lib.same([fields(req, n) for n in ("cookie", "proxy-authorization",
                                       "range", "x-drop")], [[]] * 4,
             "nothing else of the box's goes along")
    lib.same(fields(req, "accept-encoding") + fields(req, "x-keep"),
             ["identity", "1"], "answers are asked for as they are")
    b.ask("api.test", "/v2/me", fields=own)
    req = up.seen[-1]
    lib.same(fields(req, "authorization"), ["Bearer mine", "Basic eDp5"],
             "another path: no credential, the box's stay")
    lib.same(fields(req, "range"), [], "but no Range for this host")
    for path in ("/v1/../v2", "/v1/%2e%2e/v2", "/v1/..;/v2"):
        b.ask("api.test", path)
        lib.same(fields(up.seen[-1], "authorization"), [], f"none at {path}")
    b.ask("x.sub.test", "/", fields=own)
    both = base64.b64encode(f"reader:{PASS}".encode()).decode()
    lib.same(fields(up.seen[-1], "authorization"), ["Basic " + both], "basic")
    b.ask("cdn.test", "/", fields=[("x-api-key", "mine"), ("X-API-KEY", "2")])
    lib.same(fields(up.seen[-1], "x-api-key"), [KEY], "header")
    lib.same(b.ask("api.test", "/v1/me", "TRACE")[0], 405, "no TRACE")


def surfaces(b, up):
    P = "placeholder-0001"
    for name, value, want in (
            ("Authorization", f"Bearer {P}", f"Bearer {SUB}"),
            ("Authorization", "Basic " + bp.b64(f"{P}:x"),
             "Basic " + bp.b64(f"{SUB}:x")),
            ("Authorization", "Basic " + bp.b64(f"me:{P}"),
             "Basic " + bp.b64(f"me:{SUB}")),
            ("x-api-key", P, SUB),
            ("Cookie", f"a={P}; b={P}", f"a={SUB}; b={SUB}")):
        b.ask("other.test", "/sub/a", fields=[(name, value)])
        lib.same(fields(up.seen[-1], name.lower()), [want],
                 f"substitute in {name} {value[:8]}")
    b.ask("other.test", f"/sub/a?k={P}&b=1")
    lib.same(up.seen[-1]["target"], "/sub/a?k="
             + urllib.parse.quote(SUB, safe="-._~") + "&b=1", "in a query")
    b.ask("other.test", f"/sub/{P}")
    lib.same(up.seen[-1]["target"], f"/sub/{P}", "not in a path")
    lib.ok("placeholder" in b.last("notice")["reason"], "which is a notice")
    for kind, body, want in (
            ("application/json", json.dumps({"k": P}),
             json.dumps({"k": SUB})),
            ("application/x-www-form-urlencoded", f"a=b&k={P}",
             "a=b&k=" + urllib.parse.quote(SUB, safe="-._~")),
            ("text/plain; charset=utf-8", P * 3, SUB * 3)):
        b.ask("other.test", "/sub/a", "POST", [("Content-Type", kind)],
              body.encode())
        lib.same(up.seen[-1]["body"], want, f"in {kind}")
        lib.same(fields(up.seen[-1], "content-length"), [str(len(want))],
                 "and the length is recomputed")
    s = b.tunnel("other.test")
    s.sendall(b"POST /sub/a HTTP/1.1\r\nHost: other.test\r\n"
              b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
    lib.ok(s.recv(100).startswith(b"HTTP/1.1 100 "), "100 before the body")
    for c in (P + "!").encode():
        s.sendall(b"1\r\n%c\r\n" % c)
    s.sendall(b"0\r\nX-T: 1\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 200, "split across chunks")
    lib.same(up.seen[-1]["body"], SUB + "!", "is found")
    big = b"x" * (1 << 20)
    lib.same(b.ask("other.test", "/sub/a", "POST", body=big)[0], 200, "1 MiB")
    lib.same(b.ask("other.test", "/sub/a", "POST", body=big + b"x")[0], 413,
             "and one byte")
    b.ask("other.test", "/sub/a")
    lib.ok(SUB not in json.dumps(up.seen[-1]), "without it: no credential")
    for host, target, kind in (("api.test", "/v2", "another host"),
                               ("other.test", "/x", "another path")):
        b.ask(host, target, "POST", [("K", P)], P.encode())
        lib.same(fields(up.seen[-1], "k") + [up.seen[-1]["body"]], [P, P],
                 f"at {kind} it is plain text")
    b.ask("wrong.test", "/a?k=placeholder-0002", "POST",
          [("K", "placeholder-0002")], b"placeholder-0002")
    lib.same([up.seen[-1]["target"], up.seen[-1]["body"]]
             + fields(up.seen[-1], "k"),
             ["/a?k=placeholder-0002", "placeholder-0002",
              "only-in-the-header"], "header is the default surface")


def plaintext(b, plain_up):
    def ask(target, host="plain.test"):
        s = b.connect()
        s.sendall(f"GET http://{host}{target} HTTP/1.1\r\nHost: {host}\r\n"
                  "\r\n".encode())
        return bp.read_answer(s)[0]
    lib.same(ask("/ok/1"), 200, "without TLS where the rule says so")
    lib.same(fields(plain_up.seen[-1], "authorization"), ["Bearer " + TOKEN],
             "with the credential")
    before = len(plain_up.seen)
    lib.same(ask("/v1/x", "api.test"), 403, "E4: http:// to its host")
    lib.same(ask("/v1/x", "api.test:443"), 403, "and to its port")
    lib.same(len(plain_up.seen), before, "sends nothing")


FORMS = {
    "raw": lambda s: s,
    "json": lambda s: json.dumps(s),
    "base64": lambda s: base64.b64encode(s),
    "base64, second place": lambda s: base64.b64encode(b"a" + s),
    "base64, third place": lambda s: base64.b64encode(b"ab" + s + b"c"),
    "base64url": lambda s: base64.urlsafe_b64encode(b"ab" + s),
    "percent": lambda s: urllib.parse.quote(s, safe=""),
    "percent twice": lambda s: urllib.parse.quote(
        urllib.parse.quote(s, safe=""), safe=""),
    "all percent": lambda s: "".join(f"%{c:02x}" for c in s),
    "json, all": lambda s: "".join(f"\\u{c:04x}" for c in s),
    "hex": lambda s: s.hex(),
}


def form(name, secret):
    made = FORMS[name](secret.decode() if name == "json" else secret)
    return made if isinstance(made, bytes) else made.encode()


def is_clean(text, secret, name):
    """What of the secret could be read out of this text?"""
    if secret in text or form(name, secret) in text:
        return False
    for run in re.findall(rb"[A-Za-z0-9+/_-]{12,}", text):
        for at in range(4):
            part = run[at:].replace(b"-", b"+").replace(b"_", b"/")
            part = part[:len(part) // 4 * 4]
            decoded = base64.b64decode(part)
            if any(secret[n:n + 6] in decoded
                   for n in range(0, len(secret) - 6)):
                return False
    return True


def echoes(b, up):
    """The upstream gives the token back in each form and place."""
    token = TOKEN.encode()
    n = 0
    for name in FORMS:
        made = form(name, token)
        half = len(made) // 2
        cut = [made[i:i + 1] for i in range(len(made))]
        places = {
            "a body": lambda r: bp.plain(b"<" + made + b">"),
            "chunks": lambda r: (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                 b"chunked\r\n\r\n"
                                 + bp.chunks(b"<" + made[:half], made[half:])),
            "chunks of one byte": lambda r: (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + bp.chunks(*cut)),
            "a field": lambda r: bp.plain(b"x", b"X-Echo: " + made + b"\r\n"),
            "Location": lambda r: (b"HTTP/1.1 302 Found\r\nLocation: /?k="
                                   + made + b"\r\nContent-Length: 0\r\n\r\n"),
            "the reason": lambda r: (b"HTTP/1.1 404 " + made
                                     + b"\r\nContent-Length: 0\r\n\r\n"),
            "a trailer": lambda r: (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + bp.chunks(b"x", trailer=b"X-T: " + made + b"\r\n")),
        }
        for place, answer in places.items():
            up.answer = answer
            s = b.tunnel("api.test")
            s.sendall(b"GET /v1/x HTTP/1.1\r\nHost: api.test\r\n"
                      b"Connection: close\r\n\r\n")
            got = bp.rest_of(s)
            joined = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", got)
            if not (is_clean(got, token, name)
                    and is_clean(joined, token, name) and b"***" in joined):
                raise lib.Failed(f"{name} in {place}: {got!r}")
            n += 1
    lib.ok(n == len(FORMS) * 7, f"{n} echoes are overwritten")
    up.answer = lambda r: bp.plain(bp.gz(token), b"Content-Encoding: gzip\r\n")
    status, _, body = b.ask("api.test", "/v1/x")
    lib.same(status, 502, "gzip that nobody asked for is refused")
    up.answer = lambda r: [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                           % (len(token) * 500)] + [token[:5], token[5:]] * 500
    status, _, body = b.ask("api.test", "/v2/x")
    lib.same(body, b"*" * len(token) * 500, "across writes, length kept")
    up.answer = None


def nowhere(b):
    secrets = [s.encode() for s in (TOKEN, PASS, KEY, SUB)]
    pid = b.child.pid
    needles = secrets + [base64.b64encode(s)[:-4] for s in secrets] \
        + [s.hex().encode() for s in secrets]
    with open(b.log, "rb") as f:
        text = f.read()
    lib.ok(not any(n in text for n in needles), "not in the account")
    lib.same(os.stat(b.log).st_mode & 0o777, 0o600, "which is ours alone")
    for name in ("cmdline", "environ", "maps"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as f:
                text = f.read()
        except PermissionError:
            text = b""
        if name != "environ":
            lib.ok(not any(n in text for n in needles), f"not in {name}")
    with open(f"/proc/{pid}/limits") as f:
        lib.ok(re.search(r"Max core file size\s+0 ", f.read()), "no core")


def refused():
    for line, word in (("from: env:NONE", "line 8: env:NONE is not set"),
                       ("from: env:SHORT", "shorter than 8"),
                       ("from: file:/nowhere/at/all", "No such file"),
                       ("from: cmd:false", "failed"),
                       ("from: cmd:no-such-program", "is not in"),
                       ("from: cmd:head -c 5000 /dev/zero", "longer")):
        b = bp.Broker(f"allow:\n  - api.test\n# a comment\n\n\n\n"
                      f"credentials:\n  - {{host: api.test, scheme: bearer, "
                      f"{line}}}\n", env={"SHORT": "abc"}, expect="fail")
        lib.ok(word in b.said and "abc" not in b.said, f"{line}: {b.said}")
        lib.ok(b.child.wait(10) != 0, "and it ends")


def main():
    bp.enter()
    bp.make_certs(["api.test", "other.test", "cdn.test", "x.sub.test",
                   "wrong.test"])
    with open(FILE, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write(KEY + "\n")
    up = bp.Upstream()
    plain_up = bp.Upstream("93.184.1.2", 80, tls=False)
    b = bp.Broker(POLICY, env={"TOKEN": TOKEN, "PASS": PASS})
    schemes(b, up)
    surfaces(b, up)
    plaintext(b, plain_up)
    echoes(b, up)
    nowhere(b)
    lib.same(b.end(), 0, "the broker ends")
    refused()


lib.run_main(main)
