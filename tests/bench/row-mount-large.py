#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""100 MB: through out/ to another's in/, and what that took of memory."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests/interop")
import client  # noqa: F401,E402  goes on in an environment with the SDK
import bench  # noqa: E402
import others  # noqa: E402
from bench import T, lib, median, row, seconds  # noqa: E402

BYTES = 100 * 1000 * 1000
ROUNDS = 4


def compare(source, there):
    subprocess.run(["cmp", source, there], check=True)


class Ours:
    what = "ours"

    def __init__(self, url):
        self.alice, self.bob, _ = bench.two_mounts(url)
        self.watch = bench.Watch(self.bob.path("in"))
        self.appeared = []
        self.n = 0

    def move(self, source, to):
        """Until it can be read there; `to` becomes a link to it."""
        self.n += 1
        name = f"big{self.n}.bin"
        began = time.monotonic()
        subprocess.run(["cp", source, self.alice.path("out/" + name)],
                       check=True)
        shown = self.bob.path("in/" + self.watch.next())
        took = time.monotonic() - began
        self.appeared.append(took)
        os.symlink(shown, to)
        return took

    def forget(self, to):
        os.unlink(os.readlink(to))
        os.unlink(self.alice.path(f"out/big{self.n}.bin"))


def transfer(way, source):
    """Write to readable and equal."""
    to = f"{T}/got"
    took = way.move(source, to)
    equal = to
    if isinstance(way, others.Cli):	# it sends a zip of it
        equal, source = to, T + "/cli.zip"
    took += seconds(lambda: compare(source, equal))
    if isinstance(way, Ours):
        way.forget(to)
    os.unlink(to)
    return took


# --- the floor: a file system in a process, a hash, a cipher ---------------

def speed(algorithm):
    """Bytes a second of one core."""
    out = subprocess.run(["openssl", "speed", "-seconds", "1", "-bytes",
                          "131072", "-mr", "-evp", algorithm], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return float(re.search(r"^\+F:.*:([\d.]+)$", out.stdout, re.M)[1])


class Passthrough:
    def __init__(self):
        self.behind, self.dir = T + "/behind", T + "/passthrough"
        os.mkdir(self.behind)
        os.mkdir(self.dir)
        lib.atexit.register(self.end)
        others.start([bench.BUILD + "/tests/bench/passthrough", self.behind,
                      "-f", self.dir], "passthrough.log")
        lib.wait_for(lambda: os.path.ismount(self.dir), "passthrough")

    def cost(self, source):
        took = seconds(lambda: subprocess.run(
            ["cp", source, self.dir + "/file"], check=True))
        os.unlink(self.behind + "/file")
        return (took + BYTES / speed("sha256")
                + BYTES / speed("aes-256-gcm"))

    def end(self):
        if os.path.ismount(self.dir):
            subprocess.run(["fusermount3", "-u", self.dir])


# --- rows ------------------------------------------------------------------

def tell_whole_way(ours, floor):
    took = median(ours.appeared[1:])
    row("100 MB through out/ to another's in/", f"{took:.2f} s",
        f"{median(floor):.2f} s", "cp into passthrough + sha256 + AES-GCM",
        median(floor) / took, ">= 0.5x", "0.7x")


def tell_transfers(ways, times):
    found = {w.what: median(t) for w, t in zip(ways, times)}
    ours = found.pop("ours")
    sshfs = found.pop(others.Sshfs.what, None)
    for what, took in found.items():
        bench.note(f"100 MB by {what}: {took:.2f} s")
    if found:
        best = min(found, key=found.get)
        row("100 MB, write to readable and equal", f"{ours:.2f} s",
            f"{found[best]:.2f} s", "the best of " + ", ".join(found) +
            f": {best}", ours / found[best], "<= 0.65x", "-")
    if sshfs:
        row("100 MB, write to readable and equal", f"{ours:.2f} s",
            f"{sshfs:.2f} s", "sshfs and cmp; encrypts no end", ours / sshfs,
            "-", "<= 1x")


def tell_memory(ours):
    peak = [bench.memory_kb(bench.pid_of(m), "VmHWM") / 1024
            for m in (ours.alice, ours.bob)]
    row("memory of the daemon, 100 MB sent; received",
        f"{peak[0]:.1f}; {peak[1]:.1f} MB", "-", "VmHWM", "-",
        "<= 32 MB", "16 MB")


def main():
    relay = bench.relay()
    source = T + "/source.bin"
    with open(source, "wb") as f:
        f.write(os.urandom(BYTES))
    ours, plain = Ours(relay.url), Passthrough()
    ways = [w for w in (ours, others.get_wormhole(), others.get_croc(),
                        others.get_cli(relay.url), others.get_sshfs()) if w]
    floor, *times = bench.in_turns(
        ROUNDS, lambda: plain.cost(source),
        *(lambda w=w: transfer(w, source) for w in ways))
    tell_whole_way(ours, floor)
    tell_transfers(ways, times)
    tell_memory(ours)


bench.main(main)
