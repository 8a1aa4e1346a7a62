#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 200
"""What the broker adds to a request on a connection that is open already,
beside programs that only pass its bytes on: nginx's stream module and
tinyproxy.  The broker ends TLS, decides, writes two lines, puts a credential
in, and searches the answer for it."""
import atexit
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import time

import bench
import lib

os.environ["TOP"] = bench.TOP
import broker_peer as bp                              # noqa: E402

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"
AT, PORT, PASS, TINY = "127.0.0.2", 18443, 18444, 18445
REQUEST = (f"GET /v1/things?page=1 HTTP/1.1\r\nHost: {AT}:{PORT}\r\n"
           "User-Agent: bench/1\r\nAccept: */*\r\n\r\n").encode()
POLICY = f"""
allow: ["{AT}:{PORT}"]
credentials:
  - {{host: "{AT}:{PORT}", scheme: bearer, from: env:TOKEN}}
"""


def start(*argv):
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL)
    atexit.register(child.kill)


def wait_port(address, port):
    def there():
        try:
            socket.create_connection((address, port), 1).close()
            return True
        except OSError:
            return False
    lib.wait_for(there, f"port {port}")


def start_nginx():
    where = lib.T + "/nginx"
    os.mkdir(where)
    body = '{"things":[' + ",".join('{"id":%d}' % i for i in range(40)) + "]}"
    stream = os.path.exists(STREAM)
    with open(where + "/conf", "w") as f:
        f.write(f"""{f"load_module {STREAM};" if stream else ""}
daemon off; master_process off; pid {where}/pid;
error_log {where}/err; events {{ worker_connections 512; }}
http {{ access_log off; keepalive_requests 10000000;
client_body_temp_path {where}/b; proxy_temp_path {where}/p;
fastcgi_temp_path {where}/f; uwsgi_temp_path {where}/u;
scgi_temp_path {where}/s;
server {{ listen {AT}:{PORT} ssl; ssl_certificate {bp.CERT};
ssl_certificate_key {bp.KEY}; default_type application/json;
location / {{ return 200 '{body}'; }} }} }}
""")
    start(NGINX, "-c", where + "/conf")
    if stream:	# a process of its own, as the others are
        with open(where + "/stream", "w") as f:
            f.write(f"""load_module {STREAM};
daemon off; master_process off; pid {where}/pid2;
error_log {where}/err2; events {{ worker_connections 512; }}
stream {{ server {{ listen {AT}:{PASS}; proxy_pass {AT}:{PORT};
tcp_nodelay on; }} }}
""")
        start(NGINX, "-c", where + "/stream")
    return stream


def start_tinyproxy():
    program = shutil.which("tinyproxy")
    if not program:
        return False
    with open(lib.T + "/tiny", "w") as f:
        f.write(f"Port {TINY}\nListen {AT}\nTimeout 600\nMaxClients 10\n"
                f"LogLevel Critical\nLogFile \"{lib.T}/tiny.log\"\n")
    start(program, "-d", "-c", lib.T + "/tiny")
    return True


def tls(sock, ca):
    ctx = ssl.create_default_context(cafile=ca)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ctx.wrap_socket(sock, server_hostname=AT)


def through(port):
    s = socket.create_connection((AT, port))
    s.sendall(f"CONNECT {AT}:{PORT} HTTP/1.1\r\nHost: {AT}:{PORT}\r\n\r\n"
              .encode())
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        data += s.recv(1)
    if b" 200 " not in data:
        raise lib.Failed(f"CONNECT: {data}")
    return tls(s, bp.CA)


def measure(s, n=2000):
    """A function that gives the median time of n requests on s."""
    def one():
        s.sendall(REQUEST)
        data = s.recv(65536)
        head = data.index(b"\r\n\r\n") + 4
        at = data.lower().index(b"content-length: ") + 16
        length = int(data[at:data.index(b"\r", at)])
        while len(data) < head + length:
            data += s.recv(65536)

    def all_of():
        times = []
        for _ in range(n):
            began = time.perf_counter()
            one()
            times.append(time.perf_counter() - began)
        return statistics.median(times)
    return all_of


def main():
    bp.HOSTS["127.0.0.2"] = "bench.test"
    bp.make_certs()
    stream, tiny = start_nginx(), start_tinyproxy()
    if not stream and not tiny:
        print("skipped: neither nginx's stream module nor tinyproxy is here")
        raise SystemExit(77)
    wait_port(AT, PORT)
    b = bp.Broker(POLICY, env={"TOKEN": "a-token-of-the-bench-0123456789"})
    ours = b.tunnel(AT, PORT)
    paths = {"direct": tls(socket.create_connection((AT, PORT)), bp.CA),
             "broker": ours}
    if stream:
        wait_port(AT, PASS)
        paths["nginx stream"] = tls(socket.create_connection((AT, PASS)),
                                    bp.CA)
    if tiny:
        wait_port(AT, TINY)
        paths["tinyproxy"] = through(TINY)
    found = dict(zip(paths, bench.in_turns(7, *(measure(s) for s in
                                                paths.values()))))
    mid = {k: bench.median(v) for k, v in found.items()}
    added = {k: v - mid["direct"] for k, v in mid.items()}
    bench.note("a request: " + ", ".join(f"{k} {v * 1e6:.0f} us"
                                         for k, v in mid.items()))
    for name in ("nginx stream", "tinyproxy"):
        if name in added:
            bench.row(f"broker: added to a request, beside {name}",
                      f"{added['broker'] * 1e6:.0f} us",
                      f"{added[name] * 1e6:.0f} us", name,
                      added["broker"] / added[name], "<= 1.5x", "1.1x")
    b.end()


main()
