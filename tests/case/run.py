#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: a job from the command line: its output while it runs, its exit code,
its files; an answer that was lost makes no second job; nobody is taken for a
runner that has his name."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import zipfile

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib  # noqa: E402

OURS = lib.AIRLOXFS
RUNNER = lib.BUILD + "/airlox-runner"


class Loser:
    """A network that loses the answer to the first post of a job, after the
    relay has it."""

    def __init__(self, port):
        self.port, self.lost = port, 0
        self.door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            conn, _ = self.door.accept()
            threading.Thread(target=self.carry, args=(conn,),
                             daemon=True).start()

    def carry(self, conn):
        relay = socket.create_connection(("127.0.0.1", self.port))
        seen = {"job": False}
        threading.Thread(target=self.answers, args=(conn, relay, seen),
                         daemon=True).start()
        while data := recv(conn):
            if b"/jobs HTTP/1.1\r\n" in data and not self.lost:
                seen["job"] = True
            relay.sendall(data)
        close(relay)

    def answers(self, conn, relay, seen):
        while data := recv(relay):
            if seen["job"] and b" 201 " in data:
                self.lost += 1
                break
            conn.sendall(data)
        close(conn)
        close(relay)


def recv(s):
    try:
        return s.recv(65536)
    except OSError:
        return b""


def close(s):
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Box:
    """Our runner."""

    def __init__(self, name, invite, *flags):
        self.child = subprocess.Popen(
            [RUNNER, "join", "--name", name, *flags, "-"],
            env=lib.peer_environ(name), stdin=subprocess.PIPE, text=True,
            stdout=open(f"{lib.T}/{name}.log", "wb"),
            stderr=subprocess.STDOUT)
        self.child.stdin.write(invite + "\n")
        self.child.stdin.close()
        lib.atexit.register(self.end)

    def end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            self.child.wait(30)


def ours(name, invite, *words, **kw):
    return lib.run_cli(OURS, name, *words, invite=invite, **kw)


def program(text):
    path = lib.T + "/job.py"
    with open(path, "w") as f:
        f.write(text)
    return path


def listed(invites):
    done = ours("olga", invites["owner"], "runners", "--json")
    return json.loads(done.stdout)["runners"]


def profile(relay):
    """What host-runner stands for, and what a flag beside it changes."""
    done = ours("host", None, "create", "--relay", relay.url, "--json",
                "--profile", "host-runner", "--job-memory", "256")
    made = json.loads(done.stdout)
    info = json.loads(ours("host", made["invites"]["owner"], "info",
                           "--json").stdout)
    limits = info["job_limits"]
    lib.same((info["expires_at_ms"], info["max_item_bytes"] >> 20,
              limits["timeout_s"], limits["memory_mb"],
              limits["approve_runners"]), (None, 100, 1800, 256, True),
             "create --profile host-runner")
    said = ours("host", None, "create", "--relay", relay.url, "--profile",
                "host-runner").stdout
    lib.ok("1800 s and 4096 MB" in said and "need your approval" in said,
           "and it prints the limits")
    ours("host", None, "create", "--relay", relay.url, "--profile", "x",
         status=64)


def names(invites):
    """Approving hits the key that was meant."""
    box = Box("box", invites["runner"], "--labels", "gpu")
    lib.wait_for(lambda: [r for r in listed(invites) if r["online"]], "box",
                 60)
    twin = lib.Mount("twin", invites["runner"], "--name", "box")
    lib.wait_for(lambda: len(listed(invites)) == 2, "a second one", 20)
    said = ours("olga", invites["owner"], "approve", "box", status=76).stderr
    lib.ok("key" in said, "one of two is not chosen by the name of both")
    key = next(r["participant_pub"] for r in listed(invites)
               if r["labels"] == ["gpu"])
    ours("olga", invites["owner"], "approve", key)
    lib.same(sorted((r["participant_pub"] == key, r["approved"])
                    for r in listed(invites)),
             [(False, False), (True, True)], "by its key it is")
    ours("sam", invites["sender"], "approve", key, status=77)
    lib.same(twin.end(), 0, "the twin goes")
    return box, key


def lost_answer(relay, invites, key):
    """J7: one job, one run, one result."""
    loser = Loser(relay.port)
    through = invites["sender"].replace(relay.url, loser.url)
    done = ours("lou", through, "run", "--json", program("print('once')\n"))
    got = json.loads(done.stdout)
    lib.same((got["stdout"], got["runner"], loser.lost), ("once\n", key, 1),
             "its answer was lost, its result was not")
    kinds = [i["kind"] for i in lib.json_lines(
        ours("lou", through, "items", "--json").stdout)]
    lib.same((kinds.count("job"), kinds.count("result")), (1, 1),
             "one job, one result")


def live(invites):
    """Printed while it runs: this job ends only when it is cancelled."""
    env = dict(lib.peer_environ("sam"), AIRLOX_INVITE=invites["sender"])
    child = subprocess.Popen(
        [OURS, "run", program("import sys, time\nprint('here', flush=True)\n"
                              "print('there', file=sys.stderr, flush=True)\n"
                              "time.sleep(80)\n")],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lib.atexit.register(child.kill)
    said = child.stderr.readline()
    job = said.split()[-1]
    lib.same(child.stdout.readline(), "here\n", "stdout, as it runs")
    lib.same(child.stderr.readline(), "there\n", "and stderr")
    done = ours("sam", invites["sender"], "result", "--", job, status=75)
    lib.ok("running" in done.stderr, "it runs: no result yet")
    ours("sue", invites["sender"], "cancel", "--", job, status=77)
    ours("olga", invites["owner"], "cancel", "--", job)
    out, err = child.communicate(timeout=60)
    lib.same((child.returncode, out), (1, ""), "cancelled, nothing twice")
    lib.ok("cancelled on box" in err, "and it says so")


def ends(invites):
    sam = invites["sender"]
    for text, status in (("raise SystemExit(7)", 7), ("print(1)", 0),
                         ("import os; os.kill(os.getpid(), 9)", None)):
        done = ours("sam", sam, "run", program(text), status=status)
        lib.ok(status is not None or done.returncode in (1, 137),
               f"{text}: exit {done.returncode}")
    done = ours("sam", sam, "run", "--timeout", "1s",
                program("while True: pass"), status=1)
    lib.ok("timed_out" in done.stderr, "too long")
    done = ours("sam", sam, "run", "--label", "tpu", program("1"), status=75)
    done = ours("sam", sam, "run", "--runner", "bix", program("1"), status=69)
    path = program("print(open('a/b.txt').read(), open('job.dat').read())")
    tree, data = lib.T + "/tree.zip", lib.T + "/job.dat"
    with zipfile.ZipFile(tree, "w") as z:
        z.writestr("a/b.txt", "zipped")
    with open(data, "w") as f:
        f.write("plain")
    done = ours("sam", sam, "run", "--no-wait", "--input", tree, "--input",
                data, path)
    job = done.stdout.strip()
    done = ours("sam", sam, "result", "--wait", "60s", "--", job)
    lib.same(done.stdout, "zipped plain\n", "inputs; the result, later")
    ours("sam", sam, "run", path, "--input", path, status=73)
    ours("sam", sam, "result", "A" * 22, status=69)


def main():
    checked = subprocess.run([RUNNER, "check"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    if checked.returncode:
        print(checked.stdout)
        lib.skip("no sandbox here")
    relay = lib.Relay()
    profile(relay)
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print("
                              "'python%d.%d' % sys.version_info[:2])"],
                             stdout=subprocess.PIPE, text=True).stdout.strip()
    made = ours("olga", None, "create", "--relay", relay.url, "--json",
                "--execute", "--runtime", version, "--job-timeout", "90s")
    invites = json.loads(made.stdout)["invites"]
    box, key = names(invites)
    lost_answer(relay, invites, key)
    live(invites)
    ends(invites)
    box.end()
    lib.same(relay.stop(), 0, "the relay ends with 0")


lib.run_main(main)
