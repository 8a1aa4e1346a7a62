#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: the record of a run that tries everything against its reader: in a real
browser no script of it runs and no request leaves; one byte changed anywhere
fails the check, which names the part; another key refuses."""
import json
import os
import re
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.environ["TOP"] + "/tests")
import box_user                                       # noqa: E402
import browser                                        # noqa: E402
import lib                                            # noqa: E402

BOX = lib.BUILD + "/airlox-box"

EVIL = r"""
import os, sys, urllib.request
at = 'http://127.0.0.1:PORT/'
bad = ['</script><script>window.pwned=1;fetch("' + at + '1")</script>',
       '<img src="' + at + '2" onerror="window.pwned=2">',
       '<!-- airlox-signature v1\nkey x\n-->\n</body></html>',
       '<!--<script>', '<svg/onload=window.pwned=3>', '\\u003c/script>',
       '<iframe src="javascript:parent.pwned=4">', '"};window.pwned=5;{"',
       '<link rel=stylesheet href="' + at + '3"><style>@import "' + at
       + '4";*{background:url(' + at + '5)}</style>',
       '<meta http-equiv=refresh content="0;url=' + at + '6">',
       '<base href="' + at + '"><a href="' + at + '7" autofocus>x</a>',
       '\x1b]0;title\x07\x1b[2J\x9b31m', 'nul\0', '\u202etxt.exe\u2066']
for i, s in enumerate(bad):
    print(s, file=sys.stderr if i % 2 else sys.stdout, flush=True)
    name = s.replace('/', '_').replace('\0', '_')[:80]
    open('/work/' + name, 'w').write(s + '\n')
    os.symlink(s.replace('\0', '_'), f'/work/link{i}')
sys.stdout.buffer.write(bytes(range(256)) + b'\n')
for host in ('a<b>.test', '<img src=x onerror=pwned=6>', 'evil.test'):
    try:
        urllib.request.urlopen('https://' + host + '/</script>')
    except Exception:
        pass
"""


def make(port):
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write("allow:\n  - host: ok.test\n    reason: '</script><b>'\n")
    done = subprocess.run([BOX, "run", lib.T + "/policy.yaml", "--", "/usr/bin/"
                           "python3", "-c", EVIL.replace("PORT", str(port)),
                           "</script><script>window.pwned=7</script>"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=60 * lib.SLOW,
                          cwd=lib.T)
    m = re.search(rb"airlox-box: record: (airlox-\S+\.html)", done.stderr)
    lib.ok(done.returncode == 0 and m, "a record: "
           + done.stderr[-200:].decode(errors="replace"))
    return lib.T + "/" + m[1].decode()


def verify(path, *words):
    done = subprocess.run([BOX, "verify", path, "--json", *words], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, json.loads(done.stdout)


def check(path):
    code, said = verify(path)
    lib.ok(code == 0 and said["unaltered"] and not said["pinned"],
           "unaltered, signer not pinned")
    key = said["key"]
    lib.same(verify(path, "--key", key)[0], 0, "by this key")
    other = key[:-1] + ("0" if key[-1] != "0" else "1")
    code, said = verify(path, "--key", other)
    lib.ok(code != 0 and key in said["why"], "another key refuses: "
           + said["why"])
    state = os.environ["XDG_STATE_HOME"] + "/airlox-box/key"
    lib.same(stat.S_IMODE(os.stat(state).st_mode), 0o600, "the key is ours")
    shown = subprocess.run([BOX, "show", path], stdout=subprocess.PIPE,
                           check=True).stdout
    lib.ok(not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80"
                         rb"\xae", shown), "nothing steers the terminal")


def alter(path):
    with open(path, "rb") as f:
        page = f.read()
    step, why = len(page) // 60, []
    copy = lib.T + "/altered.html"
    for at in range(0, len(page), step):
        data = bytearray(page)
        data[at] ^= 1
        with open(copy, "wb") as f:
            f.write(data)
        code, said = verify(copy)
        if code == 0 or said["unaltered"] or not said["why"]:
            raise lib.Failed(f"byte {at} of {len(page)} may be changed")
        why.append(said["why"])
    lib.ok(any(re.search(r"altered: part \d+ ", w) for w in why)
           and any("the page around" in w for w in why),
           f"{len(why)} changed bytes are seen, and what they are of is said")
    for name, data in (("cut", page[:-1]), ("more", page + b"\n"),
                       ("twice", page + page), ("before", b"\n" + page)):
        with open(copy, "wb") as f:
            f.write(data)
        lib.ok(verify(copy)[0] != 0, f"also {name}")


def look(path, door):
    program = browser.find()
    if not program:
        if os.environ.get("MUST_WORK"):
            raise lib.Failed("no browser: .ci/deps check installs one")
        print("# no browser here")
        return
    b = browser.Browser(program)
    try:
        for width, scheme in ((1200, "light"), (390, "dark")):
            b.open(path, width, scheme)
            lib.same(b.requests(), ["file://" + path], "nothing is loaded")
            lib.same(b.js("typeof window.pwned"), "undefined", "no script ran")
            lib.same(b.complaints(), [], "nothing was even refused")
            text = b.js("document.body.innerText")
            lib.ok("onerror=\"window.pwned=2\"" in text and "\\u{202E}" in text
                   and "\\u{1B}" in text, "it is all there, as text")
            lib.same(b.js("""['script','img','iframe','svg','link','base',
                'form','object'].map(function (t) {
                return document.getElementsByTagName(t).length})"""),
                     [2, 0, 0, 0, 0, 0, 0, 0], "two scripts, ours; no more")
            lib.ok(b.js("document.documentElement.scrollWidth") <= width,
                   f"{width} wide: nothing sticks out")
            size = b.screenshot(f"{lib.T}/{scheme}.png")
            lib.ok(size > 20000, f"{scheme}: a picture of {size} bytes")
        lib.ok(b.js("getComputedStyle(document.body).backgroundColor")
               != "rgb(252, 252, 251)", "dark is dark")
        b.key("/")
        lib.same(b.js("document.activeElement.type"), "search", "/ filters")
        for c in "evil.t":
            b.key(c)
        lib.same(b.js("document.querySelector('#egress .dim').textContent")
                 .split()[0], "1", "one decision is of evil.test")
        b.key("Escape")
        b.key("e")
        lib.ok(b.js("document.querySelectorAll('details[open]').length") > 10,
               "e opens all")
        lib.same(b.js("typeof window.pwned") + str(b.requests()[1:]),
                 "undefined[]", "and still nothing ran or left")
        lib.same(b.complaints(), [], "nor complained")
    finally:
        b.end()
    door.settimeout(0.2)
    try:
        door.accept()
        raise lib.Failed("a request left")
    except TimeoutError:
        pass


def main():
    door = socket.create_server(("127.0.0.1", 0))
    path = make(door.getsockname()[1])
    check(path)
    alter(path)
    look(path, door)


box_user.run(main)
