#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: the mount beside the published client in one session: what SDK,
command line and MCP send is in in/ with the right bytes, author, role, time
and references; what a mount sends is read by all three."""
import hashlib
import io
import json
import os
import re
import stat
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import (AIRLOX, Cli, Mcp, Sdk, Seen, agree,  # noqa: E402
                    exchange, lib, role_of)


class Mount(lib.Mount):
    """A mount in the shape of the other peers."""
    what = "mount"

    def __init__(self, name, invite):
        super().__init__(name, invite)
        self.role, self.texts, self.own = role_of(invite), 0, {}

    def send_text(self, text):
        self.texts += 1
        return self.sent(f"text-{self.texts}.txt", text.encode())

    def send_file(self, path):
        with open(path, "rb") as f:
            return self.sent(os.path.basename(path), f.read())

    def sent(self, name, data, refs=None):
        item_id = self.send(name, data, refs)
        self.own[item_id] = True
        return {"id": item_id}

    def items(self):
        """All that others sent.  What is its own is never in in/."""
        return {i["id"]: i for i in map(self.see, os.listdir(
            self.path("in")))}

    def see(self, name):
        path = self.path("in/" + name)
        a = {k: lib.attr(path, k) for k in (
            "seq", "id", "kind", "author", "role", "fingerprint", "name",
            "mime", "created", "sha256", "refs")}
        with open(path, "rb") as f:
            body = f.read()
        st = os.stat(path)
        seen = Seen(id=a["id"], seq=int(a["seq"]), author=a["author"],
                    role=a["role"], created_ms=int(a["created"]),
                    refs=re.findall(r"[\w-]+", a["refs"] or ""))
        # A dash is what parts number, author and name.
        author = a["author"].replace("-", "_")
        if name.endswith(".txt"):
            seen["text"] = body.decode()
            want = f"{seen['seq']:06}-{author}.txt"
        else:
            seen["name"], seen["mime"], seen["body"] = (
                a["name"], a["mime"], body)
            want = f"{seen['seq']:06}-{author}-{a['name']}"
        lib.same(name, want, "the name in in/")
        lib.same(stat.S_IMODE(st.st_mode), 0o444, f"{name}: mode")
        lib.same(st.st_size, len(body), f"{name}: size")
        lib.same(st.st_mtime_ns // 10**6, seen["created_ms"],
                 f"{name}: mtime")
        lib.same(a["sha256"], hashlib.sha256(body).hexdigest(),
                 f"{name}: sha256")
        lib.ok(re.fullmatch(r"[0-9a-f]{16}", a["fingerprint"]),
               f"{name}: fingerprint")
        return seen


def create(relay, program):
    words = ("create",) if program == lib.AIRLOXFS else ("session", "create")
    done = lib.run_cli(program, "owner", *words, "--relay", relay.url,
                       "--json", "--max-item-mb", "60")
    return json.loads(done.stdout)["invites"]


def agree_all(mount, truth):
    """in/ holds what others sent, all of it, and nothing of its own."""
    want = {k for k in truth if k not in mount.own}
    lib.wait_for(lambda: set(mount.items()) == want,
                 f"{mount.name}: {len(want)} items, it has "
                 f"{len(os.listdir(mount.path('in')))}", 20)
    for item_id, seen in mount.items().items():
        agree(seen, truth[item_id], mount.name)


def wrapped(mount, watch, readers, name, data):
    """Any file crosses; a published client sees a zip of that one entry."""
    item_id = mount.sent(name, data)["id"]
    seen = watch.items()[item_id]
    lib.same((seen["subkind"], seen["name"]), ("zip", name + ".zip"),
             "wrapped")
    with zipfile.ZipFile(io.BytesIO(seen["body"])) as z:
        lib.same(z.namelist(), [name], "one entry")
        lib.ok(z.read(name) == data, "its bytes")
    for reader in readers:
        path = reader.entry(item_id)
        with open(path, "rb") as f:
            lib.ok(f.read() == data, f"{reader.name}: unwrapped")
        lib.ok(path.endswith("-" + name), "under its own name")
        lib.same(lib.attr(path, "wrapped"), "zip", "user.airlox.wrapped")


def refs(mount, watch, truth):
    """A draft's refs become the item's, by id and by seq."""
    some = [i for i in truth.values()][:2]
    for words in (" ".join(i["id"] for i in some),
                  " ".join(str(i["seq"]) for i in some)):
        item_id = mount.sent("reply.md", b"# yes\n", words)["id"]
        lib.same(watch.items()[item_id]["refs"], [i["id"] for i in some],
                 f"refs {words}")


def say(mount, watch):
    with open(mount.path("say"), "w") as f:
        f.write("hello from say\n")
    with open(mount.path("say"), "w") as f:
        f.write("two\nlines\n\n")
    texts = lib.wait_for(lambda: [
        i["text"] for i in watch.items().values()
        if i["author"] == mount.name and i.get("text") in (
            "hello from say", "two\nlines\n")][1:] and True, "say")
    lib.ok(texts, "each write and close of say is a text, without its "
           "last newline")


def mcp(invites, mount, where):
    peer = Mcp("m-mcp", invites["sender"], where)
    item_id = mount.send_text("for mcp")["id"]
    lib.wait_for(lambda: item_id in peer.items(), "mcp reads it")
    lib.same(peer.items()[item_id]["text"], "for mcp", "mcp: the text")
    peer.call("send_text", text="from mcp")
    lib.wait_for(lambda: any(
        i.get("text") == "from mcp" and i["author"] == "m-mcp"
        for i in mount.items().values()), "what mcp says is in in/")
    peer.end()


def main():
    relay = lib.Relay()
    where = lib.T + "/samples"
    samples = lib.make_samples(where)
    for program in (lib.AIRLOXFS, AIRLOX):
        tag = os.path.basename(program)
        invites = create(relay, program)
        mounts = {role: Mount(f"m-{role}-{tag}", invites[role])
                  for role in ("sender", "observer", "owner")}
        sender, observer, owner = mounts.values()
        truth = exchange(
            invites, tag, samples, where,
            senders=[Sdk(tag + "-sdk", invites["sender"]),
                     Cli(tag + "-cli", invites["sender"]), sender, owner],
            readers=[Cli(tag + "-r-cli", invites["observer"])])
        for mount in mounts.values():
            agree_all(mount, truth)
        watch = Sdk(tag + "-w", invites["observer"])
        refs(sender, watch, truth)
        for name, data in (("table.csv", b"a,b\r\n1,2\r\n" * 100),
                           ("big.bin", os.urandom(50_000_000))):
            wrapped(sender, watch, [observer, owner], name, data)
        say(owner, watch)
        mcp(invites, sender, where)
        for mount in mounts.values():
            agree_late = mount.end()
            lib.same(agree_late, 0, f"umount of {mount.name}")
    lib.same(relay.stop(), 0, "the relay ends with 0")


if __name__ == "__main__":
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        lib.skip("no /dev/fuse that this user may open")
    lib.run_main(main)
