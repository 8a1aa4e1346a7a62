#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Small files: how many a second leave through out/, and how long a listing
of 10,000 of them takes."""
import os

import bench
from bench import lib, median, row

BYTES = 1024
ONE, EACH, WRITERS = 150, 20, 16
ITEMS = 10000
ROUNDS = 5


def make_files(where, count):
    os.mkdir(where)
    for i in range(count):
        with open(f"{where}/n{i}.md", "wb") as f:
            f.write(b"a" * BYTES)


def send_files(sdk, where):
    sdk.tell("file " + where)
    return sdk.numbers()[0]


def measure_rate(relay):
    # in a session of its own, as the SDK's: nobody takes what is sent
    alice = lib.Mount("alice", bench.session(relay.url)["owner"])
    sdk = bench.Sdk("send", bench.session(relay.url)["sender"])
    make_files(lib.T + "/files", ONE)
    out = alice.path("out")
    one, many, theirs = bench.in_turns(
        ROUNDS,
        lambda: bench.tool("writers", out, 1, ONE, BYTES)[0],
        lambda: bench.tool("writers", out, WRITERS, EACH, BYTES)[0],
        lambda: send_files(sdk, lib.T + "/files"))
    sdk_rate = ONE / median(theirs)
    for rate, who, goal, stretch in (
            (ONE / median(one), "one writer", ">= 2x", "3x"),
            (WRITERS * EACH / median(many), f"{WRITERS} writers", ">= 6x",
             "10x")):
        row(f"small files through out/, 1 KB, {who}", f"{rate:.0f} /s",
            f"{sdk_rate:.0f} /s", "published SDK, send_file",
            rate / sdk_rate, goal, stretch)


def measure_list(relay):
    invites = bench.session(relay.url)
    alice = lib.Mount("carol", invites["owner"])
    bob = lib.Mount("dave", invites["sender"])
    bench.tool("writers", alice.path("out"), WRITERS, ITEMS // WRITERS, 64)
    lib.wait_for(lambda: len(os.listdir(bob.path("in"))) >= ITEMS,
                 "all items", 60)
    plain = "/dev/shm/" + os.path.basename(os.path.dirname(lib.T))
    os.mkdir(plain, 0o700)
    try:
        bench.tool("list", plain, ITEMS)
        ours, tmpfs = bench.in_turns(
            ROUNDS, lambda: bench.tool("list", bob.path("in"))[0],
            lambda: bench.tool("list", plain)[0])
    finally:
        bench.subprocess.run(["rm", "-rf", plain])
    row("readdir + stat of 10,000 items in in/", bench.ms(median(ours)),
        bench.ms(median(tmpfs)), "tmpfs", median(ours) / median(tmpfs),
        "<= 20x", "10x")


def main():
    relay = bench.relay()
    measure_rate(relay)
    measure_list(relay)


bench.main(main)
