#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: what a box changed in its directories is in the record, and comes back
as far as somebody wants: never through a link, never outside, never over what
changed meanwhile, whatever the box left there."""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.environ["TOP"] + "/tests")
import box_user                                       # noqa: E402
import lib                                            # noqa: E402

BOX = lib.BUILD + "/airlox-box"


def put(path, data=b"", mode=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    if mode:
        os.chmod(path, mode)


def project():
    shutil.rmtree(lib.T + "/p", ignore_errors=True)
    put(lib.T + "/p/README", b"".join(b"line %d\n" % i for i in range(40)))
    put(lib.T + "/p/bin/tool", b"#!/bin/sh\necho tool\n", 0o755)
    put(lib.T + "/p/data", bytes(range(256)))
    put(lib.T + "/p/gone", b"to be removed\n")
    put(lib.T + "/p/old/deep/x", b"x\n")
    put(lib.T + "/p/.git/config", b"[core]\n")
    os.symlink("README", lib.T + "/p/link")
    for name in os.listdir(lib.T):
        if name.endswith(".aside"):
            shutil.rmtree(lib.T + "/" + name)


def words(*flags):
    return [BOX, "run", lib.T + "/policy.yaml", "--record", lib.T + "/r.html",
            *flags, "--", "/usr/bin/python3", "-c"]


def shown():
    return subprocess.run([BOX, "show", lib.T + "/r.html"], text=True,
                          stdout=subprocess.PIPE, check=True).stdout


def run(code, *flags, status=0, meanwhile=None):
    child = subprocess.Popen([*words(*flags), code], cwd=lib.T, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    if meanwhile:
        child.stdout.readline()
        meanwhile()
    out, err = child.communicate(timeout=60 * lib.SLOW)
    if child.returncode != status:
        raise lib.Failed(f"exit {child.returncode}, not {status}: {out[-600:]}"
                         f" {err[-900:]}")
    return err


def tree():
    """{path: what it is}, of the project."""
    seen = {}
    for where, _, names in os.walk(lib.T + "/p"):
        for name in names:
            path = os.path.join(where, name)
            at = os.path.relpath(path, lib.T + "/p")
            if os.path.islink(path):
                seen[at] = "-> " + os.readlink(path)
            else:
                with open(path, "rb") as f:
                    seen[at] = (oct(os.stat(path).st_mode & 0o7777), f.read())
    return seen


EDIT = r"""
import os
text = open('README').read().replace('line 20\n', 'LINE 20\nand more\n')
open('README', 'w').write(text)
os.remove('gone')
os.remove('old/deep/x'); os.rmdir('old/deep'); os.rmdir('old')
os.makedirs('new/a'); open('new/a/b.txt', 'w').write('new\n')
open('new/run', 'w').write('#!/bin/sh\n'); os.chmod('new/run', 0o755)
open('data', 'ab').write(b'\0more')
os.chmod('bin/tool', 0o644)
assert os.readlink('link') == 'README'
"""


def honest():
    project()
    before = tree()
    said = run(EDIT)
    lib.same(tree(), before, "without --apply nothing changes")
    lib.ok("7 files changed in the copy of" in said, said.strip())
    text = shown()
    bar = "\n" + " " * 12 + "| "
    for line in (bar + "@@ -18,7 +18,8 @@" + bar + " line 17" + bar
                 + " line 18" + bar + " line 19" + bar + "-line 20" + bar
                 + "+LINE 20" + bar + "+and more" + bar,
                 "change=removed  path=/work/gone",
                 bar + "@@ -1,1 +0,0 @@" + bar + "-to be removed\n",
                 "change=added  path=/work/new/a/b.txt",
                 bar + "@@ -0,0 +1,1 @@" + bar + "+new\n",
                 "bytes=261  change=changed  path=/work/data  sha256=",
                 "change=mode  mode=644  path=/work/bin/tool"):
        lib.ok(line in text, "the record has " + line[:60])
    said = run(EDIT, "--apply=all")
    got = tree()
    want = dict(before)
    readme = before["README"][1].replace(b"line 20\n", b"LINE 20\nand more\n")
    want.update({"README": (before["README"][0], readme),
                 "data": (before["data"][0], before["data"][1] + b"\0more"),
                 "bin/tool": ("0o644", before["bin/tool"][1]),
                 "new/a/b.txt": ("0o644", b"new\n"),
                 "new/run": ("0o755", b"#!/bin/sh\n")})
    del want["gone"], want["old/deep/x"]
    lib.same(got, want, "--apply=all takes all of it")
    lib.ok(not os.path.exists(lib.T + "/p/old"), "also emptied directories")
    lib.ok("7 changes taken to" in said and "applied=yes" in shown(),
           "and says so")


HOSTILE = r"""
import os, socket
os.remove('link'); os.symlink('/etc/passwd', 'link')
os.symlink('/etc/shadow', 'README2')
os.symlink('/tmp', 'dir')
os.rename('bin', 'was-bin'); os.symlink('/tmp', 'bin')
os.mkfifo('fifo')
s = socket.socket(socket.AF_UNIX); s.bind('sock')
open('setuid', 'w').write('x'); os.chmod('setuid', 0o6755)
os.link('README', 'hard')
f = open('sparse', 'wb'); f.truncate(3 << 30); f.close()
open('esc\x1b[2J\nname', 'w').write('x')
open(b'bad\xff', 'w').write('x')
open('bidi\u202etxt', 'w').write('x')
os.makedirs('.git/hooks'); open('.git/hooks/post-checkout', 'w').write('id')
open('.git/config', 'a').write('[alias]\n')
open('locked', 'w').write('x'); os.chmod('locked', 0)
try:
    os.mknod('dev', 0o20666, 259)
except OSError:
    pass
at = '.'
for i in range(25):
    at += '/deep'; os.mkdir(at)
open(at + '/x', 'w').write('x')
"""


def hostile():
    project()
    before = tree()
    said = run(HOSTILE, "--apply=all", status=73)
    got = tree()
    added = {k: v for k, v in got.items() if before.get(k) != v}
    lib.same({k: v[0] for k, v in added.items()},
             {"setuid": "0o755", "hard": "0o644", "was-bin/tool": "0o755",
              "deep/" * 25 + "x": "0o644"},
             "regular files alone, and no set-id bit")
    lib.same(got["hard"][1], before["README"][1], "a hard link is its content")
    lib.same({k: v for k, v in before.items()
              if k not in got and k != "link"},
             {"bin/tool": before["bin/tool"]}, "and what was removed")
    for word in ("link: no: it is a link", "fifo: no: it is no regular file",
                 "kept aside: within .git", "characters that cannot be seen",
                 "sparse: no: it is too large, or could not be read",
                 "sock: no: it is no regular file"):
        lib.ok(word in said, "said: " + word)
    lib.ok("\x1b" not in said and "\u202e" not in said, "nothing unescaped")
    text = shown()
    lib.ok("to=/etc/passwd  type=link" in text and "mode=6755" in text
           and "deep/x" in text and "\x1b" not in text, "the record names it all")
    aside = [n for n in os.listdir(lib.T) if n.endswith(".aside")]
    lib.ok(len(aside) == 1 and os.listdir(f"{lib.T}/{aside[0]}") == [".git"],
           "what could be kept aside is")


def meanwhile():
    """The original changes while the box works."""
    project()

    def change():
        put(lib.T + "/p/README", b"mine\n")
        put(lib.T + "/p/new", b"mine, too\n")
        shutil.rmtree(lib.T + "/p/bin")
        os.symlink(lib.T, lib.T + "/p/bin")
        put(lib.T + "/p/gone", b"needed after all\n")

    said = run("""
import sys, time, os
print('started', flush=True)
time.sleep(0.5)
open('README', 'a').write('of the box\\n')
open('new', 'w').write('of the box\\n')
open('bin/tool', 'a').write('of the box\\n')
open('bin/more', 'w').write('of the box\\n')
open('data', 'w').write('taken\\n')
os.remove('gone')
""", "--apply=all", status=73, meanwhile=change)
    got = tree()
    lib.same([got[n][1] for n in ("README", "new", "gone", "data")],
             [b"mine\n", b"mine, too\n", b"needed after all\n", b"taken\n"],
             "what changed meanwhile stays, the rest is taken")
    lib.ok(not os.path.exists(lib.T + "/more"), "nothing went through a link")
    aside = [n for n in os.listdir(lib.T) if n.endswith(".aside")][0]
    with open(f"{lib.T}/{aside}/README") as f:
        lib.ok(f.read().endswith("of the box\n"), "the box's is kept aside")
    lib.same(sorted(os.listdir(f"{lib.T}/{aside}")), ["README", "bin", "new"],
             "each of them")
    lib.ok(said.count("changed meanwhile") == 3
           and "through a link" in said, said.strip())


def link_replaced():
    """A link's own mode is everything, and no file's."""
    project()
    run("import os; os.remove('link'); open('link', 'w').write('x')",
        "--apply=all")
    lib.same(tree()["link"], ("0o644", b"x"), "a link that became a file")


def failed():
    project()
    before = tree()
    run("open('data', 'w').write('half'); raise SystemExit(3)", "--apply=all",
        status=3)
    lib.same(tree(), before, "a command that failed changes nothing")
    said = run("0", "--apply", status=64)
    lib.ok("--apply=all takes all" in said, said.strip())


def asked():
    """On a terminal: each change is shown, and taken or not."""
    project()
    before = tree()
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(lib.T)
        os.execv(BOX, [*words("--apply"), EDIT])
    seen, answers = b"", [b"n\n", b"y\n", b"a\n"]
    while select.select([fd], [], [], 30 * lib.SLOW)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        seen += part
        if part.endswith(b"uit: ") and answers:
            os.write(fd, answers.pop(0))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    lib.same(status, 0, "asked")
    got = tree()
    lib.same(("gone" in got, "old/deep/x" in got), (True, False),
             "no is no, yes is yes: " + seen.decode()[-300:])
    lib.ok(got["README"] != before["README"] and "new/a/b.txt" in got,
           "and all is the rest")
    lib.ok(b"-to be removed" in seen, "each is shown")
    text = shown()
    lib.ok("applied=no: not wanted" in text and "applied=yes" in text,
           "the record has both")


def bound():
    """What is bound is shown, and needs no applying."""
    project()
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write(f"files:\n  - {{path: {lib.T}/p, at: /src, mode: write}}\n")
    run("import os; os.chdir('/src')" + EDIT
        + "open('/work/own', 'w').write('own\\n')\n")
    lib.ok("new/a/b.txt" in tree(), "bound: it is there at once")
    text = shown()
    lib.ok("path=/src/README" in text and "+LINE 20" in text
           and "change=added  path=/work/own" in text
           and "| +own\n" in text,
           "and in the record, as the box's own /work")


PLANT = r"""
import os
assert not os.path.lexists('r.html')
{}
"""


def planted():
    """Where the record goes, the box may write, too."""
    project()
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write(f"files:\n  - {{path: {lib.T}/p, at: /work, mode: write}}\n")
    put(lib.T + "/victim", b"mine\n")
    record = lib.T + "/p/r.html"
    words = [BOX, "run", lib.T + "/policy.yaml", "--record", record, "--",
             "/usr/bin/python3", "-c"]
    for way in (f"os.symlink({lib.T + '/victim'!r}, 'r.html')",
                "os.mkfifo('r.html')"):
        subprocess.run([*words, PLANT.format(way)], check=True, cwd=lib.T,
                       stdin=subprocess.DEVNULL, timeout=60 * lib.SLOW)
        with open(lib.T + "/victim", "rb") as f:
            lib.same(f.read(), b"mine\n", "nothing is written through a link")
        lib.ok(not os.path.islink(record), "the record is there instead")
        subprocess.run([BOX, "verify", record], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        os.remove(record)
    lib.ok(not [n for n in os.listdir(lib.T + "/p") if "airlox-box" in n],
           "and nothing else")
    os.mkdir(record)
    done = subprocess.run([*words, "open('ran', 'w')"], cwd=lib.T, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    lib.ok(done.returncode == 64 and "no regular file" in done.stderr
           and not os.path.exists(lib.T + "/p/ran"), "refused: " + done.stderr)
    os.rmdir(record)


def fenced():
    """What signs records is no box's, however it is named."""
    state = os.environ["XDG_STATE_HOME"]
    put(state + "/airlox-box.old/x")
    link = lib.T + "/link-to-state"
    os.symlink(state, link)
    for at in ("/", lib.T, link, state + "/airlox-box",
               state + "/airlox-box/key", state + "/airlox-box/runs"):
        for mode in ("read", "write", "copy"):
            with open(lib.T + "/policy.yaml", "w") as f:
                f.write(f"files:\n  - {{path: {at}, at: /src, mode: {mode}}}\n")
            said = run("0", status=65)
            lib.ok("line 2: " in said and "the key that signs" in said,
                   f"{mode}: {said.strip()}")
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write(f"files:\n  - {{path: {state}/airlox-box.old, at: /src, "
                "mode: read}\n")
    run("open('/src/x')")


def fenced_mount():
    """A mount is no file: with it came ctl and the invites."""
    relay = lib.Relay()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json", "--profile", "host-runner")
    alice = lib.Mount("alice", lib.json.loads(made.stdout)["invites"]["sender"])
    kept = os.environ["XDG_STATE_HOME"]
    apart = tempfile.mkdtemp(dir="/tmp")
    os.environ["XDG_STATE_HOME"] = apart
    for at in (alice.dir, alice.path("ctl"), alice.path("in"), lib.T):
        for mode in ("read", "write", "copy"):
            with open(lib.T + "/policy.yaml", "w") as f:
                f.write(f"files:\n  - {{path: {at}, at: /src, mode: {mode}}}\n")
            said = run("0", status=65)
            lib.ok(f"the session mounted at {alice.dir}:" in said,
                   f"{mode}: {said.strip()}")
    os.environ["XDG_STATE_HOME"] = kept
    shutil.rmtree(apart)
    alice.end()
    relay.stop()


MANY = r"""
import os
for i in range(100):
    os.mkdir(f'd{i}')
    for j in range(1000):
        open(f'd{i}/{j}', 'w').close()
"""


def many():
    dirs = 100 if os.environ.get("SOAK") else 10
    run(MANY.replace("range(100)", f"range({dirs})"))
    lib.ok(f"{dirs - 2}000 further files changed in /work" in shown(),
           f"{dirs * 1000} files: a record that can be read")
    lib.ok(os.stat(lib.T + "/r.html").st_size < 4 << 20, "and a small one")


def main():
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write(f"files:\n  - {{path: {lib.T}/p, at: /work, mode: copy}}\n")
    honest()
    hostile()
    meanwhile()
    link_replaced()
    failed()
    asked()
    planted()
    fenced()
    fenced_mount()
    bound()
    many()


box_user.run(main)
