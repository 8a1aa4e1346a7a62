#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fixtures for scenarios in Python, and small tools for those in shell.

    lib.py get PATH             a value of the JSON on stdin: invites.owner
    lib.py errno CODE           run it; OK, or the name of the errno it met
    lib.py daemon DIR           the pid that serves this mount
    lib.py xattr FILE NAME      its value, or nothing
    lib.py setxattr FILE NAME VALUE
    lib.py samples DIR          one file of each kind that an item can be
    lib.py keys PATH... < LINKS   where the keys of these links lie open, as
                                base64url, hex or bytes: in files, under
                                directories, in processes (a number)
"""
import atexit
import base64
import errno
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib

TOP = os.environ.get("TOP") or os.path.dirname(
    os.path.dirname(os.path.abspath(__file__)))
T = os.environ.get("T", "/nowhere")
BUILD = os.environ.get("BUILD", TOP + "/build")
AIRLOXFS = BUILD + "/airloxfs"
SLOW = 1 if os.path.basename(BUILD) == "build" else 3


# --- sample content --------------------------------------------------------

def png_chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(
        ">I", zlib.crc32(body))


def make_png(width=16, height=16, text=None):
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 9 & 255, y * 7 & 255, 90))
                         for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    extra = png_chunk(b"tEXt", b"Comment\0" + text) if text else b""
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + extra
            + png_chunk(b"IDAT", zlib.compress(rows))
            + png_chunk(b"IEND", b""))


def make_samples(where):
    """{file name: bytes}: one of each kind, as images that hold nothing to
    clean, so that what arrives is what was sent."""
    os.makedirs(where, exist_ok=True)
    samples = {
        "main.py": b"print('h\xc3\xa9llo')\n",
        "notes.md": "# Notes – ünïcode\n".encode(),
        "chart.png": make_png(),
    }
    for name in ("plain.jpg", "plain.webp"):
        with open(f"{TOP}/tests/data/{name}", "rb") as f:
            samples[name] = f.read()
    path = where + "/tree.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(zipfile.ZipInfo("a/b.txt"), "inside\n" * 50)
        z.writestr(zipfile.ZipInfo("c.md"), "# c\n")
    with open(path, "rb") as f:
        samples["tree.zip"] = f.read()
    for name, data in samples.items():
        with open(f"{where}/{name}", "wb") as f:
            f.write(data)
    return samples


# --- asserting and waiting -------------------------------------------------

class Failed(Exception):
    pass


steps = 0


def ok(held, what):
    global steps
    if not held:
        raise Failed(what)
    steps += 1
    print(f"ok {steps} - {what}", flush=True)


def same(got, want, what):
    if got != want:
        raise Failed(f"{what}: got {got!r:.600}, want {want!r:.600}")
    ok(True, what)


def wait_for(test, what, seconds=10):
    """The first true answer."""
    end = time.monotonic() + seconds * SLOW
    while True:
        answer = test()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def run_main(main):
    """Run a scenario: 0, or what failed and 1."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except Failed as e:
        print(f"FAILED: {e}", flush=True)
        show_mounts()
        sys.exit(1)
    sys.exit(0 if steps else 1)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


# --- relay -----------------------------------------------------------------

class Relay:
    def __init__(self, *flags, port=0, data=None):
        self.flags, self.port, self.child = flags, port, None
        self.data = data or T + "/relay"  # T changes with the user
        atexit.register(self.stop)
        self.start()

    def start(self):
        self.child = subprocess.Popen(
            [BUILD + "/airlox-relay", "--listen", f"127.0.0.1:{self.port}",
             "--data", self.data, *self.flags], stdout=subprocess.PIPE,
            stderr=open(self.data + ".err", "ab"),
            text=True)
        line = self.child.stdout.readline()
        m = re.fullmatch(r"listening on (http://127\.0\.0\.1:(\d+))\n", line)
        if not m:
            raise Failed(f"the relay's first line: {line!r}")
        self.url, self.port = m[1], int(m[2])

    def stop(self, number=signal.SIGTERM):
        if self.child:
            self.child.send_signal(number)
            status = self.child.wait(20)
            self.child = None
            return status


# --- peers with a home of their own ----------------------------------------

def peer_environ(name):
    home = f"{T}/peers/{name}"
    os.makedirs(home, exist_ok=True)
    return dict(os.environ, HOME=home, XDG_CACHE_HOME=home + "/.cache",
                XDG_STATE_HOME=home + "/.local/state",
                XDG_CONFIG_HOME=home + "/.config")


def run_cli(program, name, *words, invite=None, status=0, stdin=None,
            timeout=60):
    """Run a command line as a peer; the invite goes by environment."""
    env = peer_environ(name)
    if invite:
        env["AIRLOX_INVITE"] = invite
    done = subprocess.run([program, *words], env=env, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=timeout * SLOW)
    if done.returncode != status and status is not None:
        raise Failed(f"{os.path.basename(program)} {' '.join(words)}: exit "
                     f"{done.returncode}, not {status}: {done.stderr[:500]}")
    return done


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


mounted = []


class Mount:
    """One of our mounts, on a machine of its own."""

    def __init__(self, name, invite, *flags):
        self.name, self.dir = name, f"{T}/mnt-{name}"
        os.makedirs(self.dir, exist_ok=True)
        atexit.register(self.end)
        done = subprocess.run(
            [AIRLOXFS, "mount", "--as", name, *flags, "-", self.dir],
            env=peer_environ(name), input=invite + "\n", text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=30 * SLOW)
        if done.returncode:
            raise Failed(f"mount of {name}: exit {done.returncode}: "
                         f"{done.stderr}")
        mounted.append(self)

    def path(self, name):
        return f"{self.dir}/{name}"

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def send(self, name, data, refs=None):
        path = self.path("out/" + name)
        with open(path, "wb") as f:
            if refs:
                os.setxattr(path, "user.airlox.refs", refs.encode())
            f.write(data)
        return self.wait_sent(name)

    def wait_sent(self, name):
        path = self.path("out/" + name)
        wait_for(lambda: attr(path, "state") == "sent", f"{name} sent")
        return attr(path, "id")

    def entry(self, item_id, seconds=10):
        """The entry of in/ with this id."""
        def look():
            for n in sorted(os.listdir(self.path("in"))):
                if attr(self.path("in/" + n), "id") == item_id:
                    return self.path("in/" + n)
        return wait_for(look, f"item {item_id} in {self.name}'s in/",
                        seconds)

    def end(self):
        if self not in mounted:
            return
        mounted.remove(self)
        done = subprocess.run([AIRLOXFS, "umount", self.dir], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60)
        if done.returncode:
            subprocess.run(["fusermount3", "-uz", self.dir])
        return done.returncode


def show_mounts():
    for m in mounted:
        for name in ("status", "log"):
            print(f"-- {m.name}/{name}")
            try:
                print(m.read(name).decode(errors="replace")[-1500:])
            except OSError as e:
                print(e)


def attr(path, name):
    try:
        return os.getxattr(path, "user.airlox." + name).decode()
    except OSError:
        return None


# --- tools for the shell ---------------------------------------------------

def tool_get(path):
    value = json.load(sys.stdin)
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else value[int(key)]
    if value is not None:
        print(value if isinstance(value, str) else json.dumps(value))


def tool_errno(code):
    try:
        exec(code, {"os": os})
    except OSError as e:
        name = errno.errorcode.get(e.errno, str(e.errno))
        print("EOPNOTSUPP" if name == "ENOTSUP" else name)
    else:
        print("OK")


def find_daemon(where):
    """The pid that serves this mount, or None."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as f:
                fields = f.read().rsplit(b") ", 1)[1].split()
        except OSError:
            continue
        if (os.path.basename(words[0]) == b"airloxfs"
                and where.encode() in words and fields[0] != b"Z"):
            found[int(pid)] = int(fields[1])
    return next((p for p in sorted(found) if found[p] not in found), None)


def tool_daemon(where):
    print(find_daemon(where) or "")


def tool_xattr(path, name):
    try:
        print(os.getxattr(path, name).decode())
    except OSError:
        pass


def key_needles(links):
    needles = {}
    for name, text in re.findall(r"[#&](ok|k|rk)=([\w-]+)", links):
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        needles.update({text.encode(): name, raw: name + " (bytes)",
                        raw.hex().encode(): name + " (hex)"})
    return needles


def files_of(path):
    if path.isdigit():
        return [f"/proc/{path}/{n}" for n in (
            "cmdline", "environ", "mountinfo", "comm", "status")]
    if os.path.isdir(path):
        return [f"{d}/{n}" for d, _, names in os.walk(path) for n in names]
    return [path]


def tool_keys(*paths):
    needles = key_needles(sys.stdin.read())
    if not needles:
        sys.exit("no keys to look for")
    found = 0
    for path in (f for p in paths for f in files_of(p)):
        try:
            with open(path, "rb") as f:
                text = f.read()
        except OSError:
            continue
        for needle, name in needles.items():
            if needle in text:
                print(f"{path} holds {name}")
                found = 1
    sys.exit(found)


def main():
    tools = {
        "get": tool_get, "errno": tool_errno, "daemon": tool_daemon,
        "xattr": tool_xattr, "samples": make_samples,
        "keys": tool_keys,
        "setxattr": lambda p, n, v: os.setxattr(p, n, v.encode()),
    }
    if len(sys.argv) < 2 or sys.argv[1] not in tools:
        sys.exit(__doc__)
    tools[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
