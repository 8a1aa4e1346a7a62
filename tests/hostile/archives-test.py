#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: S3.  Hostile archives and images: written into out/ each is EBADMSG
with a sentence, sealed by a hostile peer each is a file in rejected/ and none
in in/; the daemon's memory stays flat, and the mount goes on."""
import base64
import errno
import io
import json
import os
import secrets
import struct
import subprocess
import sys
import zipfile
import zlib

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                                     # noqa: E402
import relay_peer as rp                                        # noqa: E402

T = lib.T


# --- the corpus -------------------------------------------------------------

def zip_of(*entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data, attr in entries:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, attr << 16
            z.writestr(info, data, method)
    return out.getvalue()


def patched(data, old, new):
    assert data.count(old) >= 1 and len(old) == len(new)
    return data.replace(old, new)


def field(data, off, fmt, value, central):
    """Another value in each local (or central) header."""
    mark = b"PK\1\2" if central else b"PK\3\4"
    at, data = data.find(mark), bytearray(data)
    while at >= 0:
        struct.pack_into(fmt, data, at + off, value)
        at = data.find(mark, at + 4)
    return bytes(data)


def overlapping():
    """Many entries in the central directory that share one body."""
    one = zip_of(("a.txt", b"x" * 5000, 0o100644))
    start = one.index(b"PK\1\2")
    end = one.index(b"PK\5\6")
    central = b"".join(one[start:end].replace(
        b"a.txt", b"a%03d" % i + b"t") for i in range(200))
    tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 200, 200, len(central),
                       start, 0)
    return one[:start] + central + tail


def unpacking():
    """What only unpacking shows: refused to whoever sends it.  Who receives it
    is shown the archive as its author signed it, and unpacks nothing."""
    good = zip_of(("a.txt", b"hello", 0o100644))
    long = zip_of(("z", bytes(3000) + b"end", 0o100644),
                  method=zipfile.ZIP_DEFLATED)
    return {
        "crc": patched(good, b"hello", b"hellO"),
        "longer": field(field(long, 22, "<I", 3000, False), 24, "<I", 3000,
                        True),
        "shorter": field(field(long, 22, "<I", 3004, False), 24, "<I", 3004,
                         True),
        "damaged": long[:32] + b"\xff" * 5 + long[37:],
    }


def archives():
    good = zip_of(("a.txt", b"hello", 0o100644))
    deep = zip_of(("z", bytes(30 << 20), 0o100644),
                  method=zipfile.ZIP_DEFLATED)
    return {
        "dotdot": zip_of(("../x", b"x", 0o100644)),
        "dotdot-deep": zip_of(("a/../../x", b"x", 0o100644)),
        "absolute": zip_of(("/etc/x", b"x", 0o100644)),
        "drive": zip_of(("C:/x", b"x", 0o100644)),
        "backslash": patched(zip_of(("a/x", b"x", 0o100644)), b"a/x",
                             b"a\\x"),
        "symlink": zip_of(("l", b"/etc/passwd", 0o120777)),
        "through": zip_of(("l", b"/etc", 0o120777),
                          ("l/passwd", b"x", 0o100644)),
        "device": zip_of(("d", b"", 0o020666)),
        "fifo": zip_of(("f", b"", 0o010666)),
        "file-as-dir": zip_of(("a", b"x", 0o100644),
                              ("a/b", b"x", 0o100644)),
        "twice": patched(zip_of(("a1", b"x", 0o100644),
                                ("a2", b"y", 0o100644)), b"a2", b"a1"),
        "control": patched(good, b"a.txt", b"a\x1btxt"),
        "a-nul": patched(good, b"a.txt", b"a\0txt"),
        "not-utf8": field(field(patched(good, b"a.txt", b"a\xfftxt"), 6, "<H",
                                0x800, False), 8, "<H", 0x800, True),
        "bomb": deep,
        "count": zip_of(*((f"{i}", b"", 0o100644) for i in range(30000))),
        "overlap": overlapping(),
        "encrypted": field(field(good, 6, "<H", 1, False), 8, "<H", 1, True),
        "method": field(field(good, 8, "<H", 99, False), 10, "<H", 99, True),
        "forged-size": field(good, 24, "<I", 1 << 30, True),
        "forged-offset": field(good, 42, "<I", 1 << 30, True),
        "no-end": good[:-10],
        "only-magic": good[:30],
        "garbage": b"PK\3\4" + secrets.token_bytes(5000),
    }


def images():
    png = lib.make_png(64, 64)
    with open(lib.TOP + "/tests/data/plain.jpg", "rb") as f:
        jpg = f.read()
    with open(lib.TOP + "/tests/data/plain.webp", "rb") as f:
        webp = f.read()
    head = struct.pack(">IIBBBBB", 60000, 60000, 8, 6, 0, 0, 0)
    bomb = (b"\x89PNG\r\n\x1a\n" + lib.png_chunk(b"IHDR", head)
            + lib.png_chunk(b"IDAT", zlib.compress(bytes(1 << 20), 9))
            + lib.png_chunk(b"IEND", b""))
    sof = jpg.find(b"\xff\xc0")
    sof = sof if sof > 0 else jpg.find(b"\xff\xc2")
    return {
        "bomb.png": bomb,
        "cut.png": png[:len(png) // 2],
        "crc.png": png[:40] + bytes((png[40] ^ 1,)) + png[41:],
        "chunk.png": png[:33] + struct.pack(">I", 0x7fffffff) + png[37:],
        "huge.jpg": jpg[:sof + 5] + b"\xff\xff\xff\xff" + jpg[sof + 9:],
        "garbage.jpg": jpg[:4] + secrets.token_bytes(3000),
        "cut.webp": webp[:30],
        "size.webp": webp[:4] + b"\xff\xff\xff\x7f" + webp[8:],
        "liar.png": jpg,
    }


# --- what happens to it -----------------------------------------------------

def status_kb(pid, field_name):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(field_name):
                return int(line.split()[1])


def daemon(m):
    return subprocess.run(
        [sys.executable, lib.TOP + "/tests/lib.py", "daemon", m.dir],
        text=True, stdout=subprocess.PIPE).stdout.strip()


def write_out(m, name, data):
    path = m.path("out/" + name)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
    except OSError as e:
        why = lib.attr(path, "error") or ""
        if e.errno != errno.EBADMSG or len(why) < 10:
            raise lib.Failed(f"out/{name}: {e}, {why!r}")
        os.unlink(path)
        return why
    raise lib.Failed(f"out/{name} was taken")


def send_raw(party, peer, kind, name, data):
    mime = ("application/zip" if kind == "zip" else
            "image/" + name.rsplit(".", 1)[1].replace("jpg", "jpeg"))
    with open(T + "/raw", "wb") as f:
        f.write(data)
    envelope = party.sign("blob", party.seeds[peer.name], party.owner, kind,
                          mime, name, T + "/raw", T + "/blob")
    with open(T + "/blob", "rb") as f:
        answer = peer.post("/items", rp.frame(envelope.encode(), f.read()))
    if answer.status != 201:
        raise lib.Failed(f"{name}: the relay says {answer.status} "
                         f"{answer.body[:200]}")
    return json.loads(envelope)["header"]["id"]


def main():
    relay = lib.Relay()
    party = rp.Party(relay, mode="images", most=64 << 20)
    lib.same(party.create().status, 201, "a session of our own")
    seed = base64.urlsafe_b64encode(bytes.fromhex(party.owner))
    link = (f"{relay.url}/s/{party.sid}#v=1&r=owner&ok="
            + seed.rstrip(b"=").decode())
    mallory = party.join("sender", "mallory")
    m = lib.Mount("alice", link)
    pid = daemon(m)
    bad = archives()

    send_raw(party, mallory, "zip", "good.zip",
             zip_of(("a.txt", b"hello", 0o100644)))
    lib.wait_for(lambda: len(os.listdir(m.path("in"))) == 1, "a good one", 20)
    lib.ok(True, "what is sealed by hand and in order arrives")

    for name, data in bad.items():
        print(f"# out/{name}.zip: {write_out(m, name + '.zip', data)}")
    for name, data in unpacking().items():
        print(f"# out/{name}.zip: {write_out(m, name + '.zip', data)}")
    lib.ok(True, f"{len(bad)} archives, each EBADMSG with a sentence")
    pictures = images()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json")
    painter = lib.Mount("painter",
                        json.loads(made.stdout)["invites"]["sender"])
    for name, data in pictures.items():
        print(f"# out/{name}: {write_out(painter, name, data)}")
    lib.same(painter.end(), 0, "umount of who sent images")
    lib.ok(True, f"{len(pictures)} images, each EBADMSG with a sentence")

    for name, data in bad.items():
        send_raw(party, mallory, "zip", name + ".zip", data)
    lib.wait_for(lambda: len(os.listdir(m.path("rejected"))) == len(bad),
                 f"{len(bad)} in rejected/", 60)
    lib.same(len(os.listdir(m.path("in"))), 1, "none of them is in in/")
    for n in os.listdir(m.path("rejected")):
        if len(m.read("rejected/" + n)) < 10:
            raise lib.Failed(f"rejected/{n} says nothing")
    lib.ok(True, "each with its reason")

    # What a picture is by its first bytes is looked at, nothing is decoded: a
    # broken one is what its author signed, byte by byte; a liar is refused.
    ids = {name: send_raw(party, mallory, "image", name, data)
           for name, data in pictures.items()}
    for name, data in pictures.items():
        if name == "liar.png":
            continue
        with open(m.entry(ids[name], 30), "rb") as f:
            if f.read() != data:
                raise lib.Failed(f"in/…-{name} is not what was signed")
    lib.wait_for(lambda: len(os.listdir(m.path("rejected"))) == len(bad) + 1,
                 "the liar in rejected/", 30)
    lib.ok(True, f"{len(pictures) - 1} broken images as they were signed")

    lib.same(daemon(m), pid, "the same daemon")
    peak = status_kb(pid, "VmHWM:")
    print(f"# the daemon's peak: {peak} kB")
    lib.ok(lib.SLOW > 1 or peak < 64 << 10, "its memory stayed flat")
    m.send("after.md", b"# after\n")
    lib.ok(True, "and the mount goes on")
    party.end()
    lib.same(m.end(), 0, "umount")


if __name__ == "__main__":
    lib.run_main(main)
