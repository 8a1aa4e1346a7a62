# SPDX-License-Identifier: MIT
"""The published runner as a peer.  Its local sandbox wants uv, which goes into
the same virtual environment, and an ordinary user."""
import atexit
import fcntl
import os
import pwd
import subprocess

from client import AIRLOX, VENV, lib

UV = "uv==0.13.9"


def need_uv():
    # A test beside this one may be in the middle of it.
    with open(VENV + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(VENV + "/uv-is-here"):
            return
        done = subprocess.run([VENV + "/bin/pip", "install", "--no-input",
                               "-q", UV], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            print(done.stdout)
            lib.skip(f"{UV} cannot be installed here")
        with open(VENV + "/uv-is-here", "w"):
            pass


def as_nobody():
    who = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(who.pw_gid)
    os.setuid(who.pw_uid)


class Runner:
    """`airlox runner join`, until end()."""

    def __init__(self, name, invite, *flags):
        need_uv()
        self.name, self.log = name, f"{lib.T}/runner-{name}.log"
        env = lib.peer_environ(name)
        env.update(AIRLOX_INVITE=invite, NO_COLOR="1", TMPDIR=env["HOME"],
                   PATH=VENV + "/bin:" + env["PATH"])
        certs = "/etc/ssl/certs/ca-certificates.crt"
        if os.path.exists(certs):       # uv brings its own otherwise
            env["SSL_CERT_FILE"] = certs
        drop = None
        if os.getuid() == 0:
            drop = as_nobody
            for path in (os.path.dirname(lib.T), lib.T, lib.T + "/peers"):
                os.chmod(path, 0o711)
            os.chown(env["HOME"], pwd.getpwnam("nobody").pw_uid, -1)
        with open(self.log, "wb") as out:
            self.child = subprocess.Popen(
                [AIRLOX, "runner", "join", "--name", name, "--sandbox",
                 "local", "--unsandboxed", *flags], env=env, stdout=out,
                stderr=out, cwd=env["HOME"], preexec_fn=drop)
        atexit.register(self.end)

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        return self.child.returncode
