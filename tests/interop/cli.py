#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 240
"""Goal: our command line beside the published one: owner made by either,
each sends, each reads, each manages what the other made."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import AIRLOX, Cli, Sdk, exchange, lib  # noqa: E402

OURS = lib.AIRLOXFS
FLAGS = ("--json", "--as", "olga", "--execute", "--runtime", "python3.11",
         "--job-timeout", "90s", "--job-memory", "256", "--package", "numpy",
         "--no-approval", "--ttl", "2h", "--max-item-mb", "7",
         "--types", "text,py,md,zip,image", "--description", "The owner")


def create(relay, program):
    words = ("create",) if program == OURS else ("session", "create")
    done = lib.run_cli(program, "owner-" + os.path.basename(program), *words,
                       "--relay", relay.url, *FLAGS)
    return json.loads(done.stdout)


def same_settings(relay):
    """The same flags make the same session, whoever reads them."""
    infos = []
    for program in (OURS, AIRLOX):
        made = create(relay, program)
        lib.same(sorted(made),
                 ["expires_at_ms", "invites", "session_id"], "create --json")
        for reader in (OURS, AIRLOX):
            peer = Cli(f"i{len(infos)}", made["invites"]["sender"], reader)
            info = json.loads(peer.session("info", "--json").stdout)
            lib.same(info["session_id"], made["session_id"], "info: id")
            lib.same(info["expires_at_ms"], made["expires_at_ms"],
                     "info: expires")
            for gone in ("session_id", "expires_at_ms", "participants"):
                info.pop(gone)
            infos.append(info)
    for info in infos[1:]:
        lib.same(info, infos[0], "info, made and read by either")
    lib.same(infos[0]["job_limits"]["packages"], ["numpy"], "packages")


def manage(invites, program, tag):
    """Everything an owner does, by this program."""
    owner = Cli(tag + "-admin", invites["owner"], program)
    shown = json.loads(owner.session("invites", "--json").stdout)["invites"]
    lib.same(shown, {k: v for k, v in invites.items() if k in shown},
             "the same links again")
    lib.ok(lib.json_lines(owner.session("audit").stdout), "audit")
    lib.same(json.loads(owner.session("revoke", "observer",
                                      "--json").stdout),
             {"revoked": "observer"}, "revoke --json")
    for reader in (OURS, AIRLOX):
        late = Cli(tag + "late" + reader[-2:], invites["observer"], reader)
        lib.ok(late.run("items", status=None).returncode != 0,
               "a revoked link admits no one")
    closed = json.loads(owner.session("close", "--json").stdout)
    lib.same(list(closed), ["closed"], "close --json")
    for reader in (OURS, AIRLOX):
        late = Cli(tag + "end" + reader[-2:], invites["sender"], reader)
        lib.ok(late.run("items", status=None).returncode != 0,
               "a closed session is gone")


def main():
    relay = lib.Relay()
    where = lib.T + "/samples"
    samples = lib.make_samples(where)
    same_settings(relay)
    for program in (OURS, AIRLOX):
        tag = "by-" + os.path.basename(program)
        invites = create(relay, program)["invites"]
        exchange(invites, tag, samples, where,
                 senders=[Cli(tag + "-ours", invites["sender"], OURS),
                          Cli(tag + "-own", invites["owner"], OURS),
                          Cli(tag + "-theirs", invites["sender"]),
                          Sdk(tag + "-sdk", invites["sender"])],
                 readers=[Cli(tag + "-r-ours", invites["observer"], OURS),
                          Cli(tag + "-r-snd", invites["sender"], OURS),
                          Cli(tag + "-r-theirs", invites["observer"])])
        manage(invites, AIRLOX if program == OURS else OURS, tag)
    lib.same(relay.stop(), 0, "the relay ends with 0")


lib.run_main(main)
