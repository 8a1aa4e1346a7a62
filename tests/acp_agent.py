#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An agent that speaks the Agent Client Protocol and does what its prompt says,
a step a line: the polite ones and the rude.  What it learns it says, so that a
test can read it in the transcript."""
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

CALL = {"sessionId": "s-1"}
OPTIONS = {
    "once": [("yes-1", "allow_once"), ("no-1", "reject_once")],
    "all": [("yes-1", "allow_once"), ("yes-2", "allow_always"),
            ("no-1", "reject_once"), ("no-2", "reject_always")],
}
ids = iter(range(100, 10 ** 9))
cancelled = False
calls = iter(range(1, 10 ** 9))


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(what, **rest):
    send(method="session/update", params={**CALL, "update": {
        "sessionUpdate": what, **rest}})


def say(text, kind="agent_message_chunk"):
    update(kind, content={"type": "text", "text": text})


def receive():
    global cancelled
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    if message.get("method") == "session/cancel":
        cancelled = True
    return message


def call(method, **params):
    number = next(ids)
    send(id=number, method=method, params={**CALL, **params})
    while True:
        message = receive()
        if message.get("id") == number and "method" not in message:
            return message
        if cancelled and method != "session/request_permission":
            return {"error": {"message": "cancelled"}}


def short(answer):
    return json.dumps(answer.get("result", answer.get("error")))


def ask(title, options="once", raw=None):
    tool = f"call-{next(calls)}"
    update("tool_call", toolCallId=tool, title=title, kind="execute",
           status="pending", rawInput=raw or {"command": title})
    got = call("session/request_permission", toolCall={"toolCallId": tool},
               options=[{"optionId": o, "name": o, "kind": k}
                        for o, k in OPTIONS[options]])
    outcome = got.get("result", {}).get("outcome", {})
    chosen = outcome.get("optionId", outcome.get("outcome", short(got)))
    update("tool_call_update", toolCallId=tool, status="completed"
           if chosen.startswith("yes") else "failed")
    say(f"{title}: {chosen}\n")
    return chosen.startswith("yes")


def fetch(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as r:
            say(f"{url}: {r.status} {r.read().decode()[:2000]}\n")
    except urllib.error.HTTPError as e:
        say(f"{url}: {e.code}\n")
    except OSError as e:
        say(f"{url}: {e}\n")


def run(words):
    made = call("terminal/create", command=words[0], args=words[1:],
                cwd="/work", outputByteLimit=100)
    if "result" not in made:
        say(f"terminal: {short(made)}\n")
        return
    term = made["result"]["terminalId"]
    end = call("terminal/wait_for_exit", terminalId=term)
    out = call("terminal/output", terminalId=term)
    call("terminal/release", terminalId=term)
    gone = call("terminal/output", terminalId=term)
    say(f"terminal: {short(end)} {short(out)} {gone['error']['code']}\n")


def kill_one():
    term = call("terminal/create", command="sleep 1000 & sleep 1000")[
        "result"]["terminalId"]
    now = call("terminal/output", terminalId=term)
    call("terminal/kill", terminalId=term)
    say(f"killed: {short(now)} "
        f"{short(call('terminal/wait_for_exit', terminalId=term))}\n")


RUDE = ["Listening on port 3000", '{"jsonrpc":"2.0","id":4711,"result":{}}',
        '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}', "[]",
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
        '"other","update":{"sessionUpdate":"plan","entries":[]}}}',
        '{"id":5,"result":{"stopReason":"end_turn"}}', "\033[2J\033]0;x\007"]


def step(line):
    word, _, rest = line.partition(" ")
    if word == "say":
        say(rest.encode().decode("unicode_escape") + "\n")
    elif word == "think":
        say(rest, "agent_thought_chunk")
    elif word == "plan":
        update("plan", entries=[{"content": e, "priority": "high",
                                 "status": "pending"}
                                for e in rest.split(",")])
    elif word in ("ask", "ask-all"):
        ask(rest, "all" if word == "ask-all" else "once")
    elif word == "read":
        say(f"read: {short(call('fs/read_text_file', path=rest))}\n")
    elif word == "lines":
        say(f"lines: {short(call('fs/read_text_file', path=rest, line=2, limit=1))}\n")
    elif word == "write":
        path, _, text = rest.partition(" ")
        got = call("fs/write_text_file", path=path, content=text + "\n")
        say(f"write: {short(got)}\n")
    elif word == "run":
        run(rest.split())
    elif word == "shell":
        run([rest])
    elif word == "kill":
        kill_one()
    elif word == "fetch":
        fetch(rest, Authorization="Bearer "
              + os.environ.get("API_KEY", "none"))
    elif word == "task":
        task(rest)
    elif word == "env":
        say(json.dumps(dict(os.environ)) + "\n")
    elif word == "find":
        # reversed: so the prompt is not what is found
        out = subprocess.run(["grep", "-raFlD", "skip", rest[::-1], "/work", "/tmp",
                              "/session/in", "/session/out", "/run", "/etc",
                              "/home", "/proc/self/environ"],
                             capture_output=True, text=True)
        say(f"found: {out.stdout!r}\n")
    elif word == "sleep":
        end = time.monotonic() + float(rest)
        while time.monotonic() < end:
            time.sleep(0.02)
    elif word == "forever":
        call("session/request_permission", toolCall={"toolCallId": "none"},
             options=[{"optionId": "y", "name": "y", "kind": "allow_once"}])
        say(f"cancelled: {cancelled}\n")
    elif word == "deaf":
        while True:
            time.sleep(1)
    elif word == "method":
        got = call(rest)
        say(f"method: {got['error']['code']}\n")
    elif word == "rude":
        for line in RUDE:
            print(line, flush=True)
    elif word == "nonsense":
        while True:
            print("nonsense", flush=True)
    elif word == "huge":
        sys.stdout.write("x" * (20 << 20) + "\n")
    elif word == "flood":
        for i in range(int(rest)):
            say("flood" * 20)
    elif word == "askflood":
        for i in range(200):
            send(id=f"q{i}", method="session/request_permission", params={
                **CALL, "toolCall": {"toolCallId": f"f{i}"}, "options": [
                    {"optionId": "y", "name": "y", "kind": "allow_once"}]})
        busy = 0
        for i in range(200):
            busy += "error" in receive()
        say(f"refused: {busy}\n")
    elif word == "die":
        print("I am dying", file=sys.stderr, flush=True)
        os._exit(int(rest))
    elif word == "stop":
        return rest
    return None


def task(rest):
    """The whole of a day's work: see tests/case/agent-session.py."""
    where, good, bad = rest.split()
    names = sorted(n for n in os.listdir("/session/in"))
    with open(f"/session/in/{names[-1]}") as f:
        say(f"task: {f.read().strip()}\n")
    if not ask("post the answer"):
        return
    fetch(good, Authorization="Bearer " + os.environ["API_KEY"])
    fetch(bad)
    got = call("fs/write_text_file", path=where, content="42\n")
    say(f"answer: {short(got)}\n")


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    while True:
        m = receive()
        method, number = m.get("method"), m.get("id")
        if method == "initialize":
            if mode == "old":
                send(id=number, result={"protocolVersion": 9})
            else:
                send(id=number, result={
                    "protocolVersion": 1,
                    "agentInfo": {"name": "scripted\033[1m", "version": "1"},
                    "authMethods": [{"id": "key", "name": "A key"}]})
        elif method == "authenticate":
            mode = m["params"]["methodId"]
            send(id=number, result={})
        elif method == "session/new":
            if mode == "locked":
                send(id=number, error={"code": -32000,
                                       "message": "Authentication required"})
            else:
                send(id=number, result={"sessionId": "s-1"})
        elif method == "session/prompt":
            reason = "end_turn"
            for line in m["params"]["prompt"][0]["text"].split("\n"):
                reason = step(line) or reason
                if cancelled:
                    reason = "cancelled"
                    break
            send(id=number, result={"stopReason": reason})


main()
