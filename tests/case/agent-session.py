#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: the whole of it: a sender posts a task; a sealed agent on another mount
reads it, asks once for permission, which a script gives through the file, calls
an allowed host with a credential it never has, is denied another, and writes
the answer to the session; the record verifies and holds all of that, and the
credential is nowhere."""
import base64
import encodings.idna   # while it can still be read  # noqa: F401
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, os.environ["TOP"] + "/tests")
import box_user                                       # noqa: E402
import lib                                            # noqa: E402

BOX = lib.BUILD + "/airlox-box"
SECRET = "real-model-key-0815/x+y"
PLACE = "placeholder-of-the-agent"
seen = []

POLICY = """
agent: [/usr/bin/python3, {T}/agent.py]
session: write
allow:
  - host: localhost:{port}
    path: /v1/*
    tls: none
credentials:
  - host: localhost:{port}
    scheme: substitute
    placeholder: {PLACE}
    env: API_KEY
    from: env:REAL_KEY
    plaintext: true
limits:
  time: 60s
"""


class Model(http.server.BaseHTTPRequestHandler):
    """Says what it was sent, the credential too."""

    def do_GET(self):
        seen.append((self.path, self.headers["Authorization"]))
        body = json.dumps({"answer": 42, "by": self.headers["Authorization"],
                           "b64": base64.b64encode(SECRET.encode()).decode()})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *words):
        pass


def environment():
    return dict(os.environ, REAL_KEY=SECRET)


def box(*words):
    done = subprocess.run([BOX, *words], env=environment(), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60 * lib.SLOW)
    if done.returncode:
        raise lib.Failed(f"{words}: exit {done.returncode}: {done.stdout} "
                         f"{done.stderr}")
    return done


SCRIPT = """
cd "$XDG_STATE_HOME/airlox-box/runs/$1" || exit 1
question=$(cat ask) || exit 1
echo "${question%% *} yes a script" >answer
echo "$question"
"""


def forms(text):
    raw = text.encode()
    return [raw, base64.b64encode(raw), urllib.parse.quote(text, safe="")
            .encode(), json.dumps(text)[1:-1].encode(), raw.hex().encode()]


def nowhere(*places):
    for path in [f for p in places for f in lib.files_of(p)]:
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            continue
        for form in forms(SECRET):
            if form in data:
                raise lib.Failed(f"{path} holds the credential")
    lib.ok(True, "the credential is nowhere")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    relay = lib.Relay()
    made = lib.run_cli(lib.AIRLOXFS, "creator", "create", "--relay",
                       relay.url, "--json")
    links = json.loads(made.stdout)["invites"]
    alice = lib.Mount("alice", links["owner"])
    bob = lib.Mount("bob", links["sender"])
    with open(os.environ["TOP"] + "/tests/acp_agent.py") as f, \
            open(lib.T + "/agent.py", "w") as to:
        to.write(f.read())
    with open(lib.T + "/p.yaml", "w") as f:
        f.write(POLICY.format(T=lib.T, port=port, PLACE=PLACE))

    alice.send("task.md", b"what is the answer?\n")
    lib.wait_for(lambda: os.listdir(bob.path("in")), "the task")
    record = lib.T + "/r.html"
    run = box("agent", lib.T + "/p.yaml", "--session", bob.dir, "--detach",
              "--record", record,
              f"task /session/out/answer.md http://localhost:{port}/v1/ask "
              "http://evil.example/\nenv\nfind " + SECRET[::-1]).stdout.strip()
    asked = subprocess.run(["sh", "-c", SCRIPT, "sh", run], text=True,
                           stdout=subprocess.PIPE, env=os.environ, check=True,
                           timeout=30 * lib.SLOW).stdout
    lib.ok(asked.startswith("1 execute: post the answer "),
           f"one question: {asked}")
    told = box("attach", run)
    out = told.stdout

    lib.ok("task: what is the answer?" in out, "it read the task")
    lib.ok("post the answer: yes-1" in out, "it was allowed")
    lib.same(seen, [("/v1/ask", "Bearer " + SECRET)],
             "the model got the credential")
    lib.ok('"answer": 42' in out and SECRET not in out + told.stderr,
           "the agent got the answer, and not the credential")
    lib.ok("http://evil.example/: 403" in out
           and "denied: GET evil.example" in told.stderr, "denied another")
    lib.ok(f'"API_KEY": "{PLACE}"' in out, "it has a placeholder")
    lib.ok("found: ''" in out, "and finds nothing else")

    entry = lib.wait_for(lambda: [n for n in os.listdir(alice.path("in"))
                                  if n.endswith("answer.md")], "the answer")
    lib.same(alice.read("in/" + entry[0]), b"42\n", "the answer came")

    box("verify", record)
    shown = box("show", record).stdout
    for want in ("ask=1", "by=a script", "answer=allow_once",
                 "name=out/answer.md", "host=evil.example",
                 "request=fs/write_text_file", "decision=allowed",
                 "exit=0"):
        lib.ok(want in shown, f"the record has {want}")
    lib.same(shown.count("offers="), 1, "and one question")
    nowhere(*(lib.T + "/" + n for n in os.listdir(lib.T)
              if not n.startswith("mnt-")))


box_user.run(main)
