#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A relay that lies: a proxy in front of a true one.

    liar.py PORT FILE     the first line on stdout is our port; FILE holds the
                          lie of the moment, read anew for each event

    none       the truth
    repeat     each item is told twice, under two sequence numbers
    swap       two items change places
    drop       an item is left out
    flood      each item is told 3,000 times
    back       an event under a number that was used before
    jump       a number far ahead
    relabel    the role and name beside a signed join are others
    forgejoin  the name in a signed join is another
    envelope   one field of an item's header is another
    author     an item is under the name of somebody else
    blob       each item has the blob of the first one
    flip       one bit of each blob is another
    short      each blob is cut
    long       each blob has more after its end
    forbid     no blob is given: 403
    redirect   or one is found elsewhere: 302
    present    each blob is gone, but whoever asks for it hears "present"
    noise      events of unknown kinds, without id, without data, with junk
    manifest   another owner's manifest
    cutjob     a job is taken, and the connection cut before the answer
    giveagain  with each job that a runner is given, all before it once more
    jobfailed  a job that runs is told to have failed
"""
import http.client
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Lies:
    def __init__(self, path):
        self.path = path
        self.offset = 0
        self.held = None
        self.first = None
        self.given = []
        self.lock = threading.Lock()

    def now(self):
        try:
            with open(self.path) as f:
                return f.read().strip() or "none"
        except OSError:
            return "none"

    def events(self, seq, kind, data):
        """What is told instead of one true event: (seq, kind, data)."""
        with self.lock:
            lie = self.now()
            told = list(self.tell(lie, seq + self.offset, kind, data))
            return told

    def unnumbered(self, kind, data):
        told = [(None, kind, data)]
        if kind == "job_assigned":
            self.given.append(told[0])
            if self.now() == "giveagain":
                told = self.given * 3
        return told

    def tell(self, lie, seq, kind, data):
        item = kind == "item"
        if self.held and item:
            held, self.held = self.held, None
            yield (held[0], kind, data)
            yield (seq, kind, held[2])
            return
        if lie == "repeat" and item:
            yield (seq, kind, data)
            self.offset += 1
            yield (seq + 1, kind, data)
        elif lie == "flood" and item:
            yield (seq, kind, data)
            for i in range(3000):
                self.offset += 1
                yield (seq + 1 + i, kind, data)
        elif lie == "swap" and item:
            self.held = (seq, kind, data)
        elif lie == "drop" and item:
            return
        elif lie == "back" and item:
            yield (1, kind, data)
        elif lie == "jump" and item:
            yield (seq + 20000, kind, data)
        elif lie == "jobfailed" and kind == "job":
            yield (seq, kind, data.replace(
                '"reason":null', '"reason":"runner lost"').replace(
                '"state":"running"', '"state":"failed"'))
        elif lie == "noise":
            yield (None, "weather", '{"sky":"blue"}')
            yield (None, "item", data)
            yield (None, "participant", '{"participant_pub":7}')
            yield (None, "item", '{"envelope":"{"}')
            yield (None, "item", '[' * 5000)
            yield (seq, kind, data)
        else:
            yield (seq, kind, self.change(lie, kind, data))

    def change(self, lie, kind, data):
        d = json.loads(data)
        if kind == "participant" and lie == "relabel":
            d.update(role="owner", display_name="boss")
        elif kind == "participant" and lie == "forgejoin":
            d["signed_join"] = re.sub(r'"display_name":"[^"]*"',
                                      '"display_name":"boss"',
                                      d["signed_join"])
        elif kind == "item" and lie == "envelope":
            d["envelope"] = re.sub(
                r'"created_at_ms":(\d+)',
                lambda m: f'"created_at_ms":{int(m[1]) + 1}', d["envelope"])
        elif kind == "item" and lie == "author":
            d["envelope"] = re.sub(
                r'"author":"[^"]*"', f'"author":"{"A" * 43}"', d["envelope"])
        else:
            return data
        return json.dumps(d, separators=(",", ":"))

    def blob(self, body):
        with self.lock:
            lie = self.now()
            if self.first is None:
                self.first = body
        if lie == "blob":
            return self.first
        if lie == "flip":
            middle = len(body) // 2
            return (body[:middle] + bytes((body[middle] ^ 1,))
                    + body[middle + 1:])
        if lie == "short":
            return body[:-1]
        if lie == "long":
            return body + b"x"
        return body


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def pass_on(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n) if n else None
        relay = http.client.HTTPConnection("127.0.0.1", self.server.relay)
        keep = {k: v for k, v in self.headers.items() if k.lower() not in (
            "host", "connection", "expect", "content-length")}
        last = keep.get("Last-Event-ID")
        if last:
            keep["Last-Event-ID"] = str(
                max(0, int(last) - self.server.lies.offset))
        relay.request(self.command, self.path, body, keep)
        answer = relay.getresponse()
        if self.path.endswith("/stream"):
            return self.stream(relay, answer)
        data = answer.read()
        relay.close()
        if self.path.endswith("/blob") and answer.status == 200:
            data = self.server.lies.blob(data)
        if (self.command == "POST" and self.path.endswith("/jobs")
                and self.server.lies.now() == "cutjob"):
            self.close_connection = True
            return
        if (re.fullmatch(r"/v1/sessions/[^/]+", self.path)
                and self.server.lies.now() == "manifest"):
            data = data.replace(b"max_item_bytes\\\":", b"max_item_bytes\\\":1")
        lie, status = self.server.lies.now(), answer.status
        if self.path.endswith("/blob"):
            status = {"forbid": 403, "redirect": 302,
                      "present": 410}.get(lie, status)
        elif self.path.endswith("/want") and lie == "present":
            status, data = 409, b'{"error":"present","message":""}'
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/")
        for name in ("Content-Type", "Retry-After", "Date"):
            if answer.getheader(name) and name != "Date":
                self.send_header(name, answer.getheader(name))
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if status != 204:
            self.wfile.write(data)

    def stream(self, relay, answer):
        self.close_connection = True
        self.send_response(answer.status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        fields = {}
        try:
            for line in answer:
                line = line.decode().rstrip("\r\n")
                if line.startswith(":"):
                    self.wfile.write(b":\n\n")
                elif line:
                    name, _, value = line.partition(":")
                    fields[name] = value.lstrip(" ")
                elif fields:
                    self.tell(fields)
                    fields = {}
        except (OSError, ValueError):
            pass
        finally:
            relay.close()

    def tell(self, fields):
        if "id" not in fields:
            told = self.server.lies.unnumbered(fields.get("event"),
                                               fields.get("data"))
        else:
            told = self.server.lies.events(
                int(fields["id"]), fields["event"], fields["data"])
        for seq, kind, data in told:
            head = f"id: {seq}\n" if seq is not None else ""
            self.wfile.write(
                f"{head}event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    do_GET = do_POST = do_PUT = pass_on


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.relay, server.lies = int(sys.argv[1]), Lies(sys.argv[2])
    print(server.server_port, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
