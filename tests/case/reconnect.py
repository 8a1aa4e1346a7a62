#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: R3.  A relay that is away is asked again after delays that grow, are
random and keep under their cap; one that restarts ten times with mounts
attached has two streams in the end, and nobody hears an event twice."""
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402

RESTARTS, WATCH_S, CAP_S = 10, 8, 30


class Away(threading.Thread):
    """What is at the relay's port while it is away: hangs up on everybody, and
    knows when who came."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.times, self.over = [], False
        self.sock = socket.create_server(("127.0.0.1", port))
        self.start()

    def run(self):
        while True:
            c, _ = self.sock.accept()
            self.times.append(time.monotonic())
            c.close()
            if self.over:
                return

    def end(self):
        self.over = True
        socket.create_connection(self.sock.getsockname()).close()
        self.join(5)
        self.sock.close()
        return self.times[:-1]


def delays(relay, mounts):
    relay.stop()
    away = Away(relay.port)
    time.sleep(WATCH_S)
    times = away.end()
    gaps = [b - a for a, b in zip(times, times[1:])]
    print(f"# {len(times)} connections in {WATCH_S} s; pauses of "
          + " ".join(f"{g:.2f}" for g in gaps))
    # Undelayed it would be thousands; two mounts with a stream each, doubling
    # from a quarter of a second, come some twenty times.
    lib.ok(4 <= len(times) <= 120, "they come again, and not in a loop")
    half = len(gaps) // 2
    lib.ok(sum(gaps[half:]) / (len(gaps) - half) >
           sum(gaps[:half]) / half, "the pauses grow")
    lib.ok(len({round(g, 3) for g in gaps}) > len(gaps) // 2,
           "no two are alike")
    lib.ok(max(gaps) <= CAP_S, "none is above the cap")
    relay.start()
    for m in mounts:
        with open(m.path("ctl"), "w") as f:
            f.write("reconnect\n")
        lib.wait_for(lambda m=m: m.read("status").startswith(b"online"),
                     "online again", 40)


def events(m):
    fd = os.open(m.path("events"), os.O_RDONLY | os.O_NONBLOCK)
    data = b""
    try:
        while True:
            part = os.read(fd, 1 << 16)
            if not part:
                break
            data += part
    except BlockingIOError:
        pass
    os.close(fd)
    return lib.json_lines(data.decode())


def restarts(relay, alice, bob):
    for i in range(RESTARTS):
        relay.stop()
        relay.start()
        with open(alice.path(f"out/r{i}.md"), "wb") as f:
            f.write(b"# %d\n" % i)
    for m in (alice, bob):
        with open(m.path("ctl"), "w") as f:
            f.write("reconnect\n")
    lib.wait_for(lambda: len([n for n in os.listdir(bob.path("in"))
                              if "-r" in n]) == RESTARTS, "all items", 60)
    seqs = [e["seq"] for e in events(bob) if e["event"] == "item"]
    lib.same(sorted(seqs), sorted(set(seqs)), "no event twice")
    lib.same(len(seqs), RESTARTS, "each once")


def streams(relay):
    with open(f"/proc/{relay.child.pid}/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    port = f":{relay.port:04X}"
    return len([r for r in rows if r[1].endswith(port) and r[3] == "01"])


def main():
    relay = lib.Relay()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json")
    invites = lib.json.loads(made.stdout)["invites"]
    alice = lib.Mount("alice", invites["sender"])
    bob = lib.Mount("bob", invites["observer"])
    restarts(relay, alice, bob)
    delays(relay, (alice, bob))
    alice.send("last.md", b"# last\n")
    lib.wait_for(lambda: any("last.md" in n
                             for n in os.listdir(bob.path("in"))), "last", 20)
    print(f"# connections to the relay: {streams(relay)}")
    lib.ok(True, "and it goes on")
    lib.same((alice.end(), bob.end()), (0, 0), "umount")


if __name__ == "__main__":
    lib.run_main(main)
