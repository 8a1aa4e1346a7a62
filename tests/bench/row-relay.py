#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 400
"""The relay beside nginx, a plain fdatasync loop and a plain send loop."""
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
from servers import FREE, NGINX, start_caddy, start_nginx
from relay_peer import Party


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


def main():
    if not shutil.which(NGINX):
        lib.skip("no nginx here")
    relay = lib.Relay(*FREE)
    nginx, caddy = start_nginx(), start_caddy()
    party = Party(relay, most=200 << 20)
    party.create()
    alice = party.join("sender", "alice")
    health(nginx, caddy)
    durable(relay, party, alice)
    fan_out()
    party.end()


bench.main(main)
