#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: each limit of the relay: a flag, a variable, a line of --help and of
/v1/limits, and an answer that says when to come back; and what an operator
sees: metrics, health, the access log."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                    # noqa: E402
from relay_peer import Party, Peer, Stream    # noqa: E402

FLAGS = {
    "--max-address-connections": 900, "--max-address-requests": 90000,
    "--max-sessions-hour": 3, "--max-items-minute": 20,
    "--max-streams": 5, "--max-streams-each": 2, "--max-participants": 4,
    "--max-transfer-bytes": 100000, "--max-items": 30,
    "--max-item-bytes": 1 << 20, "--max-session-bytes": 200000,
    "--min-free-bytes": 4096,
}
MORE = ("--no-never", "--max-ttl", "7200", "--trusted-proxies",
        "127.0.0.0/8", "--access-log", lib.T + "/access")


def later(answer, seconds, what):
    lib.same((answer.status, answer.error), (429, "rate_limited"), what)
    wait = int(answer.headers["Retry-After"])
    lib.ok(1 <= wait <= seconds, f"{what}: come back in {wait} s")


def said_as_flag_and_variable():
    text = subprocess.run([lib.BUILD + "/airlox-relay", "--help"], text=True,
                          stdout=subprocess.PIPE).stdout
    for flag in (*FLAGS, "--min-free-bytes", "--max-ttl", "--no-never",
                 "--trusted-proxies", "--max-sessions"):
        lib.ok(f"\n  {flag}" in text, f"--help: {flag}")
        name = "AIRLOX" + flag[1:].upper().replace("-", "_")
        done = subprocess.run(
            [lib.BUILD + "/airlox-relay", "--ephemeral", "--listen", "x"],
            env={**os.environ, name: "99999999999999999999"}, text=True,
            stderr=subprocess.PIPE)
        want = "listen" if flag == "--no-never" else flag
        lib.ok(done.returncode == 64 and want in done.stderr,
               f"{name} is read")


def sessions(relay):
    parties = [Party(relay) for _ in range(4)]
    lib.same([p.create().status for p in parties[:3]], [201] * 3,
             "three sessions from one address")
    later(parties[3].create(), 3600, "a fourth")
    lib.same(parties[0].create().status, 200, "an old one again is none")
    answer = Peer(relay).post("/v1/sessions", parties[3].manifest,
                              X_Forwarded_For="6.6.6.6, 192.0.2.7")
    lib.same(answer.status, 201, "from another, behind a trusted proxy")
    more = [Party(relay) for _ in range(3)]
    answers = [Peer(relay).post("/v1/sessions", p.manifest,
                                X_Forwarded_For=spoof)
               for p, spoof in zip(more, (
                   "1.1.1.1, 192.0.2.7", "2.2.2.2,192.0.2.7:99, 127.0.0.9",
                   "9.9.9.9, x, 192.0.2.7"))]
    lib.same([a.status for a in answers[:2]], [201] * 2, "and two more")
    later(answers[2], 3600, "only the last one counts")
    endless = Party(relay, expires="-")
    answer = Peer(relay).post("/v1/sessions", endless.manifest,
                              X_Forwarded_For="192.0.2.8")
    lib.same((answer.status, answer.error), (400, "policy"), "no never")
    for p in (*parties[1:], *more, endless):
        p.end()
    return parties[0]


def items(party, alice):
    answers = [party.post(alice, 10)[2] for _ in range(21)]
    lib.same([a.status for a in answers[:20]], [201] * 20, "20 at once")
    later(answers[20], 4, "the 21st")
    time.sleep(3.1)
    lib.same(party.post(alice, 10)[2].status, 201, "one more after 3 s")


def transfer(party, bob, eve):
    id_, _, answer = party.post(bob, 60000)
    lib.same(answer.status, 201, "60 kB in")
    later(party.post(bob, 60000)[2], 86400, "another 60 kB")
    later(eve.get(f"/items/{id_}/blob"), 86400, "60 kB out")


def streams(party, peers):
    held = [Stream(p) for p in peers[:2] for _ in range(2)]
    later(peers[0].get("/stream"), 30, "a third stream of one participant")
    held.append(Stream(peers[2]))
    later(peers[2].get("/stream"), 30, "a sixth in all")
    held.pop(0).close()
    lib.wait_for(lambda: has_room(peers[0]), "room again")
    for s in held:
        s.close()


def has_room(peer):
    s = Stream(peer)
    s.close()
    return b" 200 " in s.head


def participants(party):
    peer = Peer(party.relay, None, party.sid)
    answer = peer.post("/participants", party.join_text("sender", "fifth"))
    lib.same((answer.status, answer.error), (409, "conflict"),
             "a fifth participant")


def operator(relay, party, alice):
    answer = Peer(relay).get("/metrics")
    lib.same(answer.status, 200, "metrics")
    text = answer.body.decode()
    values = {line.split()[0]: float(line.split()[1])
              for line in text.splitlines() if line[0] != "#"}
    lib.same((values["airlox_sessions"], values["airlox_joins_total"]),
             (6, 4), "sessions and joins")
    lib.ok(values["airlox_items_total"] == 22
           and values["airlox_limited_total"] > 5
           and values["airlox_disk_free_bytes"] > 0
           and values["airlox_can_write"] == 1, "and the others")
    lib.same(text.count("# HELP"), text.count("# TYPE"), "each explained")
    lib.same(Peer(relay).get("/metrics", X_Forwarded_For="192.0.2.1").status,
             404, "none for who comes through a proxy")
    answer = Peer(relay).ask("DELETE", "/v1/health")
    lib.same((answer.status, answer.headers["Allow"]), (405, "GET"),
             "405 names the method")
    answer = Peer(relay).ask("DELETE",
                             f"/v1/sessions/{party.sid}/items/x/blob")
    lib.same(answer.headers.get("Allow"), "GET, PUT", "or both")
    time.sleep(1.2)
    with open(lib.T + "/access") as f:
        lines = f.read()
    lib.ok("POST /v1/sessions/{sid}/items 201 " in lines,
           "an access log without sessions")
    lib.ok("192.0.2" not in lines and "127.0.0.1" not in lines
           and party.sid not in lines and alice.token not in lines,
           "and without addresses")


def addresses():
    relay = lib.Relay("--access-log", lib.T + "/access2", "--log-addresses",
                      "--min-free-bytes", str(1 << 50))
    lib.same(Peer(relay).get("/v1/health").status, 503,
             "health: it cannot take anything")
    party = Party(relay)
    answer = party.create()
    lib.same((answer.status, answer.error), (507, "disk_full"),
             "below the watermark: 507")
    os.rename(lib.T + "/access2", lib.T + "/old")
    time.sleep(1.2)
    relay.child.send_signal(1)
    time.sleep(1.2)
    Peer(relay).get("/v1/health")
    lib.same(relay.stop(), 0, "a quiet end")
    with open(lib.T + "/old") as f, open(lib.T + "/access2") as g:
        lib.ok("GET /v1/health 503" in f.read() and
               g.read().endswith(" 127.0.0.1\n"),
               "an address when asked, a new file after SIGHUP")
    party.end()


def main():
    said_as_flag_and_variable()
    relay = lib.Relay(*MORE, *[str(w) for kv in FLAGS.items() for w in kv])
    limits = Peer(relay).get("/v1/limits").json
    for name, flag in (("sessions_hour", "--max-sessions-hour"),
                       ("items_minute", "--max-items-minute"),
                       ("address_connections", "--max-address-connections"),
                       ("address_requests_minute",
                        "--max-address-requests"),
                       ("streams", "--max-streams"),
                       ("streams_each", "--max-streams-each"),
                       ("transfer_day_bytes", "--max-transfer-bytes"),
                       ("participants", "--max-participants"),
                       ("items", "--max-items"),
                       ("item_bytes", "--max-item-bytes"),
                       ("session_bytes", "--max-session-bytes"),
                       ("min_free_bytes", "--min-free-bytes")):
        lib.same(limits[name], FLAGS[flag], f"/v1/limits: {name}")
    lib.same((limits["never"], limits["ttl_ms"]), (False, 7200000),
             "never, ttl")
    party = sessions(relay)
    alice = party.join("sender", "alice")
    bob = party.join("sender", "bob")
    eve = party.join("observer", "eve")
    party.join("owner", "olga")
    participants(party)
    items(party, alice)
    transfer(party, bob, eve)
    streams(party, (alice, bob, eve))
    operator(relay, party, alice)
    party.end()
    lib.same(relay.stop(), 0, "a quiet end")
    os.rename(lib.T + "/relay", lib.T + "/relay1")
    addresses()


lib.run_main(main)
