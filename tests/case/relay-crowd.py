#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: a crowd of event streams costs little memory, each of them sees each
event once, and others are served meanwhile.  SOAK: ten thousand of them, or as
many as there are descriptors for."""
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                            # noqa: E402
from relay_peer import Party, Peer    # noqa: E402


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


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    n = 10000 if os.environ.get("SOAK") else 1500
    n = min(n // (1 if lib.SLOW == 1 else 3), hard - 500)
    relay = lib.Relay("--max-streams-each", "20000",
                      "--max-address-connections", "20000", "--max-items-minute",
                      "0")
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
    lib.same(relay.stop(), 0, "a quiet end")


lib.run_main(main)
