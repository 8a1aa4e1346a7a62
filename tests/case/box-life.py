#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 150
"""Goal: the runs there are can be seen and ended from another command line;
whichever of their processes is killed, and when, nothing stays or reap clears
it; the record of a killed one is finished and says so; no credential is left.
KILLS=N kills so many."""
import base64
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import broker_peer as bp                              # noqa: E402

SECRET = "only-the-broker-knows-0815/x+y"
POLICY = """
allow:
  - api.test
credentials:
  - {host: api.test, scheme: bearer, from: env:REAL, env: API_KEY}
"""
KILLS = int(os.environ.get("KILLS") or (100 if os.environ.get("SOAK") else 12))
RUNS = lib.T + "/state/airlox-box/runs"
ASK = ("exec 3<>/dev/tcp/127.0.0.1/80; printf 'GET /p HTTP/1.1\\r\\nHost: "
       "evil.test\\r\\n\\r\\n' >&3; head -1 <&3; echo begun; sleep 77")


def environment():
    return dict(os.environ, REAL=SECRET, XDG_STATE_HOME=lib.T + "/state")


def start(command, *flags):
    return subprocess.Popen(
        [bp.BOX, "run", lib.T + "/p.yaml", *flags, "--", *command],
        env=environment(), preexec_fn=bp.drop_caps, cwd=lib.T + "/records",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)


def box(*words, status=0):
    done = subprocess.run([bp.BOX, *words], env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=bp.drop_caps, timeout=60 * lib.SLOW)
    if status is not None and done.returncode != status:
        raise lib.Failed(f"{words}: exit {done.returncode}: {done.stderr}")
    return done


def runs():
    return [json.loads(x) for x in box("boxes", "--json").stdout.splitlines()]


def begun(child):
    for line in child.stdout:
        if line == "begun\n":
            return
    raise lib.Failed("it did not begin: " + child.stderr.read())


def processes():
    """{pid: (parent, name)} of all but this test's own."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                text = f.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        rest = text[text.rindex(")") + 2:].split()
        if rest[0] not in "ZX" and int(pid) > 2:
            found[int(pid)] = (int(rest[1]), name)
    return found


def ours():
    return [n for _, n in processes().values()
            if n.startswith(("airlox", "sleep", "bwrap"))]


def seen_and_stopped():
    child = start(["bash", "-c", ASK])
    begun(child)
    run, = runs()
    lib.same([run[k] for k in ("state", "pid", "waits")],
             ["running", child.pid, ""], "a run is seen")
    table = box("boxes").stdout
    lib.ok(re.search(rf"^{run['run']} +running +\ds  bash -c exec", table,
                     re.M), "as a line, too")
    lib.same(os.stat(RUNS).st_mode & 0o777, 0o700, "by its user alone")
    box("stop", "20200101-000000-abcd", status=None)
    lib.ok("would clear" not in box("reap").stderr, "reap leaves it alone")
    box("stop", run["run"])
    lib.same(child.wait(20), 143, "stop ends it as a signal does")
    lib.same(os.listdir(RUNS), [], "nothing of it stays")
    shown = box("show", run["record"]).stdout
    lib.ok("reason=stopped" in shown and "host=evil.test" in shown,
           "its record is whole")
    lib.same(box("boxes").stdout, "no runs\n", "no run is shown")
    done = box("stop", run["run"], status=None)
    lib.ok(done.returncode and "no run" in done.stderr, "no run to stop")


def killed():
    child = start(["bash", "-c", ASK])
    begun(child)
    child.kill()
    child.wait()
    lib.wait_for(lambda: not ours(), "box and broker are gone", 15)
    run, = runs()
    lib.same(run["state"], "left", "a killed one is seen")
    done = box("stop", run["run"], status=None)
    lib.ok("reap" in done.stderr and done.returncode, "stop says what to do")
    lib.ok("would clear run " + run["run"] in box("reap").stderr,
           "reap says what it would do")
    lib.ok(os.path.isdir(RUNS + "/" + run["run"]), "and does not")
    # the account's last lines, a torn part: what no CLI has seen to
    with open(f"{RUNS}/{run['run']}/record", "a") as f:
        f.write("0123 {\"torn")
    with open(f"{RUNS}/{run['run']}/egress", "a") as f:
        f.write('{"decision":"denied","host":"late.test"}\n{"half')
    box("reap", "--yes")
    lib.same(os.listdir(RUNS), [], "reap --yes clears it")
    box("verify", run["record"])
    shown = box("show", run["record"]).stdout
    for word in ("begun", "host=evil.test", "host=late.test",
                 "this record is incomplete", "end  exit=137"):
        lib.ok(word in shown, "its record has " + word)
    lib.same(shown.count("host=evil.test"), 1, "once")


def broker_killed():
    child = start(["bash", "-c", ASK])
    begun(child)
    broker, = [p for p, (_, n) in processes().items() if n == "airlox-broker"]
    os.kill(broker, signal.SIGKILL)
    lib.same(child.wait(20), 137, "without its broker a box is stopped")
    lib.ok("broker has ended" in child.stderr.read(), "which is said")


def not_written():
    where = lib.T + "/later/r.html"
    child = start(["true"], "--record", where)
    lib.ok("reap --yes tries" in child.communicate()[1], "no directory")
    lib.ok("is kept" in box("reap", "--yes", status=None).stderr,
           "a record that cannot be written is kept")
    os.mkdir(lib.T + "/later")
    box("reap", "--yes")
    lib.ok("incomplete" not in box("show", where).stdout,
           "and whole when it can be")
    child = start(["sleep", "77"], "--no-record")
    lib.wait_for(lambda: "sleep" in ours(), "it sleeps")
    child.kill()
    child.communicate()
    box("reap", "--yes")
    lib.same(os.listdir(RUNS), [], "one without a record is cleared")


def kill_one(i, rng, tally):
    """One run, and after a while one of its processes is killed."""
    child = start(["bash", "-c", "while :; do echo $API_KEY; sleep .01; done"],
                  *(["--no-record"] if i % 5 == 4 else []))
    reader = threading.Thread(target=child.communicate)
    reader.start()
    time.sleep(rng.random() * 0.7 * lib.SLOW)
    family = [child.pid]
    all_of = processes()
    for pid in sorted(all_of):
        if all_of[pid][0] in family and pid not in family:
            family.append(pid)
    victim = child.pid if i % 2 else rng.choice(family[:4])
    word = all_of.get(victim, (0, "gone"))[1]
    tally.append(word)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    time.sleep(0.05)
    child.terminate()
    try:
        child.wait(30 * lib.SLOW)
    except subprocess.TimeoutExpired:
        raise lib.Failed(f"{word} killed: the command line stays: "
                         f"{processes()}")
    reader.join()


def kill_many():
    seed = int(os.environ.get("SEED") or random.randrange(1 << 30))
    print("SEED", seed)
    tally = []
    for at in range(0, KILLS, 4):
        batch = [threading.Thread(target=kill_one, args=(
            i, random.Random(seed + i), tally))
            for i in range(at, min(at + 4, KILLS))]
        for t in batch:
            t.start()
        for t in batch:
            t.join()
    lib.wait_for(lambda: not ours(), "no process stays", 20)
    lib.ok(True, f"{KILLS} kills: {sorted(tally)}")
    box("reap", "--yes")
    lib.same([n for n in os.listdir(RUNS) if n[0] != "."], [],
             "no run is left")
    lib.same([n for n in os.listdir(os.environ["TMPDIR"]) if "airlox" in n],
             [], "no directory is left")
    for name in os.listdir(lib.T + "/records"):
        box("verify", f"{lib.T}/records/{name}")
    lib.ok(len(os.listdir(lib.T + "/records")) > 2, "each record is signed")


def no_secret():
    raw = SECRET.encode()
    needles = (raw, base64.b64encode(raw)[:-4], raw.hex().encode(),
               raw.replace(b"/", b"%2F").replace(b"+", b"%2B"))
    count = 0
    for top in (lib.T, os.environ["TMPDIR"]):
        for where, _, names in os.walk(top):
            for name in names:
                with open(os.path.join(where, name), "rb") as f:
                    text = f.read()
                count += 1
                if any(n in text for n in needles):
                    raise lib.Failed(f"a credential in {where}/{name}")
    lib.ok(count > 5, f"no credential in {count} files")


def main():
    bp.enter()
    os.mkdir(lib.T + "/records")
    with open(lib.T + "/p.yaml", "w") as f:
        f.write(POLICY)
    seen_and_stopped()
    killed()
    broker_killed()
    not_written()
    kill_many()
    no_secret()


lib.run_main(main)
