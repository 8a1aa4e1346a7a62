#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 200
"""100 MB through the relay, up and down, beside nginx and Caddy."""
import hashlib
import secrets
import shutil
import subprocess

import bench
import lib
from relay_peer import Party
from servers import FREE, NGINX, start_caddy, start_nginx


def curl(*words):
    done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w",
                           "%{http_code} %{time_total}", "-H", "Expect:",
                           *words], text=True, stdout=subprocess.PIPE)
    status, took = done.stdout.split()
    if status not in ("200", "201"):
        raise lib.Failed(f"curl: {status}")
    return float(took)


def large(relay, party, alice, nginx, caddy):
    n = 100 << 20
    blob = secrets.token_bytes(1 << 20) * 100
    with open(nginx[2] + "/blob", "wb") as f:
        f.write(blob)
    url = f"http://127.0.0.1:{relay.port}/v1/sessions/{party.sid}/items"
    auth = ("-H", f"Authorization: Bearer {alice.token}")
    last = []

    def up():
        id_, _, data = party.item("alice", blob + secrets.token_bytes(28),
                                  kind="file", type_="zip")
        with open(lib.T + "/body", "wb") as f:
            f.write(data)
        last[:] = [id_]
        return curl(*auth, "--data-binary", f"@{lib.T}/body", url)

    def up_nginx():
        return curl("--data-binary", f"@{nginx[2]}/blob",
                    f"http://127.0.0.1:{nginx[1]}/put/")
    ours, theirs = (bench.median(x) for x in bench.in_turns(
        3, up, up_nginx))
    bench.row("100 MB blob up, hashed and durable", f"{n / ours / 1e9:.2f} "
              "GB/s", f"{n / theirs / 1e9:.2f} GB/s",
              "nginx into a file, no hash, no sync", theirs / ours,
              ">= 1.3x", "1.5x")
    sums = bench.median(n / bench.seconds(lambda: hashlib.sha256(blob))
                        for _ in range(3))
    bench.note(f"SHA-256 alone, on one core: {sums / 1e9:.2f} GB/s")
    others = [("nginx sendfile", nginx[1], ">= 1.1x", "1.3x")]
    if caddy:
        others.append(("caddy", caddy[1], "-", "-"))
    ours, *theirs = (bench.median(x) for x in bench.in_turns(
        7, lambda: curl(*auth, f"{url}/{last[0]}/blob"),
        *[lambda port=o[1]: curl(f"http://127.0.0.1:{port}/blob")
          for o in others]))
    for (name, _, goal, stretch), other in zip(others, theirs):
        bench.row("100 MB blob down", f"{n / ours / 1e9:.2f} GB/s",
                  f"{n / other / 1e9:.2f} GB/s", name, other / ours, goal,
                  stretch)


def main():
    if not shutil.which(NGINX) or not shutil.which("curl"):
        lib.skip("no nginx or no curl here")
    relay = lib.Relay(*FREE)
    party = Party(relay, most=200 << 20)
    party.create()
    large(relay, party, party.join("sender", "alice"), start_nginx(),
          start_caddy())
    party.end()


bench.main(main)
