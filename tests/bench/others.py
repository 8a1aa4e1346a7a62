# SPDX-License-Identifier: MIT
"""Other programs that bring a file from here to there, all on loopback.

Each is made once and has `move(source, to)`: the file to the path `to`, in
the time that the call takes.  Whatever can run before a sender decides to
send runs before: relays, and the side that waits for the other.  None where
a program cannot be had, after a sentence.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import bench
from bench import BUILD, T, TOP, lib

CROC = "github.com/schollz/croc/v10@v10.7.0"
QUIET = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
             stderr=subprocess.DEVNULL)


def start(words, log, **kw):
    """A child that is ended with us."""
    out = open(f"{T}/{log}", "wb")
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT, cwd=T, **kw)

    def end():
        if child.poll() is None:
            child.terminate()
            child.wait(10)
    lib.atexit.register(end)
    return child


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port):
    def answers():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    lib.wait_for(answers, f"a listener on port {port}", 20)


def done(child, what):
    if child.wait(60):
        raise lib.Failed(f"{what}: exit {child.returncode}")


class Wormhole:
    what = "magic-wormhole"

    def __init__(self, where):
        self.bin, self.n, port = where + "/bin", 0, free_port()
        start([self.bin + "/twist", "wormhole-mailbox", "--port",
               f"tcp:{port}:interface=127.0.0.1"], "mailbox.log")
        wait_port(port)
        self.words = [self.bin + "/wormhole", "--relay-url",
                      f"ws://127.0.0.1:{port}/v1", "--transit-helper", ""]

    def move(self, source, to):
        self.n += 1
        code = f"{self.n}-bench-code"
        receiver = start(self.words + [
            "receive", "--hide-progress", "--accept-file", "-o", to, code],
            "wormhole.log")
        time.sleep(1.5)		# it waits for the other side
        began = time.monotonic()
        sender = start(self.words + ["send", "--hide-progress", "--code",
                                     code, source], "wormhole-send.log")
        done(receiver, self.what)
        took = time.monotonic() - began
        done(sender, self.what)
        return took


class Croc:
    what = "croc --no-compress"

    def __init__(self, program):
        self.n, port = 0, free_port()
        while port > 60000:
            port = free_port()
        start([program, "relay", "--host", "127.0.0.1", "--port", str(port)],
              "croc-relay.log", env=lib.peer_environ("croc"))
        wait_port(port)
        self.words = [program, "--yes", "--ignore-stdin", "--no-compress",
                      "--overwrite", "--relay", f"127.0.0.1:{port}"]

    def move(self, source, to):
        self.n += 1
        env = dict(lib.peer_environ("croc"),
                   CROC_SECRET=f"bench-code-{self.n:06d}")
        sender = start(self.words + ["send", "--no-local", source],
                       "croc-send.log", env=env)
        time.sleep(1)		# it waits for the other side
        where = T + "/croc-got"
        os.makedirs(where, exist_ok=True)
        began = time.monotonic()
        receiver = start(self.words + ["--out", where], "croc.log", env=env)
        done(receiver, self.what)
        took = time.monotonic() - began
        done(sender, self.what)
        os.rename(f"{where}/{os.path.basename(source)}", to)
        return took


class Cli:
    """The published command line: `watch --save` there, `send file` here."""
    what = "published CLI"

    def __init__(self, program, invites):
        self.program, self.invites = program, invites
        self.saved = T + "/cli-saved"
        env = dict(lib.peer_environ("cli-watch"),
                   AIRLOX_INVITE=invites["observer"])
        self.watch = subprocess.Popen(
            [program, "watch", "--json", "--save", self.saved], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env)
        lib.atexit.register(self.end)
        time.sleep(1)

    def move(self, source, to):
        as_zip = T + "/cli.zip"		# it sends no other file so large
        if not os.path.exists(as_zip):
            subprocess.run([sys.executable, "-m", "zipfile", "-c", as_zip,
                            source], check=True)
            store(as_zip, source)
        env = dict(lib.peer_environ("cli-send"),
                   AIRLOX_INVITE=self.invites["sender"])
        began = time.monotonic()
        sender = start([self.program, "send", "file", as_zip], "cli.log",
                       env=env)
        line = self.watch.stdout.readline()
        took = time.monotonic() - began
        done(sender, self.what)
        shutil.move(lib.json.loads(line)["saved"], to)
        return took

    def end(self):
        if self.watch.poll() is None:
            self.watch.terminate()
            self.watch.wait(10)


def store(path, source):
    """A zip whose one entry is not compressed."""
    with lib.zipfile.ZipFile(path, "w", lib.zipfile.ZIP_STORED) as z:
        z.write(source, os.path.basename(source))


class Sshfs:
    what = "sshfs, cp alone"

    def __init__(self, sshd):
        port = free_port()
        self.behind, self.dir = T + "/ssh-behind", T + "/ssh-mount"
        for name in (self.behind, self.dir):
            os.mkdir(name)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "",
                            "-f", f"{T}/ssh-{name}"], check=True, **QUIET)
        if os.getuid() == 0:
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
        self.server = start(
            [sshd, "-D", "-e", "-f", "/dev/null", "-p", str(port),
             "-h", T + "/ssh-host", "-o", "ListenAddress=127.0.0.1",
             "-o", f"AuthorizedKeysFile={T}/ssh-user.pub",
             "-o", "StrictModes=no", "-o", "UsePAM=no",
             "-o", f"PidFile={T}/sshd.pid",
             "-o", "Subsystem=sftp internal-sftp"], "sshd.log")
        wait_port(port)
        lib.atexit.register(self.end)
        self.user = subprocess.run(["id", "-un"], text=True,
                                   stdout=subprocess.PIPE).stdout.strip()
        self.child = start(
            ["sshfs", "-f", f"{self.user}@127.0.0.1:{self.behind}", self.dir,
             "-p", str(port), "-o", f"IdentityFile={T}/ssh-user",
             "-o", "StrictHostKeyChecking=no", "-F", "/dev/null",
             "-o", f"UserKnownHostsFile={T}/ssh-known"], "sshfs.log")
        lib.wait_for(lambda: os.path.ismount(self.dir), "sshfs", 10)

    def move(self, source, to):
        began = time.monotonic()
        subprocess.run(["cp", source, self.dir + "/file"], check=True)
        took = time.monotonic() - began
        os.rename(self.behind + "/file", to)
        return took

    def memory_kb(self):
        """sshfs, and the ssh that it started and left to init."""
        mark = f"IdentityFile={T}/ssh-user".encode()
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read()
            except OSError:
                continue
            if mark in words:
                pids.append(int(pid))
        if len(pids) != 2:
            raise lib.Failed(f"sshfs and its ssh are {len(pids)} processes")
        return sum(map(bench.memory_kb, pids))

    def end(self):
        if os.path.ismount(self.dir):
            subprocess.run(["fusermount3", "-u", self.dir], **QUIET)


# --- making them, where they can be had ------------------------------------

def program(name):
    return (shutil.which(name) or shutil.which(
        name, path="/usr/sbin:/sbin:/usr/local/go/bin"))


def get_wormhole():
    where = bench.venv("wormhole", "magic-wormhole==0.24.0",
                       "magic-wormhole-mailbox-server==0.8.0")
    if not where:
        bench.note("no magic-wormhole: it cannot be installed here")
        return None
    return Wormhole(where)


def get_croc():
    where, go = TOP + "/build/go", program("go")
    made = where + "/bin/croc"
    if not os.path.exists(made) and go:
        env = dict(os.environ, GOPATH=where, GOFLAGS="-modcacherw",
                   GOCACHE=T + "/go-cache", CGO_ENABLED="0")
        with open(T + "/go.log", "wb") as out:
            subprocess.run([go, "install", CROC], env=env, stdout=out,
                           stderr=subprocess.STDOUT, timeout=400)
    if not os.path.exists(made):
        bench.note("no croc: it needs a Go that can build " + CROC)
        return None
    return Croc(made)


def get_cli(url):
    import client
    return Cli(client.AIRLOX, bench.session(url))


def get_sshfs():
    sshd = program("sshd")
    if not sshd or not program("sshfs"):
        bench.note("no sshfs: it or sshd is not installed")
        return None
    try:
        return Sshfs(sshd)
    except (lib.Failed, OSError, subprocess.SubprocessError) as e:
        bench.note(f"no sshfs: it does not run here ({e})")
        return None
