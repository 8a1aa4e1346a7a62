#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A relay that says no: a proxy in front of a true one.

    codes.py PORT FILE    the first line on stdout is our port; FILE holds the
                          statuses that the next posts of items get instead of
                          an answer of the relay: "507 429 503", one each;
                          "429:2" says to come back in 2 s.  FILE.log gets
                          the time of each post, in seconds, and its status
"""
import http.client
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, FILE = int(sys.argv[1]), sys.argv[2]
lock = threading.Lock()


def next_code():
    with lock:
        with open(FILE) as f:
            codes = f.read().split()
        if not codes:
            return None
        with open(FILE + ".new", "w") as f:
            f.write(" ".join(codes[1:]))
        os.rename(FILE + ".new", FILE)
        return codes[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, body, kind="application/json", later=""):
        self.send_response(status)
        if later:
            self.send_header("Retry-After", later)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n) if n else None
        if self.command == "POST" and self.path.endswith("/items"):
            code, _, later = (next_code() or "").partition(":")
            with lock, open(FILE + ".log", "a") as f:
                f.write(f"{time.monotonic()} {code or 0}\n")
            if code:
                return self.answer(int(code), b'{"error":"no"}', later=later)
        relay = http.client.HTTPConnection("127.0.0.1", PORT)
        relay.request(self.command, self.path, body, {
            k: v for k, v in self.headers.items() if k.lower() not in (
                "host", "connection", "expect", "content-length")})
        r = relay.getresponse()
        if not self.path.endswith("/stream"):
            self.answer(r.status, r.read())
            return relay.close()
        self.close_connection = True
        self.send_response(r.status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for line in r:
                self.wfile.write(line)
                self.wfile.flush()
        except OSError:
            pass
        relay.close()

    do_GET = do_POST = do_PUT = pass_on


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
