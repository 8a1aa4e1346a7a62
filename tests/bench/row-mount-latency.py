#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""How long an item and a message take to whoever waits for them."""
import threading
import time

import bench
from bench import lib, median, ms, row

ROUNDS, EACH = 5, 20


def flat(lists):
    return [x for one in lists for x in one]


def measure_item(alice, bob):
    ours, floor = map(flat, bench.in_turns(
        ROUNDS,
        lambda: bench.tool("wake", alice.path("out"), bob.path("in"), EACH,
                           1024),
        lambda: bench.tool("floor", lib.T, EACH)))
    row("item: open(out/f) to the wake in another's in/, p50",
        ms(median(ours)), ms(median(floor)),
        "2 loopback round trips + 1 fdatasync",
        median(ours) / median(floor), "<= 3x", "2x")
    ours.sort()
    bench.note(f"item p90 {ms(ours[len(ours) * 9 // 10])}")


class Lines(threading.Thread):
    """When each line with `mark` in it came out of a mount's events."""

    def __init__(self, path, mark):
        super().__init__(daemon=True)
        self.file, self.mark, self.times = open(path, "rb"), mark, []
        self.start()

    def run(self):
        for line in self.file:
            if self.mark in line:
                self.times.append(time.monotonic())


def say(alice, lines, count):
    """Write to `say` in the open one by one, as echo does."""
    took = []
    for _ in range(count):
        n = len(lines.times)
        began = time.monotonic()
        with open(alice.path("say"), "wb") as f:
            f.write(b"hello\n")
        lib.wait_for(lambda: len(lines.times) > n, "a line in events")
        took.append(lines.times[n] - began)
        time.sleep(0.01)
    return took


def send_texts(sender, stream, count):
    stream.tell(f"texts {count}")
    sender.tell(f"text {count}")
    left = sender.numbers(count)
    return [b - a for a, b in zip(left, stream.numbers(count))]


def measure_message(alice, bob, url):
    invites = bench.session(url)
    sender = bench.Sdk("send", invites["sender"])
    stream = bench.Sdk("stream", invites["observer"])
    lines = Lines(bob.path("events"), b'"text":"hello')
    ours, sdk = map(flat, bench.in_turns(
        ROUNDS, lambda: say(alice, lines, EACH),
        lambda: send_texts(sender, stream, EACH)))
    row("message: write(say) to the line in another's events, p50",
        ms(median(ours)), ms(median(sdk)),
        "published SDK, send_text to stream", median(ours) / median(sdk),
        "<= 0.5x", "0.3x")


def main():
    relay = bench.relay()
    alice, bob, _ = bench.two_mounts(relay.url)
    measure_item(alice, bob)
    measure_message(alice, bob, relay.url)


bench.main(main)
