# SPDX-License-Identifier: MIT
"""The published client as a peer: its SDK, its command line, its MCP server.

A scenario imports this first: it goes on under the interpreter of a virtual
environment that has airlox 0.1.0, build/venv, made at first use.
"""
import fcntl
import json
import os
import re
import subprocess
import sys
import time

TOP = os.environ["TOP"]
VENV = TOP + "/build/venv"
WANT = "airlox==0.1.0"


def make_venv():
    stamp = VENV + "/.ready"
    os.makedirs(TOP + "/build", exist_ok=True)
    with open(TOP + "/build/venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            return
        log = subprocess.run(
            f"'{sys.executable}' -m venv --clear '{VENV}' && "
            f"'{VENV}/bin/pip' install --no-input -q {WANT}", shell=True,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if log.returncode:
            print(log.stdout)
            print(f"skipped: {WANT} cannot be installed here")
            sys.exit(77)
        open(stamp, "w").close()


if os.path.realpath(sys.prefix) != os.path.realpath(VENV):
    make_venv()
    os.execv(VENV + "/bin/python", [VENV + "/bin/python", *sys.argv])

sys.path.insert(0, TOP + "/tests")
import airlox  # noqa: E402
import lib     # noqa: E402
from airlox import Session  # noqa: E402

AIRLOX = VENV + "/bin/airlox"
ROLES = ("owner", "sender", "observer")


def role_of(invite):
    letter = re.search(r"[#&]r=(\w+)", invite)[1]
    return {"send": "sender", "view": "observer"}.get(letter, letter)


class Seen(dict):
    """An item as one peer sees it, in one shape for all: id seq kind text
    name body author role created_ms refs; a key that this peer does not
    show is not there."""


class Sdk:
    what = "sdk"

    def __init__(self, name, invite=None, relay=None, **create):
        self.name = name
        where = f"{lib.T}/sdk-{name}"
        if invite:
            self.session = Session.join(invite, display_name=name,
                                        cache_dir=where)
        else:
            self.session = Session.create(relay, display_name=name,
                                          cache_dir=where, **create)
            self.invites = self.session.invites
        self.role = role_of(invite) if invite else "owner"

    def send_text(self, text, refs=()):
        return self.session.send_text(text, refs=list(refs))

    def send_file(self, path, refs=()):
        return self.session.send_file(path, refs=list(refs))

    def items(self):
        self.session.sync()
        return {i.id: self.see(i) for i in self.session.items()}

    def see(self, i):
        seen = Seen(id=i.id, seq=i.seq, kind=i.kind, subkind=i.subkind,
                    author=i.author_name, role=i.author_role, mime=i.mime,
                    created_ms=i.created_at_ms, status=i.status, ref=i.ref,
                    refs=[r["id"] for r in i.refs])
        if i.kind == "text":
            seen["text"] = i.text
        else:
            seen["name"], seen["body"] = i.name, i.body
        return seen


class Cli:
    """Either command line: the flags and the JSON are the same."""

    def __init__(self, name, invite, program=AIRLOX):
        self.name, self.invite, self.program = name, invite, program
        self.what = "cli" if program == AIRLOX else "our cli"
        self.saved = 0
        self.role = role_of(invite)

    def run(self, *words, **kw):
        return lib.run_cli(self.program, self.name, *words,
                           invite=self.invite, **kw)

    def session(self, *words, **kw):
        """`airlox session info` is `airloxfs info`."""
        if self.program == AIRLOX:
            words = ("session",) + words
        return self.run(*words, **kw)

    def send_text(self, text):
        done = self.run("send", "text", "--as", self.name, "--json", text)
        return json.loads(done.stdout)["sent"]

    def send_file(self, path):
        done = self.run("send", "file", "--as", self.name, "--json", path)
        sent, = json.loads(done.stdout)["sent"]
        lib.same(sent["path"], path, f"{self.what} names what it sent")
        return sent["ref"]

    def items(self, *words):
        self.saved += 1
        where = f"{lib.T}/saved-{self.name}-{self.saved}"
        words = words or ("items",)
        done = self.run(*words, "--as", self.name, "--json", "--save", where)
        return {i["id"]: self.see(i) for i in lib.json_lines(done.stdout)}

    def see(self, i):
        seen = Seen(id=i["id"], seq=i["seq"], kind=i["kind"],
                    subkind=i["subkind"], author=i["author_name"],
                    role=i["author_role"], created_ms=i["created_at_ms"],
                    status=i["status"], ref=i["ref"])
        if i["kind"] == "text":
            seen["text"] = i["text"]
        else:
            seen["name"], seen["mime"] = i["name"], i["mime"]
            with open(i["saved"], "rb") as f:
                seen["body"] = f.read()
            lib.same(i["size"], len(seen["body"]), f"{i['name']}: its size")
            if i["subkind"] in ("md", "py"):
                lib.same(i["content"].encode(), seen["body"],
                         f"{i['name']}: its content")
        return seen


class Mcp:
    what = "mcp"

    def __init__(self, name, invite, allow):
        self.name, self.allow, self.number = name, allow, 0
        self.child = subprocess.Popen(
            [AIRLOX, "mcp", "--as", name, "--allow-dir", allow],
            env=lib.peer_environ(name), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        lib.atexit.register(self.end)
        answer = self.ask("initialize", protocolVersion="2024-11-05",
                          capabilities={},
                          clientInfo={"name": "test", "version": "1"})
        lib.same(answer["serverInfo"]["name"], "airlox", "mcp initialize")
        self.tell("notifications/initialized")
        self.joined = self.call("join_session", invite=invite)

    def tell(self, method, **params):
        message = {"jsonrpc": "2.0", "method": method, **params}
        self.child.stdin.write(json.dumps(message) + "\n")
        self.child.stdin.flush()

    def ask(self, method, **params):
        self.number += 1
        self.tell(method, id=self.number, params=params)
        while True:
            line = self.child.stdout.readline()
            if not line:
                raise lib.Failed("the MCP server is gone")
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise lib.Failed(f"mcp {method}: {answer['error']}")
                return answer["result"]

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        text = answer["content"][0]["text"]
        if answer.get("isError"):
            raise lib.Failed(f"mcp {tool}: {text}")
        return json.loads(text)

    def items(self):
        found, after = {}, 0
        while True:
            page = self.call("list_items", after=after)
            if not page["items"]:
                return found
            for i in page["items"]:
                found[i["id"]] = i
            after = page["next_after"]

    def save(self, item_id):
        done = self.call("save_file", item=item_id, dir=self.allow)
        with open(done["saved"] if "saved" in done else done["path"],
                  "rb") as f:
            return f.read()

    def end(self):
        if self.child.poll() is None:
            self.child.stdin.close()
            try:
                self.child.wait(5)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def agree(seen, truth, who):
    """What this peer shows of an item is what the truth says."""
    for key in seen:
        if key in truth:
            lib.same(seen[key], truth[key], f"{who}: {key}")


def now_ms():
    return int(time.time() * 1000)


def exchange(invites, tag, samples, where, senders, readers):
    """Each sender sends one of each kind, and each reader sees all of it.
    The truth is what the SDK shows an observer; that is held against what
    was sent.  Published clients re-encode some images: there the bytes are
    only the same for all readers.  Gives the truth."""
    watch = Sdk(tag + "-watch", invites["observer"])
    owner = Sdk(tag + "-answer", invites["owner"])
    sent = {}
    before = now_ms()
    for peer in senders:
        text = f"from {peer.name}: ünï\n  two lines"
        sent[peer.send_text(text)["id"]] = (peer, None, text)
        for name in samples:
            ref = peer.send_file(f"{where}/{name}")
            sent[ref["id"]] = (peer, name, None)
    first = watch.items()[next(iter(sent))]["ref"]
    answer = owner.send_text("an answer", refs=[first])
    truth = watch.items()
    lib.same(set(truth), set(sent) | {answer["id"]}, f"{tag}: all arrived")
    lib.same(truth[answer["id"]]["refs"], [first["id"]], "a reference")
    for item_id, (peer, name, text) in sent.items():
        check_truth(truth[item_id], peer, name, text, samples, before)
    for peer in readers:
        items = peer.items()
        lib.same(set(items), set(truth), f"{peer.name}: has them all")
        for item_id, seen in items.items():
            agree(seen, truth[item_id], peer.name)
        if isinstance(peer, Cli):
            watched = peer.items("watch", "--timeout", "2s")
            lib.same(set(watched), set(truth), f"{peer.name}: watch too")
    return truth


def check_truth(seen, peer, name, text, samples, before):
    lib.same((seen["author"], seen["role"], seen["status"]),
             (peer.name, peer.role, "ok"), "author, role, status")
    lib.ok(before - 1000 <= seen["created_ms"] <= now_ms() + 1000,
           "the time is now")
    if text is not None:
        lib.same(seen["text"], text, "the text")
        return
    lib.same(seen["name"], name, "the name")
    if seen["subkind"] != "image":
        lib.same(seen["body"], samples[name], f"{name}: its bytes")
