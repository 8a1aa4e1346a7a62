#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 360
"""Goal: whatever is killed and however the network behaves, an item whose
writer was told 0 arrives exactly once and whole at every other mount, one
whose writer was told an errno never arrives, and nothing is left behind.

A minute by itself; SOAK=MINUTES for longer (`make soak`); SEED=N repeats the
order of the faults, as far as the machine's timing allows.
"""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402

T, SHIM = lib.T, lib.TOP + "/tests/hostile/shim.py"
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
SECONDS = 60 * float(os.environ.get("SOAK") or 0.75)
WRITERS = 3                     # at each of two mounts
# The daemon or its mount went while the writer was at it, or (strict) the
# answer of the relay was lost for good: nobody knows.
UNKNOWN = ("Connection timed out", "Transport endpoint",
           "Software caused connection abort", "No such file or directory",
           "No such device")


def sha(data):
    return hashlib.sha256(data).hexdigest()


# --- what is told and what must be ------------------------------------------

class Book:
    """Each item that was ever written: (mount, name, sum) -> its fate."""

    def __init__(self):
        self.lock = threading.Lock()
        self.fate = {}
        self.why = {}

    def note(self, who, items, fate, why):
        with self.lock:
            for name, data in items.items():
                key = (who, name, sha(data))
                self.fate[key] = fate
                self.why[key] = why

    def count(self):
        with self.lock:
            words = list(self.fate.values())
        return {w: words.count(w) for w in ("sent", "never", "unknown")}


book = Book()
stop = threading.Event()
running = {}                    # pid of a writer -> killable
running_lock = threading.Lock()
broken = []                     # what a thread found wrong


# --- mounts that come back --------------------------------------------------

class Peer:
    def __init__(self, name, relay, *flags):
        self.name, self.flags = name, flags
        self.dir = f"{T}/mnt-{name}"
        self.relay = relay
        self.shim_path = f"{T}/shim-{name}"
        self.shim = subprocess.Popen(
            [SHIM, str(relay.port), self.shim_path], text=True,
            stdout=subprocess.PIPE, stderr=open(f"{T}/shim.err", "ab"))
        self.port = int(self.shim.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        self.link = None
        self.lock = threading.Lock()    # one hand on the mount at a time
        os.makedirs(self.dir)

    def tell(self, *words):
        subprocess.run([SHIM, "tell", self.shim_path, *map(str, words)],
                       stdout=subprocess.DEVNULL, timeout=30)

    def mount(self):
        start = time.monotonic()
        done = subprocess.run(
            [lib.AIRLOXFS, "mount", "--as", self.name, "--cache-max",
             "64G", *self.flags, "-", self.dir], env=lib.peer_environ(self.name),
            input=self.link + "\n", text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=60 * lib.SLOW)
        if done.returncode:
            raise lib.Failed(f"mount of {self.name}: exit {done.returncode}:"
                             f" {done.stdout}")
        took = time.monotonic() - start
        if took > 4:
            print(f"# mount of {self.name} took {took:.1f} s "
                  f"{done.stdout.strip()}", flush=True)
        return took

    def daemon(self):
        done = subprocess.run(
            [sys.executable, lib.TOP + "/tests/lib.py", "daemon", self.dir],
            text=True, stdout=subprocess.PIPE)
        return int(done.stdout or 0)

    def helper(self):
        try:
            with open(f"/proc/{self.daemon()}/task/{self.daemon()}"
                      "/children") as f:
                return [int(p) for p in f.read().split()]
        except OSError:
            return []

    def status(self):
        try:
            with open(self.dir + "/status") as f:
                lines = f.read().splitlines()
        except OSError:
            return {}
        return {"state": lines[0].split()[0],
                **dict(s.split(" ", 1) for s in lines[1:] if " " in s)}

    def umount(self, *words):
        return subprocess.run([lib.AIRLOXFS, "umount", *words, self.dir],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)

    def end(self):
        self.shim.kill()
        self.shim.wait()


def kill(pid, number=signal.SIGKILL):
    try:
        if pid > 1:
            os.kill(pid, number)
    except ProcessLookupError:
        pass


# --- writers ----------------------------------------------------------------

def blob(rng, at_most=20000):
    n = rng.choice((1, 40, 4096, 65536, rng.randrange(1, at_most)))
    return rng.randbytes(n // 2 + 8).hex().encode()[:max(n, 12)]


class Writer(threading.Thread):
    def __init__(self, peer, number):
        super().__init__()
        self.peer, self.number = peer, number
        self.rng = random.Random(SEED * 1000 + number)
        self.turn = 0
        self.src = f"{T}/src-{number}"
        os.makedirs(self.src)

    def run(self):
        ways = (self.copy, self.copy, self.move, self.say, self.dd,
                self.sed, self.tar, self.directory, self.rename, self.large,
                self.killed)
        while not stop.is_set():
            self.turn += 1
            self.name = f"w{self.number}x{self.turn}"
            try:
                self.rng.choice(ways)()
            except Exception as e:
                broken.append(f"writer {self.number}: {e!r}")
                return
            time.sleep(self.rng.random() * 0.2)

    def source(self, name, data):
        path = f"{self.src}/{name}"
        with open(path, "wb") as f:
            f.write(data)
        return path

    def out(self, name):
        return f"{self.peer.dir}/out/{name}"

    def do(self, argv, items, single=True, **how):
        """Run it, and note what became of its items."""
        # noted first: what the killer does in between is unknown
        book.note(self.peer.name, items, "unknown", "under way")
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, **how)
        with running_lock:
            running[child.pid] = child
        try:
            said = child.communicate(timeout=90 * lib.SLOW)[1]
        except subprocess.TimeoutExpired:
            child.kill()
            raise lib.Failed(f"{argv} hangs")
        finally:
            with running_lock:
                running.pop(child.pid, None)
        fate = "unknown"
        if child.returncode == 0:
            fate = "sent"
        elif (child.returncode > 0 and single
              and not any(w in said for w in UNKNOWN)):
            fate = "never"
        book.note(self.peer.name, items, fate,
                  f"{argv[0]}: {child.returncode} {said.strip()[-160:]}")
        return fate

    def copy(self):
        data, name = blob(self.rng), self.name + ".md"
        self.do(["cp", self.source(name, data), self.out(name)],
                {name: data})

    def large(self):
        data, name = self.rng.randbytes(self.rng.randrange(
            100000, 3000000)), self.name + ".bin"
        self.do(["cp", self.source(name, data), self.out(name)],
                {name: data})

    def move(self):
        data, name = blob(self.rng), self.name + ".py"
        path = self.source(name, data)
        fate = self.do(["mv", path, self.out(name)], {name: data})
        if fate == "never" and not os.path.exists(path):
            raise lib.Failed(f"mv of {name} failed and took its source")

    def say(self):
        data = f"{self.name} says".encode()
        path = self.source(self.name, data)
        # not cp: where no mount is, it would make a file of that name
        self.do(["dd", "if=" + path, "of=" + self.peer.dir + "/say",
                 "conv=nocreat", "status=none"], {None: data})

    def dd(self):
        data, name = blob(self.rng, 200000), self.name + ".md"
        self.do(["dd", "if=" + self.source(name, data),
                 "of=" + self.out(name), "bs=7919", "conv=fsync",
                 "status=none"], {name: data})

    def rename(self):
        data, name = blob(self.rng), self.name + ".md"
        self.do(["sh", "-c", "cp $1 $2.part && mv $2.part $2", "sh",
                 self.source(name, data), self.out(name)], {name: data},
                single=False)

    def sed(self):
        name = self.name + ".md"
        if self.do(["cp", self.source(name, b"first\n"), self.out(name)],
                   {name: b"first\n"}) == "sent":
            self.do(["sed", "-i", "s/first/second/", self.out(name)],
                    {name: b"second\n"}, single=False)

    def tar(self):
        items = {f"{self.name}t{i}.md": blob(self.rng) for i in range(3)}
        for name, data in items.items():
            self.source(name, data)
        archive = f"{self.src}/{self.name}.tar"
        subprocess.run(["tar", "-C", self.src, "-cf", archive, *items],
                       check=True)
        self.do(["tar", "-C", self.peer.dir + "/out", "-xf", archive],
                items, single=False)

    def directory(self):
        """Its zip is not known to the byte: only that it comes once."""
        data = self.rng.randbytes(300)
        path = self.source("in.bin", data)
        self.do(["sh", "-c", "mkdir $1 && cp $2 $1/in.bin && "
                 "/bin/echo send >$1/ctl", "sh", self.out(self.name), path],
                {self.name + ".zip": b"a zip"}, single=False)

    def killed(self):
        """Half a file, then its writer dies of a signal."""
        name = self.name + ".md"
        half = b"half " * 2000
        child = subprocess.Popen(
            ["sh", "-c", "exec cat >$1", "sh", self.out(name)],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        book.note(self.peer.name, {name: half}, "never", "killed")
        try:
            child.stdin.write(half)
            child.stdin.flush()
            time.sleep(0.1)
        except OSError:
            pass
        child.send_signal(self.rng.choice((signal.SIGKILL, signal.SIGTERM)))
        try:
            child.stdin.close()
        except OSError:
            pass
        child.wait(60 * lib.SLOW)


# --- faults -----------------------------------------------------------------

class Killer:
    def __init__(self, relay, peers):
        self.relay, self.peers = relay, peers
        self.rng = random.Random(SEED)
        self.done = {}
        self.slowest = 0

    def daemon(self, peer):
        kill(peer.daemon())
        time.sleep(self.rng.random())
        self.slowest = max(self.slowest, peer.mount())

    def helper(self, peer):
        for pid in peer.helper():
            kill(pid)

    def relay_dies(self, _):
        self.relay.stop(signal.SIGKILL)
        time.sleep(self.rng.random() * 2)
        self.relay.start()

    def writer(self, _):
        with running_lock:
            alive = list(running.items())
        if alive:
            pid, child = self.rng.choice(alive)
            # dd catches SIGINT and closes what it has written so far, which
            # is a close like any other (airloxfs(4)).
            numbers = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
            kill(pid, self.rng.choice(numbers[:2] if child.args[0] == "dd"
                                      else numbers))

    def reset(self, peer):
        peer.tell("reset")

    def silence(self, peer):
        peer.tell(self.rng.choice(("drop", "hold", "refuse", "cutreply")))
        time.sleep(self.rng.uniform(0.5, 4))
        peer.tell("pass")
        peer.tell("reset")

    def cut(self, peer):
        peer.tell("cut", self.rng.randrange(100, 200000))
        time.sleep(1)
        peer.tell("pass")

    def again(self, peer):
        done = peer.umount("--wait", "1")
        if done.returncode not in (0, 75):
            raise lib.Failed(f"umount: {done.returncode} {done.stdout}")
        self.slowest = max(self.slowest, peer.mount())

    def run(self, end):
        faults = (self.daemon, self.daemon, self.helper, self.relay_dies,
                  self.writer, self.writer, self.writer, self.reset,
                  self.silence, self.cut, self.again)
        while time.monotonic() < end and not broken:
            fault = self.rng.choice(faults)
            fault(self.rng.choice(self.peers))
            name = fault.__name__
            self.done[name] = self.done.get(name, 0) + 1
            time.sleep(self.rng.random())


# --- the end ----------------------------------------------------------------

def is_done(peer):
    s = peer.status()
    return s.get("state") == "online" and s.get("queued") == "0"


def items_of(peer):
    """[(name or None, sum, entry)] of what arrived."""
    found = []
    where = peer.dir + "/in"
    for entry in sorted(os.listdir(where)):
        path = f"{where}/{entry}"
        author = lib.attr(path, "author")
        name = lib.attr(path, "name")
        with open(path, "rb") as f:
            data = f.read()
        if name and name.endswith(".zip"):
            data = b"a zip"
        found.append(((author, name, sha(data)), entry))
    return found


def check_items(peer):
    seen = {}
    for key, entry in items_of(peer):
        seen.setdefault(key, []).append(entry)
    wrong = []
    for key, entries in seen.items():
        if key[1] is None and key not in book.fate:
            continue            # the last words
        if book.fate.get(key) not in ("sent", "unknown"):
            wrong.append(f"{entries[0]} must not be here: "
                         f"{book.why.get(key, 'nobody wrote that')}")
        elif len(entries) > 1:
            wrong.append(f"twice: {entries}")
    for key, fate in book.fate.items():
        if fate == "sent" and key[0] != peer.name and key not in seen:
            wrong.append(f"missing: {key[:2]}, {book.why[key]}")
    if wrong:
        raise lib.Failed(f"{len(wrong)} wrong at {peer.name}: "
                         + "; ".join(wrong[:12]))
    lib.ok(True, f"{peer.name}: {sum(map(len, seen.values()))} items, each "
           "once and whole")


def clean_drafts(peer):
    where = peer.dir + "/out"
    for d, dirs, names in os.walk(where):
        for n in names:
            if n != "ctl" and lib.attr(f"{d}/{n}", "state") == "staged":
                os.unlink(f"{d}/{n}")


def leftovers(peer):
    """Temporary names and blobs that nobody needs any more."""
    home = f"{T}/peers/{peer.name}"
    found = []
    for d, _, names in os.walk(home):
        found += [f"{d}/{n}" for n in names if n.startswith(".tmp")
                  or d.endswith("/outbox")]
    return found


def heard_last(peer, writer):
    """Thousands of items are not read to find it: it is among the newest."""
    where = peer.dir + "/in"
    for entry in sorted(os.listdir(where))[-50:]:
        if entry.endswith(f"-{writer.name}.txt"):
            with open(f"{where}/{entry}") as f:
                if f.read() == f"last words of {writer.name}":
                    return True
    return False


def settle(peers, writers):
    for p in peers:
        try:
            lib.wait_for(lambda: is_done(p), f"{p.name} is online and has "
                         "sent all", 60)
        except lib.Failed:
            for name in ("status", "log"):
                with open(f"{p.dir}/{name}") as f:
                    print("".join(f"# {name}: {s}" for s in
                                  f.readlines()[-40:]), flush=True)
            raise
    for p in writers:
        with open(p.dir + "/say", "w") as f:
            f.write(f"last words of {p.name}")
    for p in peers:
        for w in writers:
            if w is not p:
                lib.wait_for(lambda: heard_last(p, w), f"{p.name} heard the "
                             f"last of {w.name}", 60)


def check_relay():
    """What everybody has is not kept: 20 minutes of it would fill a session.
    (Larger blobs are files.)"""
    where = T + "/relay/blobs"
    try:
        lib.wait_for(lambda: not os.listdir(where), "the relay kept nothing "
                     "that everybody has", 30)
    except lib.Failed:
        print("# still there:", len(os.listdir(where)), flush=True)
        raise
    lib.ok(True, "the relay kept nothing that everybody has")


def main():
    print(f"# SEED={SEED} SOAK={SECONDS / 60:g}", flush=True)
    relay = lib.Relay()
    peers = [Peer("alice", relay), Peer("bob", relay, "-o", "strict"),
             Peer("carol", relay)]
    # bob made the session: everybody who is in it takes what comes
    maker = peers[1]
    done = lib.run_cli(lib.AIRLOXFS, maker.name, "create", "--relay",
                       maker.url, "--as", maker.name, "--json")
    links = json.loads(done.stdout)["invites"]
    for p, role in zip(peers, ("sender", "owner", "observer")):
        p.link = links[role].replace(maker.url, p.url)
    try:
        soak(relay, peers)
    finally:
        stop.set()
        for p in peers:
            p.tell("pass")
            p.umount("--wait", "0")
            subprocess.run(["fusermount3", "-uz", p.dir],
                           stderr=subprocess.DEVNULL)
            p.end()


def soak(relay, peers):
    for p in peers:
        p.mount()
    writers = [Writer(p, i * 10 + k) for i, p in enumerate(peers[:2])
               for k in range(WRITERS)]
    for w in writers:
        w.start()
    killer = Killer(relay, peers)
    try:
        killer.run(time.monotonic() + SECONDS)
    finally:
        stop.set()
        for w in writers:
            w.join(120 * lib.SLOW)
    lib.ok(not broken, f"no writer was left hanging {broken[:3]}")
    print("# faults:", killer.done, "items:", book.count(),
          f"slowest mount {killer.slowest:.1f} s", flush=True)
    lib.ok(killer.slowest < 20 * lib.SLOW, "each mount came back soon")
    settle(peers, peers[:2])
    lib.ok(book.count()["sent"] > SECONDS, "something was sent")
    for p in peers:
        check_items(p)
        s = p.status()
        lib.same((s["rejected"], s["gaps"], s["pending"]), ("0", "0", "0"),
                 f"{p.name} has refused nothing and misses nothing")
    check_relay()
    for p in peers[:2]:
        clean_drafts(p)
    for p in peers:
        done = p.umount()
        lib.same(done.returncode, 0, f"umount of {p.name}, nothing unsent "
                 f"({done.stdout.strip()})")
        lib.same(leftovers(p), [], f"{p.name} left nothing temporary")


if __name__ == "__main__":
    lib.run_main(main)
