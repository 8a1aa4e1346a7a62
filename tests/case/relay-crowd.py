#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 150
"""Goal: a crowd of event streams costs little memory, each of them sees each
event once, and others are served meanwhile.  SOAK: ten thousand of them, and
fifteen if there are descriptors for that, beside 2,000 items a second."""
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                            # noqa: E402
from relay_peer import Party, Peer, now_ms    # noqa: E402


def rss_kib(relay):
    with open(f"/proc/{relay.child.pid}/status") as f:
        return int(lib.re.search(r"VmRSS:\s+(\d+)", f.read())[1])


class Crowd:
    def __init__(self, relay, sid, tokens, n):
        self.child = subprocess.Popen(
            [lib.BUILD + "/tests/hostile/crowd", str(relay.port), str(n),
             sid], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            bufsize=1)
        self.child.stdin.write("\n".join(tokens) + "\n\n")
        line = self.child.stdout.readline()
        if line != f"open {n}\n":
            raise lib.Failed(f"the crowd: {line!r}")

    def count(self):
        self.child.stdin.write("count\n")
        words = self.child.stdout.readline().split()
        return int(words[1]), int(words[3]), int(words[5])

    def end(self):
        self.child.stdin.close()
        self.child.wait(20)
        self.child.stdout.close()


def load(relay, seconds, at_least):
    """Items of 64 posters of one session, as fast as they go."""
    party = Party(relay, created=now_ms() - 5000)
    party.create()
    alice = party.join("sender", "alice")
    line = f"{party.seeds['alice']} {alice.token}\n"
    n, took, until = 0, 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        done = subprocess.run(
            [lib.BUILD + "/tests/bench/post", "items", str(relay.port),
             party.sid, "200", "200"], input=line * 64, text=True,
            stdout=subprocess.PIPE, timeout=120)
        lib.same(done.returncode, 0, "posted") if done.returncode else None
        n += 64 * 200
        took += float(done.stdout.split()[0]) / 1e6
    rate = n / took
    lib.ok(rate >= at_least, f"{n} items, {rate:.0f} a second")
    party.end()


def soak(relay, n):
    """They idle while items flow; then one event is for all of them."""
    party = Party(relay)
    party.create()
    alice, bob = party.join("sender", "alice"), party.join("observer", "bob")
    before = rss_kib(relay)
    crowd = Crowd(relay, party.sid, [bob.token], n)
    each = (rss_kib(relay) - before) * 1024 / n
    lib.ok(each < 1024, f"{n} idle streams: {each:.0f} bytes each")
    load(relay, 20, 2000)
    lib.same(crowd.count(), (0, 0, 0), "none was cut, none saw a thing")
    began = time.monotonic()
    party.post(alice, 100)
    lib.wait_for(lambda: crowd.count()[0] == 1, "one event for all", 30)
    lib.ok(crowd.count() == (1, 1, 0),
           f"and it reached all in {time.monotonic() - began:.2f} s")
    crowd.end()
    lib.wait_for(lambda: "airlox_streams 0\n" in Peer(relay).get(
        "/metrics").body.decode(), "they go", 20)
    party.end()


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    n = min(1500 // (1 if lib.SLOW == 1 else 3), hard - 500)
    relay = lib.Relay("--max-streams-each", "20000",
                      "--max-address-connections", "20000", "--max-items-minute",
                      "0", "--max-address-requests", "0", "--max-items",
                      "10000000", "--max-transfer-bytes", "0")
    party, quiet = Party(relay), Party(relay)
    for p in (party, quiet):
        p.create()
    alice = party.join("sender", "alice")
    watchers = [party.join("observer", f"w{i}") for i in range(5)]
    zoe = quiet.join("sender", "zoe")
    party.post(alice, 10)
    before = rss_kib(relay)
    crowd = Crowd(relay, party.sid, [w.token for w in watchers], n)
    each = (rss_kib(relay) - before) * 1024 / n
    lib.ok(each < 4096 * lib.SLOW, f"{n} streams: {each:.0f} bytes each")
    events, slowest = 60, 0.0
    for _ in range(events):
        party.post(alice, 100)
        began = time.monotonic()
        quiet.post(zoe, 100)
        slowest = max(slowest, time.monotonic() - began)
    lib.wait_for(lambda: crowd.count()[0] == events, "all have all", 30)
    lib.same(crowd.count(), (events, events, 0),
             f"{n * events} deliveries, each once")
    lib.ok(slowest < 2 * lib.SLOW, f"another session's slowest post: "
           f"{slowest * 1000:.0f} ms")
    answer = Peer(relay).get("/metrics").body.decode()
    lib.ok(f"airlox_streams {n}\n" in answer, "metrics count them")
    crowd.end()
    lib.wait_for(lambda: "airlox_streams 0\n" in Peer(relay).get(
        "/metrics").body.decode(), "they go", 10)
    lib.ok(True, "and see them go")
    party.end()
    quiet.end()
    if os.environ.get("SOAK"):
        for more in (10000, 15000):
            if more < hard - 500:
                soak(relay, more)
            else:
                print(f"# no descriptors for {more} streams")
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
