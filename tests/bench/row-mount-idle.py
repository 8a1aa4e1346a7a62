#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The memory of a mount in which nothing happens."""
import time

import bench
import others


def main():
    relay = bench.relay()
    alice, bob, _ = bench.two_mounts(relay.url)
    alice.send("hello.md", b"hello\n")
    bob.read("status")
    sshfs = others.get_sshfs()
    time.sleep(2)
    ours = bench.memory_kb(bench.pid_of(bob)) / 1024
    theirs = sshfs.memory_kb() / 1024 if sshfs else 0
    bench.row("idle mount daemon, resident", f"{ours:.1f} MB",
              f"{theirs:.1f} MB" if sshfs else "-", "sshfs and its ssh",
              ours / theirs if sshfs else "-", "<= 12 MB", "8 MB")


bench.main(main)
