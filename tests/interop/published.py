#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: the published client works on our relay: command line, SDK and MCP
server, every role, every kind of item, owner made by either."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import AIRLOX, Cli, Mcp, Sdk, exchange, lib  # noqa: E402


def create_by_cli(relay):
    done = lib.run_cli(AIRLOX, "owner", "session", "create", "--relay",
                       relay.url, "--json", "--as", "olga", "--execute",
                       "--runtime", "python3.11")
    made = json.loads(done.stdout)
    lib.same(sorted(made["invites"]),
             ["observer", "owner", "runner", "sender"], "links of a create")
    return made["invites"]


def create_by_sdk(relay):
    return Sdk("owner-sdk", relay=relay.url, ttl="2h").invites


def mcp(invites, tag, truth, where):
    peer = Mcp(tag + "-mcp", invites["sender"], where)
    lib.same(peer.joined["role"], "sender", "mcp joined")
    tools = {t["name"] for t in peer.ask("tools/list")["tools"]}
    lib.ok({"join_session", "list_items", "send_text", "send_file",
            "save_file"} <= tools, "mcp tools")
    items = peer.items()
    lib.same(set(items), set(truth), "mcp lists them all")
    peer.call("send_text", text="from mcp")
    peer.call("send_file", path=where + "/notes.md")
    after = Sdk(tag + "-after", invites["observer"]).items()
    new = [i for k, i in after.items() if k not in truth]
    lib.same([(i["author"], i.get("text"), i.get("name")) for i in new],
             [(tag + "-mcp", "from mcp", None),
              (tag + "-mcp", None, "notes.md")], "what mcp sent")
    peer.end()


def manage(invites, tag):
    owner = Cli(tag + "-admin", invites["owner"])
    info = json.loads(owner.session("info", "--json").stdout)
    lib.same(info["your_role"], "owner", "info: role")
    lib.ok(any(p["display_name"] == tag + "-mcp" and p["role"] == "sender"
               for p in info["participants"]), "info: participants")
    shown = json.loads(owner.session("invites", "--json").stdout)["invites"]
    lib.same(shown, {k: v for k, v in invites.items() if k in shown},
             "invites are the same again")
    trail = lib.json_lines(owner.session("audit").stdout)
    lib.ok(len(trail) > 20, f"audit has {len(trail)} lines")
    words = json.dumps(trail)
    for word in ("joined", "posted", "acked"):
        lib.ok(word in words, f"audit knows {word}")
    seer = Cli(tag + "-seer", invites["observer"])
    lib.ok(seer.session("audit").stdout, "an observer may see the audit")
    seer.run("send", "text", "--as", seer.name, "no", status=None)
    said = seer.run("send", "text", "no", status=1).stderr
    lib.ok(said, "an observer may not send")
    sender = Cli(tag + "-cli", invites["sender"])
    lib.ok(sender.session("audit", status=1).stderr, "nor a sender audit")
    lib.ok(sender.session("close", status=1).stderr, "nor close")


def end(invites, tag):
    owner = Cli(tag + "-admin", invites["owner"])
    seer = Cli(tag + "-seer", invites["observer"])
    late = Cli(tag + "-late", invites["observer"])
    stream = Sdk(tag + "-stream", invites["sender"])
    owner.session("revoke", "observer")
    lib.ok(late.run("items", status=1).stderr, "revoked: admits no one")
    lib.ok(seer.session("audit", status=1).stderr, "revoked: cut off")
    owner.session("close")
    try:
        stream.send_text("too late")
        raise lib.Failed("a closed session took an item")
    except Exception as e:  # whatever class the SDK chose
        lib.ok("Failed" not in type(e).__name__, f"closed: {e}")
    lib.ok(Cli("new", invites["sender"]).run("items", status=1).stderr,
           "closed: gone")


def main():
    relay = lib.Relay()
    where = lib.T + "/samples"
    samples = lib.make_samples(where)
    for create in (create_by_cli, create_by_sdk):
        tag = create.__name__[-3:]
        invites = create(relay)
        owner = Sdk(tag + "-owner", invites["owner"])
        truth = exchange(
            invites, tag, samples, where,
            senders=[owner, Sdk(tag + "-sdk", invites["sender"]),
                     Cli(tag + "-cli", invites["sender"])],
            readers=[Cli(tag + "-r-cli", invites["observer"]),
                     Cli(tag + "-r2", invites["sender"]),
                     Sdk(tag + "-r-sdk", invites["sender"])])
        mcp(invites, tag, truth, where)
        manage(invites, tag)
        end(invites, tag)
    lib.same(relay.stop(), 0, "the relay ends with 0")


lib.run_main(main)
