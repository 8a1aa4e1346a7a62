#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 90
"""Goal: jobs of a session that allows network are refused without a policy;
with one they reach what it names, by the broker, with a credential they never
have; their result names what was denied; nothing is left of the broker."""
import http.server
import os
import subprocess
import sys
import threading

TOP = os.environ["TOP"]
sys.path.insert(0, TOP + "/tests")
sys.dont_write_bytecode = True
import runner_queue as rq  # noqa: E402
from runner_queue import ok  # noqa: E402

T = os.environ["T"]
SECRET = "real-key-of-the-runner-0815"
seen = []


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen.append((self.path, self.headers["Authorization"]))
        body = f"by {self.headers['Authorization']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


JOB = """
import os, socket, urllib.request, urllib.error
def get(url):
    try:
        print(url, urllib.request.urlopen(url, timeout=20).read().decode())
    except urllib.error.HTTPError as e:
        print(url, e.code)
get("http://localhost:PORT/v1/a")
get("http://localhost:PORT/other")
get("http://evil.example/")
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=5)
    print("THE NETWORK ITSELF")
except OSError:
    print("no network itself")
print("SECRET" in str(os.environ))
"""


def children(q):
    with open(f"/proc/{q.process.pid}/task/{q.process.pid}/children") as f:
        return f.read().split()


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    os.environ["REAL_KEY"] = SECRET
    with open(T + "/p.yaml", "w") as f:
        f.write(f"""
allow:
  - host: localhost:{port}
    path: /v1/*
    tls: none
credentials:
  - host: localhost:{port}
    scheme: bearer
    from: env:REAL_KEY
    plaintext: true
""")
    with open(T + "/bad.yaml", "w") as f:
        f.write("allow:\n  - api.example\nwhat: 1\n")
    bad = subprocess.run([rq.BUILD + "/airlox-runner", "--policy",
                          T + "/bad.yaml", T], stderr=subprocess.PIPE,
                         text=True)
    ok(bad.returncode == 65 and "line 3" in bad.stderr,
       f"a bad policy: {bad.stderr}")

    q = rq.Queue(T)
    job = q.run("print(1)", network=True)
    ok(job.end == "refuse" and "--policy" in job.reason,
       f"without one: {job.end} {job.reason}")
    q.close()

    q = rq.Queue(T, "--policy", T + "/p.yaml")
    code = JOB.replace("PORT", str(port)).replace("SECRET", SECRET)
    job = q.run(code, network=True)
    ok(job.end == "done" and job.code == 0, f"{job.end} {job.reason} "
       f"{job.err}")
    lines = job.out.splitlines()
    ok(lines[0] == f"http://localhost:{port}/v1/a by Bearer "
       + "*" * len(SECRET), f"allowed, and the key was taken out: {lines[0]}")
    ok(seen == [("/v1/a", "Bearer " + SECRET)], "the upstream got it")
    ok(lines[1].endswith(" 403") and lines[2].endswith(" 403"), "denied two")
    ok(lines[3] == "no network itself", "there is no other way")
    ok("denied by the runner's policy: localhost (" in job.reason
       and "evil.example (" in job.reason, f"the result: {job.reason}")
    job = q.run(code, network=False)
    ok(job.end == "done" and "Traceback" in job.err and len(seen) == 1,
       "a job of a session without network has none")
    job = q.run("import time\ntime.sleep(60)", network=True, timeout_s=1)
    ok(job.end == "timed_out" and "denied" not in job.reason,
       f"nothing asked, nothing denied: {job.reason}")
    ok(rq.wait_until(lambda: not children(q), 10), "no broker is left")
    ok(q.close() == [], "nor a directory")


main()
