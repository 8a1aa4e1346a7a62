#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: S1.  However the invite is given, no key and no plaintext is where
others could find it: command lines, environments, names of mappings, mount
tables, what is printed and logged, the relay's data and memory, caches and
states, the helper's and the checker's memory; and in the daemon the session
key lies in locked memory alone."""
import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
import zipfile

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402

T = lib.T
MARK = b"Quetzalcoatlus-" + os.urandom(12).hex().encode()
NAME = "Hatzegopteryx-" + os.urandom(6).hex()


# --- needles ----------------------------------------------------------------

def ways_of(raw, what):
    """A secret as bytes, hex and base64 of both alphabets."""
    found = {raw: what, raw.hex().encode(): what + " (hex)",
             raw.hex().upper().encode(): what + " (HEX)"}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + raw)
        text = text[-(-shift * 4 // 3):-4].rstrip(b"=")
        found[text[2:]] = what + " (base64)"
        found[text[2:].replace(b"+", b"-").replace(b"/", b"_")] = (
            what + " (base64url)")
    return found


def keys_of(links):
    needles = {}
    for role, link in links.items():
        for name, text in re.findall(r"[#&](ok|k|rk)=([\w-]+)", link):
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            needles.update(ways_of(raw, f"{name} of {role}"))
    return needles


def session_key(links):
    return base64.urlsafe_b64decode(
        re.search(r"[#&]k=([\w-]+)", links["sender"])[1] + "==")


def look(text, needles, where):
    for needle, what in needles.items():
        if needle in text:
            raise lib.Failed(f"{what} is in {where}")


def look_in_tree(top, needles, but=()):
    n = 0
    for d, _, names in os.walk(top):
        for name in names:
            path = f"{d}/{name}"
            look(path.encode(errors="surrogateescape"), needles,
                 f"the name {path}")
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    text = f.read()
                look(text, {k: v for k, v in needles.items()
                            if (name, v.split(" (")[0]) not in but}, path)
                n += 1
    return n


# --- processes --------------------------------------------------------------

def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


class Watch(threading.Thread):
    """Looks at every process of ours, over and over, also at those that live
    for a moment only."""

    def __init__(self, needles):
        super().__init__(daemon=True)
        self.needles, self.stop = needles, threading.Event()
        self.kinds, self.found = {}, None

    def run(self):
        while not self.stop.is_set() and not self.found:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    self.look_at(pid)
                except lib.Failed as e:
                    self.found = e
            time.sleep(0.002)

    def look_at(self, pid):
        words = read(f"/proc/{pid}/cmdline").split(b"\0")
        if os.path.basename(words[0]) not in (
                b"airloxfs", b"airlox-relay", b"fusermount3"):
            return
        kind = b"relay" if b"relay" in words[0] else b"".join(
            w for w in words[:2] if w in (b"mount", b"fusermount3")
            or w.startswith(b"--"))
        self.kinds[kind.decode() or "other"] = pid
        # our own test gives one link by argv and one by environment: there
        # it is for as long as a process needs to begin
        young = time.time() - born(pid) < 1
        for name in ("cmdline", "environ", "maps", "mountinfo", "status",
                     "comm"):
            if not (young and name in ("cmdline", "environ")):
                look(read(f"/proc/{pid}/{name}"), self.needles,
                     f"{name} of {b' '.join(words[:3])!r}")


def born(pid):
    try:
        return os.stat(f"/proc/{pid}").st_ctime
    except OSError:
        return time.time()


def memory(pid):
    """(locked?, bytes) of each readable mapping."""
    locked = {}
    start = None
    for line in read(f"/proc/{pid}/smaps").decode().splitlines():
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
        if m:
            start = (int(m[1], 16), int(m[2], 16))
            # a thread's stack: what was in vector registers when it was made
            # lies there once a library resolves its first name
            if start[1] - start[0] == 8 << 20:
                start = None
        elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            start = None
        elif line.startswith("VmFlags:") and start:
            locked[start] = " lo" in line
    with open(f"/proc/{pid}/mem", "rb", 0) as f:
        for (a, b), lo in locked.items():
            for at in range(a, b, 1 << 24):
                try:
                    f.seek(at)
                    yield lo, f.read(min(1 << 24, b - at))
                except (OSError, ValueError):
                    break


def look_in_memory(pid, needles, who, locked_too=True):
    n = 0
    for last in (False, False, True):   # a cipher at work has its key at hand
        try:
            for lo, text in memory(pid):
                n += len(text)
                if locked_too or not lo:
                    look(text, needles, f"the memory of {who}")
            break
        except lib.Failed:
            if last:
                raise
            time.sleep(1)
    lib.ok(n > 100000, f"{n >> 10} KiB of the memory of {who}")


def harden_of(pid, who):
    status = read(f"/proc/{pid}/status").decode()
    limits = read(f"/proc/{pid}/limits").decode()
    core = re.search(r"Max core file size +(\S+) +(\S+)", limits)
    lib.same(core.groups(), ("0", "0"), f"{who}: no core")
    # not dumpable: what others may read of it belongs to root
    lib.same(os.stat(f"/proc/{pid}/environ").st_uid, 0, f"{who}: undumpable")
    return int(re.search(r"VmLck:\s*(\d+)", status)[1])


# --- the scenario -----------------------------------------------------------

def mount_as(name, way, link):
    """A mount whose invite is given so; what is printed."""
    where = f"{T}/mnt-{name}"
    os.makedirs(where)
    words, env, stdin = ["mount", "--as", name], lib.peer_environ(name), None
    if way == "argv":
        words += [link, where]
    elif way == "flag":
        words += ["--invite=" + link, where]
    elif way == "environment":
        env["AIRLOX_INVITE"] = link
        words += [where]
    elif way == "stdin":
        stdin = link + "\n"
        words += ["-", where]
    else:
        with open(f"{T}/link-{name}", "w") as f:
            f.write(link + "\n")
        words += [f"@{T}/link-{name}", where]
    done = subprocess.run([lib.AIRLOXFS, *words], env=env, text=True,
                          input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30 * lib.SLOW)
    if done.returncode:
        raise lib.Failed(f"{way}: {done.stdout}")
    m = lib.Mount.__new__(lib.Mount)
    m.name, m.dir = name, where
    lib.mounted.append(m)
    return m, done.stdout


def send_all(m, watch):
    """Each kind of content, with the mark in it."""
    src = f"{T}/src"
    os.makedirs(src, exist_ok=True)
    m.send(NAME + ".md", b"# " + MARK + b"\n")
    m.send(NAME + ".bin", os.urandom(400000) + MARK)
    m.send(NAME, MARK)
    with zipfile.ZipFile(src + "/z.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(2000):
            z.writestr(f"{NAME}/{i}", MARK + bytes(20000))
    with open(src + "/z.zip", "rb") as f:
        data = f.read()
    for i in range(20):         # until its checker was seen, alive
        m.send(f"{NAME}-{i}.zip", data)
        if "--check-child" in watch.kinds and i > 0:
            break
    m.send(NAME + ".png", lib.make_png(600, 600))
    with open(m.path("say"), "wb") as f:
        f.write(MARK)
    with open(m.path(f"out/.{NAME}.md"), "wb") as f:
        f.write(MARK)           # a draft
    os.setxattr(m.path(f"out/.{NAME}.md"), "user.note", MARK)


def refused(link):
    """What errors say, when the link is cut, altered, foreign."""
    said = b""
    for bad in (link[:-5], link.replace("rk=", "rk=A"),
                link.replace("v=1", "v=9")):
        for words in (["info", bad], ["send", "text", bad, "x"],
                      ["mount", bad, T + "/nowhere"]):
            done = subprocess.run(
                [lib.AIRLOXFS, *words], env=lib.peer_environ("nobody"),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=30 * lib.SLOW)
            said += done.stdout
    return said


def main():
    if os.getuid():
        lib.skip("needs root, to read the memory of others")
    relay = lib.Relay()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json")
    links = json.loads(made.stdout)["invites"]
    keys = keys_of(links)
    lib.ok(len(keys) >= 20, f"{len(keys)} forms of keys to look for")
    plain = {**ways_of(MARK, "content"), **ways_of(NAME.encode(), "a name")}
    watch = Watch({**keys, **plain})
    watch.start()

    mounts, said = [], ""
    for name, way, role in (("alice", "argv", "sender"),
                            ("bob", "environment", "owner"),
                            ("carol", "stdin", "observer"),
                            ("dave", "file", "sender"),
                            ("erin", "flag", "sender")):
        m, words = mount_as(name, way, links[role])
        mounts.append(m)
        said += words
    send_all(mounts[0], watch)
    for m in mounts[1:]:
        lib.wait_for(lambda: len(os.listdir(m.path("in"))) >= 6,
                     f"{m.name} has them")
        for n in os.listdir(m.path("in")):
            m.read("in/" + n)
    time.sleep(1.2)
    look((said.encode() + refused(links["sender"])
          + refused(links["owner"])), {**keys, **plain}, "what is printed")
    lib.ok(True, "nothing in what is printed, with errors")

    key = ways_of(session_key(links), "the session key")
    for m in mounts:
        pid = subprocess.run(
            [sys.executable, lib.TOP + "/tests/lib.py", "daemon", m.dir],
            text=True, stdout=subprocess.PIPE).stdout.strip()
        locked = harden_of(pid, f"{m.name}'s daemon")
        if lib.SLOW == 1:       # a sanitizer locks nothing, frees nothing
            lib.ok(locked > 0, "locked memory")
            lib.ok(any(session_key(links) in text
                       for lo, text in memory(pid) if lo),
                   "the key is found where it must be: in locked memory")
            look_in_memory(pid, {**key, **seeds_of(m.name)},
                           f"{m.name}'s daemon, unlocked", False)
        helper = read(f"/proc/{pid}/task/{pid}/children").split()[0].decode()
        harden_of(helper, f"{m.name}'s helper")
        look_in_memory(helper, {**keys, **ways_of(MARK, "content")},
                       f"{m.name}'s helper")
        look(m.read("log") + m.read("status") + m.read("session"), keys,
             f"{m.name}'s log")
    harden_of(relay.child.pid, "the relay")
    look_in_memory(relay.child.pid, {**keys, **plain}, "the relay")

    watch.stop.set()
    watch.join()
    if watch.found:
        raise watch.found
    for kind in ("mount", "--helper", "--check-child", "relay",
                 "fusermount3"):
        lib.ok(kind in watch.kinds, f"{kind} was looked at")
    on_disk(links, keys, plain, "while mounted")
    for m in mounts:
        m.end()
    relay.stop()
    on_disk(links, keys, plain, "afterwards")


def seeds_of(name):
    """The participant's own seed and token, of the shared cache."""
    needles = {}
    for d, _, names in os.walk(f"{T}/peers/{name}/.cache"):
        for n in names:
            if n.startswith("identity-"):
                doc = json.loads(read(f"{d}/{n}"))
                needles.update(ways_of(bytes.fromhex(
                    doc["participant_seed"]), "the participant's seed"))
    return needles


def on_disk(links, keys, plain, when):
    n = 0
    for name in os.listdir(T + "/peers"):
        own = seeds_of(name)
        n += look_in_tree(f"{T}/peers/{name}", {**keys, **plain})
        for d, _, names in os.walk(f"{T}/peers/{name}"):
            for f in names:
                if not re.fullmatch(r"identity-\w+\.json", f):
                    look(read(f"{d}/{f}"), own, f"{d}/{f}")
        n += look_in_tree(T + "/relay", own)
    n += look_in_tree(T + "/relay", {**keys, **plain})
    look(read(T + "/relay.err"), {**keys, **plain}, "the relay's log")
    lib.ok(n > 20, f"{n} files on disk, {when}")


if __name__ == "__main__":
    lib.run_main(main)
