#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: the limits of a policy hold and say so; an upstream that cannot be
looked into is denied with that reason; a name is looked up anew for each
connection, and judged anew; a thousand connections, clients that do not read
and upstreams that do not answer cost a bounded memory and hold nobody up."""
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import broker_peer as bp                              # noqa: E402

CROWD = 1000


def ask(b, n=1, **more):
    return [b.ask("api.test", **more)[0] for _ in range(n)]


def rate_and_bytes():
    b = bp.Broker("allow: [api.test]\nlimits: {requests_per_minute: 3}\n")
    lib.same(ask(b, 5), [200] * 3 + [429] * 2, "requests a minute")
    lib.ok("minute" in b.last("denied")["reason"], "with that reason")
    b.end()
    b = bp.Broker("allow: [api.test]\nlimits: {upload: 10 KB}\n")
    lib.same(ask(b, method="POST", body=b"x" * 8000), [200], "an upload")
    lib.same(ask(b, method="POST", body=b"x" * 8000), [0],
             "beyond the limit is cut off")
    lib.same(ask(b), [429], "and nothing goes after it")
    lib.ok("upload" in b.last("denied")["reason"], "with that reason")
    b.end()
    b = bp.Broker("allow: [api.test]\nlimits: {download: 100 KB}\n")
    status, _, body = b.ask("api.test", "/big")
    lib.ok(status == 0 or len(body) <= 100000, "a download is cut off")
    lib.same(ask(b), [429], "and so it stays")
    lib.ok("download" in b.last("denied")["reason"], "with that reason")
    b.end()


def connections():
    b = bp.Broker("allow: [api.test]\nlimits: {connections: 3}\n")
    held = [b.tunnel("api.test") for _ in range(3)]
    late = b.connect()
    late.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    lib.ok(not select.select([late], [], [], 0.3)[0], "a fourth waits")
    held.pop().close()
    lib.ok(select.select([late], [], [], 10 * lib.SLOW)[0],
           "until one has gone")
    b.end()


def only_http2():
    child = subprocess.Popen(
        ["openssl", "s_server", "-accept", "93.184.1.1:8444", "-alpn", "h2",
         "-cert", bp.CERT, "-key", bp.KEY, "-quiet"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    bp.atexit.register(child.kill)

    def settings(_):
        return b"\0\0\0\4\0\0\0\0\0"
    bp.Upstream(port=8445, answer=settings)
    b = bp.Broker("allow:\n  - api.test:8444\n  - api.test:8445\n")

    def there():
        try:
            socket.create_connection(("93.184.1.1", 8444)).close()
            return True
        except OSError:
            return False
    lib.wait_for(there, "openssl s_server")
    for port, how in ((8444, "by ALPN"), (8445, "by its first frame")):
        status, _, body = b.ask("api.test", port=port)
        lib.same(status, 502, f"HTTP/2 only, seen {how}")
        lib.ok(b"HTTP/2 only" in body and "HTTP/2 only" in
               b.last("denied", port=port)["reason"], "and so it says")
    child.kill()
    child.wait()
    b.end()


def dropped(up):
    """What is not carried: a request's trailers, an upgrade."""
    b = bp.Broker("allow:\n  - api.test\n  - {host: plain.test, tls: none}\n")
    s = b.tunnel("api.test")
    s.sendall(b"POST /t HTTP/1.1\r\nHost: api.test\r\nTrailer: X-T\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n"
              b"3\r\nabc\r\n0\r\nX-T: smuggled\r\n\r\n")
    lib.same(bp.read_answer(s)[0], 200, "trailers of a request")
    req = up.seen[-1]
    lib.ok(req["body"] == "abc" and "smuggled" not in str(req)
           and "railer" not in str(req), "do not go on")
    for fields in ([("Upgrade", "websocket"), ("Connection", "Upgrade")],
                   [("Upgrade", "h2c, WebSocket")]):
        before = len(up.seen)
        status, _, body = b.ask("api.test", "/ws", fields=fields)
        lib.ok(status == 501 and b"passthrough" in body
               and len(up.seen) == before, f"{fields[0]}: {status}")
    b.ask("api.test", "/h2c", fields=[("Upgrade", "h2c"),
                                      ("HTTP2-Settings", "AAMAAABkAAQ")])
    lib.ok("pgrade" not in str(up.seen[-1]) and "HTTP2" not in
           str(up.seen[-1]), "an upgrade that is an offer is dropped")
    b.end()


def rebound():
    """A name that leads elsewhere the next time is judged the next time."""
    b = bp.Broker("allow:\n  - {host: plain.test, tls: none}\n")
    hosts = lib.T + "/hosts"
    with open(hosts) as f:
        text = f.read()

    def plain():
        s = b.connect()
        s.sendall(b"GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n")
        return bp.read_answer(s)[0], s
    status, kept = plain()
    lib.same(status, 200, "a name")
    with open(hosts, "w") as f:
        f.write(text.replace("93.184.1.2 plain", "169.254.169.254 plain"))
    lib.same(plain()[0], 403, "that leads to a metadata service now")
    kept.sendall(b"GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n")
    lib.same(bp.read_answer(kept)[0], 200, "the checked address is kept")
    with open(hosts, "w") as f:
        f.write(text)
    lib.same(b.last("end", status=200)["address"], "93.184.1.2", "as it says")
    b.end()


def memory(b):
    with open(f"/proc/{b.child.pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) * 1024


def slow_server():
    """Answers /slow never, /flood with as much as is taken."""
    sock = socket.create_server(("93.184.1.2", 81), backlog=1024)
    block = b"x" * 65536
    waiting = []

    def serve():
        poll = select.epoll()
        poll.register(sock, select.EPOLLIN)
        peers, floods = {}, set()
        while True:
            for fd, ev in poll.poll():
                if fd == sock.fileno():
                    s, _ = sock.accept()
                    s.setblocking(False)
                    peers[s.fileno()] = s
                    poll.register(s, select.EPOLLIN)
                    continue
                s = peers[fd]
                try:
                    if ev & select.EPOLLIN:
                        data = s.recv(65536)
                        if not data:
                            raise OSError
                        if b"/flood" in data:
                            s.send(b"HTTP/1.1 200 OK\r\nContent-Length: "
                                   b"1000000000\r\n\r\n")
                            poll.modify(s, select.EPOLLIN | select.EPOLLOUT)
                        else:
                            waiting.append(fd)
                    if ev & select.EPOLLOUT:
                        s.send(block)
                except BlockingIOError:
                    pass
                except OSError:
                    poll.unregister(s)
                    s.close()
                    del peers[fd]
    threading.Thread(target=serve, daemon=True).start()
    return waiting


def crowd():
    b = bp.Broker("allow:\n  - api.test\n  - {host: 'plain.test:81', tls: "
                  "none}\nlimits: {connections: 2000, download: 1000 GiB}\n")
    waiting = slow_server()
    before = memory(b)
    held = []
    for i in range(CROWD):
        s = b.connect()
        kind = ("flood", "slow", "half")[i % 3]
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(b"GET http://plain.test:81/" + kind.encode()
                  + b" HTTP/1.1\r\nHost: plain.test:81\r\n"
                  + (b"" if kind == "half" else b"\r\n"))
        held.append(s)
    lib.wait_for(lambda: len(waiting) >= CROWD // 3, "all have arrived", 30)
    began = time.monotonic()
    lib.same(ask(b, 20), [200] * 20, "others are served meanwhile")
    print(f"# 20 requests in {time.monotonic() - began:.2f} s")
    lib.wait_for(lambda: lib.SLOW > 1 or settled(b), "the flood fills up", 20)
    used = memory(b) - before
    lib.ok(used < CROWD * 160 * 1024 * (1 if lib.SLOW == 1 else 4),
           f"{used >> 20} MiB for {CROWD} connections, most stuck")
    for s in held:
        s.close()
    lib.same(ask(b, 2), [200] * 2, "and when they have gone")
    lib.same(b.end(), 0, "the broker ends")


def settled(b, seen=[0]):
    """Its memory has stopped growing."""
    now = memory(b)
    same = now == seen[0]
    seen[0] = now
    time.sleep(0.2)
    return same


def main():
    bp.enter()
    bp.make_certs()

    def answer(req):
        return bp.plain(b"z" * 300000) if req["target"] == "/big" \
            else bp.Upstream.echo(req)
    up = bp.Upstream(answer=answer)
    bp.Upstream("93.184.1.2", 80, tls=False)
    rate_and_bytes()
    connections()
    only_http2()
    dropped(up)
    rebound()
    crowd()


lib.run_main(main)
