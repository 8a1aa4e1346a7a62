# SPDX-License-Identifier: MIT
"""Agents as their makers publish them, with the ready policies and a model of
ours behind their model's name: AGENTS=DIR tests/run tests/case/agent.py, where
each was installed with `npm install --prefix DIR/NAME PACKAGE`.  They are too
large for every run."""
import json
import os
import subprocess

import broker_peer as bp
import lib

SECRET = "real-key-of-the-test-0815/x+y"
SAYS = "Hello from a model."
AGENTS = {
    # name: (host, flags, variable, the field that has to have the key)
    "claude": ("api.anthropic.com", [], "ANTHROPIC_API_KEY",
               ["x-api-key", SECRET]),
    "codex": ("api.openai.com", ["--auth", "openai-api-key"],
              "OPENAI_API_KEY", ["authorization", "Bearer " + SECRET]),
    "gemini": ("generativelanguage.googleapis.com",
               ["--auth", "gemini-api-key"], "GEMINI_API_KEY",
               ["x-goog-api-key", SECRET]),
    "opencode": ("api.anthropic.com", [], "ANTHROPIC_API_KEY",
                 ["x-api-key", SECRET]),
}
NAMES = sorted({a[0] for a in AGENTS.values()})


def events(*all_of_them):
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n"
                   for e in all_of_them).encode()


def anthropic(model, stream):
    message = {"id": "msg_1", "type": "message", "role": "assistant",
               "model": model, "content": [], "stop_reason": None,
               "stop_sequence": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not stream:
        message.update(content=[{"type": "text", "text": SAYS}],
                       stop_reason="end_turn")
        return json.dumps(message).encode()
    return events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "text_delta", "text": SAYS}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "usage": {"output_tokens": 5},
         "delta": {"stop_reason": "end_turn", "stop_sequence": None}},
        {"type": "message_stop"})


def openai(model):
    item = {"type": "message", "id": "m1", "role": "assistant",
            "status": "completed", "content": [
                {"type": "output_text", "text": SAYS, "annotations": []}]}
    answer = {"id": "r1", "object": "response", "status": "completed",
              "model": model, "output": [item],
              "usage": {"input_tokens": 1, "output_tokens": 1,
                        "total_tokens": 2,
                        "input_tokens_details": {"cached_tokens": 0},
                        "output_tokens_details": {"reasoning_tokens": 0}}}
    begun = dict(answer, status="in_progress", output=[])
    return events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0,
         "item": dict(item, content=[], status="in_progress")},
        {"type": "response.output_text.delta", "item_id": "m1",
         "output_index": 0, "content_index": 0, "delta": SAYS},
        {"type": "response.output_item.done", "output_index": 0,
         "item": item},
        {"type": "response.completed", "response": answer})


def gemini(stream):
    part = {"candidates": [{"index": 0, "finishReason": "STOP", "content": {
        "role": "model", "parts": [{"text": SAYS}]}}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 5,
                          "totalTokenCount": 6}}
    text = json.dumps(part)
    return (f"data: {text}\r\n\r\n" if stream else text).encode()


def answer(req):
    path = req["target"]
    try:
        asked = json.loads(req["body"])
    except (ValueError, TypeError):
        asked = {}
    stream = bool(asked.get("stream")) or "stream" in path
    if "count_tokens" in path or "countTokens" in path:
        body, stream = b'{"input_tokens": 1, "totalTokens": 1}', False
    elif "/v1/messages" in path:
        body = anthropic(asked.get("model"), stream)
    elif "/responses" in path:
        body = openai(asked.get("model"))
    elif "enerateContent" in path:
        body = gemini(stream)
    else:
        body, stream = b'{"data": [], "models": []}', False
    kind = b"text/event-stream" if stream else b"application/json"
    return bp.plain(body, b"Content-Type: " + kind + b"\r\n")


def run(name, where):
    host, flags, variable, field = AGENTS[name]
    up.seen.clear()
    env = dict(os.environ, SSL_CERT_FILE=bp.CA, **{variable: SECRET},
               PATH=f"{where}/{name}/node_modules/.bin:" + os.environ["PATH"],
               XDG_STATE_HOME=lib.T + "/state")
    policy = f"{os.environ['TOP']}/docs/policy/agent-{name}.yaml"
    done = subprocess.run([bp.BOX, "agent", policy, *flags, "--record",
                           f"{lib.T}/{name}.html", "--permissions",
                           "auto_allow", "say hello"], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=bp.drop_caps,
                          timeout=150 * lib.SLOW)
    print(f"-- {name}\n{done.stdout[-800:]}\n{done.stderr[-2500:]}")
    lib.same(done.returncode, 0, f"{name} comes to its end")
    lib.ok(SAYS in done.stdout, f"{name} says what the model said")
    got = [f for r in up.seen for f in r["fields"]
           if f[0].lower() == field[0]]
    lib.ok(got and all(f[1] == field[1] for f in got),
           f"{host} got the key of {name}")
    lib.ok(SECRET not in done.stdout + done.stderr, "and nobody else")


def main(where):
    global up
    bp.make_certs(NAMES)
    up = bp.Upstream("93.184.1.9", answer=answer)
    for name in AGENTS:
        if os.path.isdir(f"{where}/{name}"):
            run(name, where)


bp.HOSTS["93.184.1.9"] = " ".join(NAMES)
