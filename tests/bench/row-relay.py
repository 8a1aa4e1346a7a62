#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 400
"""The relay beside nginx, a plain fdatasync loop and a plain send loop."""
import hashlib
import os
import resource
import secrets
import shutil
import socket
import subprocess
import threading
import time

import bench
import lib
from relay_peer import Party

FREE = ("--max-items-minute", "0", "--max-address-connections", "1000000",
        "--max-address-requests", "0", "--max-streams-each", "20000",
        "--max-items", "1000000", "--max-transfer-bytes", "0")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


def cpu(pid):
    """Seconds of CPU of all its threads."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def post(*words, stdin=""):
    done = subprocess.run([bench.BUILD + "/tests/bench/post",
                           *map(str, words)], input=stdin, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)
    if done.returncode:
        raise lib.Failed(f"post: {done.stderr[-300:]}")
    return [float(x) / 1e6 for x in done.stdout.split()]


def start_nginx():
    where = lib.T + "/nginx"
    os.makedirs(where + "/www")
    os.chmod(where + "/www", 0o777)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(where + "/conf", "w") as f:
        f.write(f"""daemon off; master_process off; pid {where}/pid;
error_log {where}/err; events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; keepalive_requests 1000000;
client_max_body_size 0; client_body_temp_path {where}/body;
proxy_temp_path {where}/p; fastcgi_temp_path {where}/f;
uwsgi_temp_path {where}/u; scgi_temp_path {where}/s;
server {{ listen 127.0.0.1:{port}; root {where}/www;
location = /v1/health {{ default_type application/json;
return 200 '{{"status":"ok"}}'; }}
location /put/ {{ proxy_pass http://127.0.0.1:{port}/v1/health;
client_body_in_file_only on; }} }} }}
""")
    child = subprocess.Popen([NGINX, "-e", where + "/err", "-c",
                              where + "/conf"])
    lib.atexit.register(lambda: (child.terminate(), child.wait()))

    def up():
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False
    lib.wait_for(up, "nginx")
    return child.pid, port, where + "/www"


def start_caddy():
    """(pid, port), or None where there is none."""
    if not shutil.which("caddy"):
        return None
    where = lib.T + "/caddy"
    os.makedirs(where)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(where + "/Caddyfile", "w") as f:
        f.write("{\n\tadmin off\n\tauto_https off\n}\n"
                f"http://127.0.0.1:{port} {{\n\trespond /v1/health "
                "`{\"status\":\"ok\"}`\n\troot * " + lib.T +
                "/nginx/www\n\tfile_server\n}\n")
    child = subprocess.Popen(
        ["caddy", "run", "--adapter", "caddyfile", "--config",
         where + "/Caddyfile"], stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": where, "XDG_DATA_HOME": where,
             "XDG_CONFIG_HOME": where, "GOMAXPROCS": "1"})
    lib.atexit.register(lambda: (child.terminate(), child.wait()))

    def up():
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False
    lib.wait_for(up, "caddy")
    return child.pid, port


class Crowd:
    def __init__(self, relay, peer, n, lag=()):
        self.child = subprocess.Popen(
            [bench.BUILD + "/tests/hostile/crowd", str(relay.port), str(n),
             peer.sid, *lag], stdin=subprocess.PIPE, text=True, bufsize=1,
            stdout=subprocess.PIPE)
        self.child.stdin.write(peer.token + "\n\n")
        if self.child.stdout.readline() != f"open {n}\n":
            raise lib.Failed("the crowd")

    def wait(self, k):
        self.child.stdin.write(f"wait {k}\n")
        self.child.stdout.readline()

    def all(self):
        self.child.stdout.readline()

    def end(self):
        self.child.stdin.close()
        self.child.wait(20)
        self.child.stdout.close()


def one_more(*flags):
    """A relay in memory: what is measured is not the disk."""
    child = subprocess.Popen([bench.BUILD + "/airlox-relay", *FREE,
                              "--ephemeral", "--listen", "127.0.0.1:0",
                              *flags], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    lib.atexit.register(lambda: (child.terminate(), child.wait()))
    return child, int(child.stdout.readline().rsplit(":", 1)[1])


def health(nginx, caddy):
    def each(pid, port):
        def measure():
            before = cpu(pid)
            post("gets", port, "/v1/health", 30000, 16)
            return (cpu(pid) - before) / 30000
        return measure
    child, port = one_more("--threads", "1")
    ours, theirs = (bench.median(x) for x in bench.in_turns(
        3, each(child.pid, port), each(nginx[0], nginx[1])))
    child.terminate()
    child.wait()
    bench.row("relay CPU per health request", f"{ours * 1e6:.1f} us",
              f"{theirs * 1e6:.1f} us", "nginx, 1 worker", ours / theirs,
              "<= 1.0x", "0.9x")
    if caddy:
        other = bench.median(bench.in_turns(3, each(*caddy))[0])
        bench.row("relay CPU per health request", f"{ours * 1e6:.1f} us",
                  f"{other * 1e6:.1f} us", "caddy", ours / other, "-", "-")


def durable(relay, party, alice):
    line = f"{party.seeds['alice']} {alice.token}\n"

    def items():
        before = cpu(relay.child.pid)
        took = post("items", relay.port, party.sid, 60, 200, stdin=line * 64)
        return 64 * 60 / took[0], (cpu(relay.child.pid) - before) / 3840

    def plain():
        return 300 / post("sync", lib.T + "/sync", 300, 1000)[0]
    ours, theirs = bench.in_turns(3, items, plain)
    rate, loop = bench.median(x[0] for x in ours), bench.median(theirs)
    bench.row("durable items/s, 64 clients", f"{rate:.0f}/s",
              f"{loop:.0f}/s", "fdatasync loop", rate / loop, ">= 3.5x", "4x")
    watched = Party(relay)
    watched.create()
    peer = watched.join("observer", "w")
    n = min(10000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500)
    rss = bench.memory_kb(relay.child.pid)
    crowd = Crowd(relay, peer, n)
    each = (bench.memory_kb(relay.child.pid) - rss) * 1024 / n
    bench.row("memory per idle stream", f"{each:.0f} B", "-", f"{n} streams",
              "-", "<= 1 KB", "512 B")
    beside = [items() for _ in range(3)]
    crowd.end()
    time.sleep(1)
    alone = [items() for _ in range(3)]
    ours, theirs = (bench.median(x[1] for x in y) for y in (beside, alone))
    bench.row(f"CPU per item beside {n} idle streams",
              f"{ours * 1e6:.0f} us", f"{theirs * 1e6:.0f} us",
              "without them", ours / theirs, "<= 1.05x", "1.02x")
    bench.note(f"beside them {bench.median(x[0] for x in beside):.0f} items/s,"
               f" without {bench.median(x[0] for x in alone):.0f}")
    watched.end()


def request(party, peer, n):
    data = party.item(peer.name, secrets.token_bytes(n + 28))[2]
    return (f"POST /v1/sessions/{party.sid}/items HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {peer.token}\r\nContent-Length: "
            f"{len(data)}\r\n\r\n".encode() + data)


def fan_out():
    class relay:
        child, port = one_more()
    party = Party(relay)
    party.create()
    alice, bob = party.join("sender", "alice"), party.join("observer", "bob")
    crowd = Crowd(relay, bob, 1000)
    socks = [socket.create_connection(("127.0.0.1", relay.port))
             for _ in range(8)]
    for s in socks:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    size = len(party.item("alice", bytes(128))[1]) * 11 // 10 + 60

    def burst(k):
        def measure():
            datas = [request(party, alice, 100) for _ in range(k)]
            crowd.wait(1000 * k)
            began = time.monotonic()
            for s, data in zip(socks, datas):
                s.sendall(data)
            crowd.all()
            took = time.monotonic() - began
            for s in socks[:k]:
                s.recv(4096)
            return took
        return measure

    def plain():
        return bench.median(bench.tool("fanout", 1000, size, 1, 15))
    for k, goal, stretch in ((1, ">= 0.9x", "1.0x"), (8, ">= 4x", "6x")):
        ours, theirs = (bench.median(x) for x in bench.in_turns(
            15, burst(k), plain))
        bench.row(f"{'one event' if k == 1 else 'burst of 8'} to 1,000 "
                  "streams", f"{1000 * k / ours / 1e3:.0f}k/s",
                  f"{1000 / theirs / 1e3:.0f}k/s", "send loop",
                  1000 * k / ours / (1000 / theirs), goal, stretch)
    stalled(relay, party, alice, bob)
    crowd.end()
    party.end()


def stalled(relay, party, alice, bob):
    on = threading.Event()

    def flow():
        s = socket.create_connection(("127.0.0.1", relay.port))
        while not on.is_set():
            s.sendall(request(party, alice, 3000))
            s.recv(4096)
            time.sleep(0.01)

    def p99():
        return post("gets", relay.port, "/v1/health", 8000, 4)[2]
    thread = threading.Thread(target=flow, daemon=True)
    thread.start()
    p99()
    without = bench.median(p99() for _ in range(5))
    crowd = Crowd(relay, bob, 100, ("lag",))
    time.sleep(2)
    beside = bench.median(p99() for _ in range(5))
    on.set()
    thread.join(20)
    bench.row("p99 of others with 10 % of streams stalled",
              bench.ms(beside), bench.ms(without), "none stalled",
              beside / without, "<= 1.2x", "1.05x")
    crowd.child.kill()
    crowd.child.wait()


def curl(*words):
    done = subprocess.run(["curl", "-sS", "-o", lib.T + "/out", "-w",
                           "%{http_code} %{time_total}", "-H", "Expect:",
                           *words], text=True, stdout=subprocess.PIPE)
    status, took = done.stdout.split()
    if status not in ("200", "201"):
        raise lib.Failed(f"curl: {status}")
    return float(took)


def large(relay, party, alice, nginx, caddy):
    n = 100 << 20
    blob = secrets.token_bytes(1 << 20) * 100
    with open(nginx[2] + "/blob", "wb") as f:
        f.write(blob)
    url = f"http://127.0.0.1:{relay.port}/v1/sessions/{party.sid}/items"
    auth = ("-H", f"Authorization: Bearer {alice.token}")
    last = []

    def up():
        id_, _, data = party.item("alice", blob + secrets.token_bytes(28),
                                  kind="file", type_="zip")
        with open(lib.T + "/body", "wb") as f:
            f.write(data)
        last[:] = [id_]
        return curl(*auth, "--data-binary", f"@{lib.T}/body", url)

    def up_nginx():
        return curl("--data-binary", f"@{nginx[2]}/blob",
                    f"http://127.0.0.1:{nginx[1]}/put/")
    ours, theirs = (bench.median(x) for x in bench.in_turns(
        3, up, up_nginx))
    bench.row("100 MB blob up, hashed and durable", f"{n / ours / 1e9:.2f} "
              "GB/s", f"{n / theirs / 1e9:.2f} GB/s",
              "nginx into a file, no hash, no sync", theirs / ours,
              ">= 1.3x", "1.5x")
    sums = bench.median(n / bench.seconds(lambda: hashlib.sha256(blob))
                        for _ in range(3))
    bench.note(f"SHA-256 alone, on one core: {sums / 1e9:.2f} GB/s")
    ours, theirs = (bench.median(x) for x in bench.in_turns(
        5, lambda: curl(*auth, f"{url}/{last[0]}/blob"),
        lambda: curl(f"http://127.0.0.1:{nginx[1]}/blob")))
    bench.row("100 MB blob down", f"{n / ours / 1e9:.2f} GB/s",
              f"{n / theirs / 1e9:.2f} GB/s", "nginx sendfile",
              theirs / ours, ">= 1.1x", "1.3x")
    if caddy:
        other = bench.median(curl(f"http://127.0.0.1:{caddy[1]}/blob")
                             for _ in range(5))
        bench.row("100 MB blob down", f"{n / ours / 1e9:.2f} GB/s",
                  f"{n / other / 1e9:.2f} GB/s", "caddy", other / ours, "-",
                  "-")


def main():
    if not shutil.which(NGINX) or not shutil.which("curl"):
        lib.skip("no nginx or no curl here")
    relay = lib.Relay(*FREE)
    nginx, caddy = start_nginx(), start_caddy()
    party = Party(relay, most=200 << 20)
    party.create()
    alice = party.join("sender", "alice")
    health(nginx, caddy)
    durable(relay, party, alice)
    fan_out()
    large(relay, party, alice, nginx, caddy)
    party.end()


bench.main(main)
