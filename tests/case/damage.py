#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 300
"""Goal: S4.  Whatever is changed, cut off, removed or exchanged in the cache
and the state of a mount: no wrong byte, name or author is ever shown, what
can be fetched again is, and what was unsent is sent, is there, or is named as
damaged.  SEED=N repeats the same changes."""
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402

T = lib.T
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
SHIM = lib.TOP + "/tests/hostile/shim.py"
TURNS = int(os.environ.get("SOAK") or 1) * 2    # for each file and fault
TOLD = ("damaged", "left out", "could not be placed", "altered", "changed",
        "cannot be read", "not in order")
rng = random.Random(SEED)


class Fixture:
    """Alice with items of Bob, a draft, and three things queued."""

    def __init__(self):
        self.relay = lib.Relay()
        self.shim = subprocess.Popen(
            [SHIM, str(self.relay.port), T + "/shim"], text=True,
            stdout=subprocess.PIPE)
        port = int(self.shim.stdout.readline())
        done = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                           self.relay.url, "--json")
        links = lib.json.loads(done.stdout)["invites"]
        self.link = links["sender"].replace(
            self.relay.url, f"http://127.0.0.1:{port}")
        self.home = T + "/peers/alice"
        self.bob = lib.Mount("bob", links["owner"])
        self.fill()

    def tell(self, word):
        subprocess.run([SHIM, "tell", T + "/shim", word],
                       stdout=subprocess.DEVNULL)

    def fill(self):
        m = lib.Mount("alice", self.link)
        self.items = {"a.md": b"# a\n", "b.bin": rng.randbytes(200000),
                      "c.bin": rng.randbytes(1200000)}
        for name, data in self.items.items():
            self.bob.send(name, data)
        with open(self.bob.path("say"), "wb") as f:
            f.write(b"a text")
        lib.wait_for(lambda: len(os.listdir(m.path("in"))) == 4, "4 items")
        self.names = {n: m.read("in/" + n) for n in os.listdir(m.path("in"))}
        m.send("old.md", b"# old\n")
        self.tell("refuse")
        lib.wait_for(lambda: m.read("status").startswith(b"offline"),
                     "offline")
        self.unsent = {"q1.md": b"# q1\n", "q2.bin": rng.randbytes(400000),
                       ".kept.md": b"# kept\n"}
        for name, data in self.unsent.items():
            with open(m.path("out/" + name), "wb") as f:
                f.write(data)
        with open(m.path("say"), "wb") as f:
            f.write(b"queued text")
        lib.mounted.remove(m)
        subprocess.run([lib.AIRLOXFS, "umount", "--wait", "0s", m.dir],
                       stderr=subprocess.DEVNULL)
        self.tell("pass")
        shutil.copytree(self.home, T + "/pristine", symlinks=True)

    def restore(self):
        shutil.rmtree(self.home)
        shutil.copytree(T + "/pristine", self.home, symlinks=True)

    def files(self):
        found = []
        for d, _, names in os.walk(self.home):
            found += [f"{d}/{n}" for n in names]
        return sorted(found)


# --- faults -----------------------------------------------------------------

def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes((byte[0] ^ 1 << rng.randrange(8),)))


def faults_of(path):
    size = os.path.getsize(path.replace("/peers/alice", "/pristine", 1))
    if size:
        for at in (0, min(size - 1, 20)):
            yield f"bit at {at}", lambda p: flip(p, at)
        for _ in range(TURNS):
            at = rng.randrange(size)
            yield f"bit at {at}", lambda p: flip(p, at)
        cut = rng.randrange(size)
        yield f"cut to {cut}", lambda p: os.truncate(p, cut)
    yield "emptied", lambda p: os.truncate(p, 0)
    yield "grown", lambda p: open(p, "ab").write(bytes(100)) and None
    yield "removed", os.unlink
    yield "a link", lambda p: (os.unlink(p), os.symlink("/etc/passwd", p))


# --- what must hold ---------------------------------------------------------

def check_in(fix, m, what):
    """Right bytes or EIO at every moment; all of it in the end."""
    def whole():
        for n in os.listdir(m.path("in")):
            if n not in fix.names:
                raise lib.Failed(f"{what}: in/{n} is no name of an item")
            try:
                data = m.read("in/" + n)
            except OSError as e:
                if e.errno not in (5, 2):
                    raise lib.Failed(f"{what}: in/{n}: {e}")
                return False
            if data != fix.names[n]:
                raise lib.Failed(f"{what}: in/{n} shows wrong bytes")
            if lib.attr(m.path("in/" + n), "author") != "bob":
                raise lib.Failed(f"{what}: in/{n} has another author")
        return len(os.listdir(m.path("in"))) == len(fix.names)
    lib.wait_for(whole, f"{what}: all items, whole", 15)


def check_out(fix, m, what):
    def calm():
        s = m.read("status").decode()
        return "\nqueued 0\n" in s and s.startswith("online")
    lib.wait_for(calm, f"{what}: nothing is queued any more", 15)
    words = (m.read("log") + m.read("status")).decode(errors="replace")
    told = any(w in words for w in TOLD)
    for name, data in fix.unsent.items():
        path = m.path("out/" + name)
        try:
            with open(path, "rb") as f:
                got = f.read()
        except OSError as e:
            # what was sealed goes without its draft; that a draft was ever
            # there, nobody knows once its file is removed
            if not (told or f"sent out/{name} " in words
                    or what.endswith(": removed")):
                raise lib.Failed(f"{what}: out/{name}: {e}, and nothing is "
                                 "said")
            continue
        state = lib.attr(path, "state")
        # the sectors of a draft have no tag (SECURITY.md): its own bytes,
        # before they are sealed, are as good as the disk
        if got != data and "/drafts/" not in what:
            raise lib.Failed(f"{what}: out/{name} holds wrong bytes")
        if name == ".kept.md":
            if state != "staged":
                raise lib.Failed(f"{what}: the draft is {state}")
        elif state == "sent":
            there(fix, lib.attr(path, "id"), data, f"{what}: {name}")
        elif state not in ("failed", "staged"):
            raise lib.Failed(f"{what}: out/{name} is {state} for ever")
    if "sent a text" not in words and not told:
        raise lib.Failed(f"{what}: the text is gone, and nothing is said")


def there(fix, item_id, data, what):
    with open(fix.bob.entry(item_id), "rb") as f:
        if f.read() != data:
            raise lib.Failed(f"{what}: other bytes were sent")


def try_fault(fix, path, what, fault):
    fix.restore()
    fault(path)
    what = f"{path[len(fix.home) + 1:]}: {what}"
    try:
        m = lib.Mount("alice", fix.link)
    except lib.Failed as e:
        # it may refuse, in a sentence; then what is unsent is still there
        if str(e).count("\n") > 1 or "airloxfs: " not in str(e):
            raise lib.Failed(f"{what}: {e}")
        return f"{what}: {str(e).split('airloxfs: ')[1].strip()}"
    try:
        check_in(fix, m, what)
        check_out(fix, m, what)
    finally:
        lib.mounted.remove(m)
        subprocess.run([lib.AIRLOXFS, "umount", m.dir],
                       stderr=subprocess.DEVNULL, timeout=60)
    return None


def main():
    print(f"# SEED={SEED}", flush=True)
    fix = Fixture()
    try:
        n, refused = 0, []
        start = time.monotonic()
        for path in fix.files():
            for what, fault in faults_of(path):
                said = try_fault(fix, path, what, fault)
                refused += [said] if said else []
                n += 1
            lib.ok(True, path[len(fix.home) + 1:])
        for line in refused:
            print("#", line)
        print(f"# {n} faults in {time.monotonic() - start:.0f} s")
        lib.ok(n > 60, f"{n} faults, {len(refused)} mounts refused")
    finally:
        fix.shim.kill()
        fix.shim.wait()


if __name__ == "__main__":
    lib.run_main(main)
