# SPDX-License-Identifier: MIT
"""A peer that speaks to the relay by hand: raw requests, and whatever it
likes signed by build/tests/hostile/sealer."""
import hashlib
import http.client
import json
import re
import secrets
import socket
import struct
import subprocess
import threading
import time

import lib

SEALER = lib.BUILD + "/tests/hostile/sealer"


def now_ms():
    return int(time.time() * 1000)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"] if self.body else None


class Peer:
    """One connection that is kept, and a token."""

    def __init__(self, relay, token=None, sid=None):
        self.relay, self.token, self.sid = relay, token, sid
        self.child = relay.child
        self.conn = http.client.HTTPConnection("127.0.0.1", relay.port,
                                               timeout=20 * lib.SLOW)

    def ask(self, method, path, body=None, **headers):
        if not path.startswith(("/v1", "/metrics")):
            path = f"/v1/sessions/{self.sid}{path}"
        fields = {k.replace("_", "-"): v for k, v in headers.items()}
        if self.token:
            fields["Authorization"] = "Bearer " + self.token
        if self.child is not self.relay.child:
            self.conn.close()   # a new process: a new connection
            self.child = self.relay.child
        try:
            self.conn.request(method, path, body, fields,
                              encode_chunked="Transfer-Encoding" in fields)
            r = self.conn.getresponse()
            answer = Answer(r.status, dict(r.getheaders()), r.read())
        except (OSError, http.client.HTTPException):
            self.conn.close()
            raise
        return answer

    def post(self, path, body=None, **headers):
        return self.ask("POST", path, body, **headers)

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def events(self, after=None):
        query = "" if after is None else f"?after={after}"
        return self.get("/events" + query).json["events"]

    def kinds(self):
        return [e["kind"] for e in self.events()]


class Party:
    """A session, and who signs for it."""

    def __init__(self, relay, mode="relay", created=None, expires=None,
                 most=1 << 20):
        self.relay, self.owner = relay, secrets.token_hex(32)
        self.lock = threading.Lock()    # one question, one answer
        self.child = subprocess.Popen([SEALER], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.created = created or now_ms()
        if expires is None:
            expires = self.created + 3600000
        self.manifest = self.sign("manifest", self.owner, mode, self.created,
                                  expires, most)
        self.sid = json.loads(self.manifest)["manifest"]["session_id"]
        self.seeds = {}

    def sign(self, *words):
        with self.lock:
            self.child.stdin.write(" ".join(map(str, words)) + "\n")
            self.child.stdin.flush()
            return self.child.stdout.readline().rstrip("\n")

    def create(self):
        return Peer(self.relay).post("/v1/sessions", self.manifest)

    def join_text(self, role, name, seed=None):
        self.seeds[name] = seed or secrets.token_hex(32)
        return self.sign("join", self.owner, role, self.seeds[name], name)

    def join(self, role, name):
        peer = Peer(self.relay, None, self.sid)
        answer = peer.post("/participants", self.join_text(role, name))
        lib.same(answer.status, 201, f"{name} joined")
        peer.token, peer.name = answer.json["token"], name
        return peer

    def item(self, who, blob, kind="text", type_="-", created=None, id_="-",
             size=None):
        """(id, envelope, frame); the blob is as good as random."""
        envelope = self.sign(
            "item", self.seeds[who], kind, type_, created or now_ms(), id_,
            hashlib.sha256(blob).hexdigest(),
            len(blob) - 28 if size is None else size)
        return (json.loads(envelope)["header"]["id"], envelope,
                frame(envelope.encode(), blob))

    def post(self, peer, n=100, **how):
        blob = secrets.token_bytes(n + 28)
        id_, envelope, data = self.item(peer.name, blob, **how)
        return id_, blob, peer.post("/items", data)

    def end(self):
        self.child.stdin.close()
        self.child.wait(10)


def frame(envelope, blob):
    return struct.pack(">I", len(envelope)) + envelope + blob


class Stream:
    """Events as they come; a comment is (None, None, None)."""

    def __init__(self, peer, after=None, extra=""):
        self.sock = socket.create_connection(("127.0.0.1", peer.relay.port))
        last = "" if after is None else f"Last-Event-ID: {after}\r\n"
        self.sock.sendall(
            f"GET /v1/sessions/{peer.sid}/stream HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {peer.token}\r\n{last}{extra}\r\n"
            .encode())
        self.sock.settimeout(20 * lib.SLOW)
        self.file = self.sock.makefile("rb")
        self.head = b""
        while not self.head.endswith(b"\r\n\r\n"):
            line = self.file.readline()
            if not line:
                raise lib.Failed(f"the stream's head: {self.head!r}")
            self.head += line

    def next(self):
        """(seq, kind, data), or None at the end."""
        event = {}
        while True:
            line = self.file.readline()
            if not line:
                return None
            line = line.decode().rstrip("\n")
            if line == "" and event:
                return (int(event["id"]), event["event"],
                        json.loads(event["data"]))
            if line == "" or line.startswith(":"):
                continue
            name, _, value = line.partition(": ")
            event[name] = value

    def close(self):
        self.file.close()
        self.sock.close()


def raw(port, data, seconds=5, half=False):
    """All that comes back for these bytes, until the relay closes or is
    silent."""
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(seconds)
    got = b""
    try:
        s.sendall(data)
        if half:
            s.shutdown(socket.SHUT_WR)
        while True:
            part = s.recv(65536)
            if not part:
                break
            got += part
    except (TimeoutError, ConnectionResetError, BrokenPipeError):
        pass
    s.close()
    return got


def statuses(answer):
    return [int(x) for x in re.findall(rb"HTTP/1\.1 (\d\d\d) ", answer)]
