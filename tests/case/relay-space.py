#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: the disk of a relay: what ended gives its space back, small records
too; fsck says what is wrong and changes nothing; a copy of a directory in use
starts, or is refused with a sentence; expiry deletes."""
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                    # noqa: E402
from relay_jobs import Hall, labels           # noqa: E402
from relay_peer import Party, Peer, now_ms    # noqa: E402

DATA = lib.T + "/relay"


def used():
    """KiB on the disk."""
    return sum(os.stat(f"{where}/{n}").st_blocks
               for where, _, names in os.walk(DATA) for n in names) // 2


def fsck(where=DATA):
    done = subprocess.run([lib.BUILD + "/airlox-relay", "fsck", where],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout, done.stderr


def all_there(peer, kept, what):
    for id_, blob in kept.items():
        if peer.get(f"/items/{id_}/blob").body != blob:
            raise lib.Failed(f"{what}: {id_}")
    seqs = [e["seq"] for e in peer.events()]
    lib.same(seqs, list(range(len(seqs))), what)


def new_session(relay, **how):
    party = Party(relay, **how)
    party.create()
    return party, party.join("owner", "olga")


def fill(party, owner, n, size):
    return {id_: blob for id_, blob, a in
            (party.post(owner, size) for _ in range(n)) if a.status == 201}


def segments():
    return sorted(os.listdir(DATA + "/log"))


def some_jobs(relay):
    """One that is done, one that failed, one that runs."""
    hall = Hall(relay, mode="open")
    box = hall.runner("box", "small", approve=False)
    jobs = {hall.given(): "done"}
    hall.result(box, *jobs)
    jobs[hall.job(labels("none"))[0]] = "failed"
    jobs[hall.given()] = "running"
    box.post(f"/jobs/{list(jobs)[2]}/claim")
    return hall, box, jobs


def look_at_jobs(hall, box, jobs):
    """Which keep what they are, wherever their records have moved."""
    lib.same({j: hall.state(j)[0] for j in jobs}, jobs, "jobs as they were")
    row, = hall.olga.get("/runners").json["runners"]
    lib.ok(row["job"] == list(jobs)[2] and '"small"' in row["signed_join"],
           "and the runner, with its join")
    lib.same(box.get(f"/items/{row['job']}/blob").status, 200, "its blob")


def compaction(relay):
    stays, otto = new_session(relay)
    bob = stays.join("sender", "bob")
    hall, box, jobs = some_jobs(relay)
    kept = fill(stays, otto, 20, 700)
    gone = fill(stays, otto, 20, 700)
    big = stays.post(otto, 300000, kind="file", type_="zip")
    kept[big[0]] = big[1]
    for id_ in gone:
        bob.post(f"/items/{id_}/ack")
    lib.wait_for(lambda: otto.kinds().count("evicted") == 20, "evicted")
    for round_ in range(2):
        goes, owner = new_session(relay)
        posted = fill(goes, owner, 1700, 5200)
        lib.same(len(posted), 1700, "1700 small items")
        full = used()
        kept.update(fill(stays, otto, 5, 700))
        lib.same(owner.post("/close").status, 204, "closed")
        goes.end()

        def post_and_look():
            kept.update(fill(stays, otto, 1, 700))  # seals what is sparse
            return used() < full - 6000
        lib.wait_for(post_and_look, "space given back", 15)
        lib.ok(True, f"{full} KiB used before, {used()} after")
        all_there(bob, kept, "what stays is all there")
    audit = otto.get("/audit.jsonl").body
    look_at_jobs(hall, box, jobs)
    relay.stop(signal.SIGKILL)
    code, out, err = fsck()
    lib.ok(code == 0 and " 0 faults" in out, f"fsck: {out.strip()} {err}")
    relay.start()
    all_there(bob, kept, "after kill -9 too")
    look_at_jobs(hall, box, jobs)
    hall.end()
    lib.same(otto.get("/audit.jsonl").body, audit, "the same audit trail")
    for id_ in gone:
        lib.same(otto.get(f"/items/{id_}/blob").status, 410,
                 "what left has left") if id_ == min(gone) else None
    fresh = fill(stays, otto, 10, 700)
    all_there(bob, fresh, "and it goes on")
    kept.update(fresh)
    return stays, otto, bob, kept, big


def expiry(relay):
    short, owner = new_session(relay, expires=now_ms() + 2500)
    big = short.post(owner, 200000, kind="file", type_="zip")
    small = short.post(owner, 500)
    n = len(os.listdir(DATA + "/blobs"))
    relay.stop(signal.SIGKILL)
    time.sleep(2.6)
    relay.start()
    lib.same(owner.get("/events").status, 404, "expired while it was down")
    lib.wait_for(lambda: len(os.listdir(DATA + "/blobs")) == n - 1,
                 "its file goes")

    def on_disk(needle):
        for name in segments():
            with open(f"{DATA}/log/{name}", "rb") as f:
                if needle in f.read():
                    return True
        return False
    lib.wait_for(lambda: not on_disk(small[1]), "and its small blob")
    lib.ok(big[2].status == 201, "expiry deletes, also after a crash")
    short.end()


def copies(relay, stays, otto, kept):
    """cp -a of a directory in use, five times while posts go on."""
    other = lib.T + "/copy"
    verdicts = []
    for _ in range(5):
        child = subprocess.Popen(["cp", "-a", DATA, other])
        kept.update(fill(stays, otto, 40, 900))
        id_, blob, answer = stays.post(otto, 250000, kind="file",
                                       type_="zip")
        kept[id_] = blob
        child.wait(20)
        done = subprocess.Popen(
            [lib.BUILD + "/airlox-relay", "--data", other, "--listen",
             "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE)
        line = done.stdout.readline()
        if line:
            peer = Peer(relay, otto.token, otto.sid)
            peer.conn.port = int(line.rsplit(":", 1)[1])
            seqs = [e["seq"] for e in peer.events()]
            lib.ok(seqs == list(range(len(seqs))), "the copy starts")
            done.send_signal(signal.SIGTERM)
        why = done.communicate(timeout=20)[1]
        lib.ok(done.returncode == 0 or "damaged" in why, "or says why not")
        verdicts.append(done.returncode)
        shutil.rmtree(other)
    lib.ok(True, f"exit statuses of the copies: {verdicts}")


def what_is_wrong(relay, big):
    lib.ok(fsck()[0] == 11, "not while a relay runs on it")
    relay.stop()
    before = {n: os.stat(f"{DATA}/log/{n}").st_mtime_ns for n in segments()}
    lib.same(fsck()[0], 0, "nothing wrong")
    newest = f"{DATA}/log/{segments()[-1]}"
    size = os.path.getsize(newest)
    with open(newest, "ab") as f:
        f.write(secrets.token_bytes(300))
    open(DATA + "/blobs/0123456789abcdef", "w").close()
    code, out, err = fsck()
    lib.ok(code == 0 and "300 bytes" in err and "1 blobs" in err,
           "what the next start repairs is told")
    lib.same(os.path.getsize(newest), size + 300, "and is still there")
    os.truncate(newest, size)
    blobs = [f"{DATA}/blobs/{n}" for n in os.listdir(DATA + "/blobs")
             if n != "0123456789abcdef"]
    with open(blobs[0], "r+b") as f:
        f.seek(5000)
        byte = f.read(1)
        f.seek(5000)
        f.write(bytes([byte[0] ^ 1]))
    code, out, _ = fsck()
    lib.ok(code == 65 and "is not what was signed" in out, "a flipped bit")
    os.rename(blobs[0], lib.T + "/aside")
    code, out, _ = fsck()
    lib.ok(code == 65 and "is missing" in out, "a missing blob")
    lib.ok({n: os.stat(f"{DATA}/log/{n}").st_mtime_ns for n in before
            if n != segments()[-1]}.items() <= before.items(),
           "the log is as it was")
    relay.start()
    with open(lib.T + "/relay.err") as f:
        lib.ok("1 blobs are missing" in f.read(), "a start says so too")
    relay.stop()
    with open(f"{DATA}/log/{segments()[0]}", "r+b") as f:
        f.seek(60)
        byte = f.read(1)
        f.seek(60)
        f.write(bytes([byte[0] ^ 1]))
    code, out, _ = fsck()
    lib.ok(code == 65 and "damaged" in out, "a damaged record")
    for path in (lib.T + "/nowhere", lib.T):
        code, _, err = fsck(path)
        lib.ok(code != 0 and err.count("\n") == 1, f"no data: {err.strip()}")


def main():
    relay = lib.Relay("--runner-silent-s", "3600")
    stays, otto, bob, kept, big = compaction(relay)
    expiry(relay)
    copies(relay, stays, otto, kept)
    all_there(bob, kept, "all there at the end")
    what_is_wrong(relay, big)
    stays.end()


lib.run_main(main)
