#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: what an operator is given runs: the static file in an empty root as
nobody in particular, the units under systemd's own eyes, a socket that is kept
while the relay is replaced, manifests whose probes meet the relay."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                              # noqa: E402
from relay_peer import Party, Peer, Stream, raw, statuses  # noqa: E402

STATIC = lib.BUILD + "/static/airlox-relay"
OK = (b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
PODS = lib.TOP + "/deploy/kubernetes.yaml"


def read(path):
    with open(path) as f:
        return f.read()


def run(*words, **how):
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, **how)
    return done.returncode, done.stdout


# --- one static file -------------------------------------------------------

class Scratch(lib.Relay):
    """As deploy/Dockerfile makes it: nothing but the file and /data."""

    def start(self):
        os.makedirs(lib.T + "/data", exist_ok=True)
        where = f"0.0.0.0:{self.port}"
        self.child = subprocess.Popen(
            ["bwrap", "--unshare-user", "--uid", "65532", "--gid", "65532",
             "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL",
             "--clearenv", "--setenv", "AIRLOX_DATA", "/data/d", "--setenv",
             "AIRLOX_LISTEN", where, "--ro-bind", STATIC, "/airlox-relay",
             "--bind", lib.T + "/data", "/data", "--remount-ro", "/",
             "/airlox-relay"],
            stdout=subprocess.PIPE, text=True,
            stderr=open(lib.T + "/relay.err", "ab"))
        self.inner = self.child.pid
        line = self.child.stdout.readline()
        m = re.fullmatch(r"listening on http://0\.0\.0\.0:(\d+)\n", line)
        if not m:
            raise lib.Failed(f"its first line: {line!r} "
                             + read(lib.T + "/relay.err")[-300:])
        self.port = int(m[1])
        self.url = f"http://127.0.0.1:{self.port}"
        while kids := read(f"/proc/{self.inner}/task/{self.inner}/children"):
            self.inner = int(kids.split()[0])   # bwrap, its init, the relay

    def stop(self, number=signal.SIGTERM):
        if self.child:
            os.kill(self.inner, number)
        return super().stop(0) if self.child else None


def static():
    with open(STATIC, "rb") as f:
        head = f.read()
    lib.ok(b"/ld-linux" not in head[:4096] and
           run("readelf", "-d", STATIC)[1].count("NEEDED") == 0,
           "it needs no other file")
    lib.same(run(STATIC, "--version")[1],
             run(lib.BUILD + "/airlox-relay", "--version")[1], "its version")
    relay = Scratch()
    party = Party(relay, most=8 << 20)
    lib.same(party.create().status, 201, "in an empty root: a session")
    alice, bob = party.join("sender", "alice"), party.join("sender", "bob")
    kept = {}
    for n in (10, 5 << 20):
        id_, blob, answer = party.post(alice, n, kind="file", type_="zip")
        lib.same(answer.status, 201, f"{n} bytes")
        kept[id_] = blob
    relay.stop(signal.SIGKILL)
    relay.start()
    lib.ok(all(bob.get(f"/items/{i}/blob").body == b
               for i, b in kept.items()), "all there after kill -9")
    made = lib.run_cli(lib.AIRLOXFS, "olga", "create", "--json", "--relay",
                       relay.url)
    lib.ok(json.loads(made.stdout)["invites"]["owner"], "our client is served")
    party.end()
    lib.same(relay.stop(), 0, "and SIGTERM ends it")


def dockerfile():
    text = re.sub(r"\\\n\s*", " ", read(lib.TOP + "/deploy/Dockerfile"))
    steps = [line.split(None, 1) for line in text.splitlines()
             if line and line[0] != "#"]
    names = [s[0] for s in steps]
    lib.ok(set(names) <= {"FROM", "RUN", "COPY", "USER", "ENV", "VOLUME",
                          "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"}, "its words")
    last = names[len(names) - 1 - names[::-1].index("FROM"):]
    lib.ok(steps[len(names) - len(last)][1] == "scratch" and
           "USER" in last and "RUN" not in last, "from nothing, as a user")
    lib.ok("65532:65532" in dict(steps)["USER"] and
           json.loads(dict(steps)["ENTRYPOINT"]) == ["/airlox-relay"],
           "which is not root")
    wanted = set(re.search(r"recommends (.*?) *$", text, re.M)[1].split())
    known = set(re.search(r'^build="([^"]*)"', read(lib.TOP + "/.ci/deps"),
                          re.M)[1].split())
    lib.ok(known - {"fuse3"} <= wanted | {"ca-certificates"},
           f"what building needs is installed: {known - wanted}")
    return {w.split("=")[0]: w.split("=")[1]
            for n, rest in steps if n == "ENV" for w in rest.split()}


def known_variables(names, what):
    text = run(lib.BUILD + "/airlox-relay", "--help")[1]
    flags = re.findall(r"^  (--[a-z-]+)", text, re.M)
    known = {"AIRLOX" + f[1:].upper().replace("-", "_") for f in flags}
    lib.same(sorted(set(names) - known), [], f"{what}: known variables")


# --- pods ------------------------------------------------------------------

def load_yaml(path):
    """By whatever parser is here."""
    script = ("import sys, json, yaml; print(json.dumps(list("
              "yaml.safe_load_all(open(sys.argv[1])))))")
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", script, path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode == 0:
            return json.loads(done.stdout)
    raise lib.Failed(f"{path}: {done.stderr[-300:]}")


def pods(relay, docker_env):
    docs = {d["kind"]: d for d in load_yaml(PODS)}
    lib.same(sorted(docs), ["Ingress", "Service", "StatefulSet"], "documents")
    spec = docs["StatefulSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    pod = spec["template"]["spec"]
    box = pod["containers"][0]
    lib.ok(spec["selector"]["matchLabels"] == labels ==
           docs["Service"]["spec"]["selector"] and spec["replicas"] == 1 and
           spec["serviceName"] == docs["Service"]["metadata"]["name"],
           "the selectors meet the labels")
    lib.ok(pod["securityContext"]["runAsNonRoot"] and
           pod["securityContext"]["runAsUser"] == 65532 and
           box["securityContext"]["readOnlyRootFilesystem"] and
           box["securityContext"]["capabilities"]["drop"] == ["ALL"],
           "as the image has it, and no more")
    env = {e["name"]: e["value"] for e in box["env"]}
    known_variables(env, "kubernetes.yaml")
    ports = {p["name"]: p["containerPort"] for p in box["ports"]}
    lib.ok(env["AIRLOX_LISTEN"].endswith(f":{ports['http']}") and
           docs["Service"]["spec"]["ports"][0]["targetPort"] in ports and
           docker_env["AIRLOX_LISTEN"] == env["AIRLOX_LISTEN"], "one port")
    mounts = {m["name"]: m["mountPath"] for m in box["volumeMounts"]}
    claims = {c["metadata"]["name"] for c in spec["volumeClaimTemplates"]}
    lib.ok(set(mounts) == claims and
           env["AIRLOX_DATA"].startswith(mounts["data"] + "/") and
           mounts["data"] == docker_env["AIRLOX_DATA"],
           "the data is on the claim")
    for name in ("startupProbe", "readinessProbe"):
        ask = box[name]["httpGet"]
        lib.ok(ask["port"] in ports and
               Peer(relay).get(ask["path"]).status == 200, f"{name} answers")
    lib.ok(box["livenessProbe"]["tcpSocket"]["port"] in ports,
           "a full disk is no reason to kill")
    paths = [p["path"] for r in docs["Ingress"]["spec"]["rules"]
             for p in r["http"]["paths"]]
    lib.ok(paths == ["/v1"], "metrics are not for the world")


def settings(relay):
    """They start a relay, as they stand but for where."""
    env = {e["name"]: e["value"] for d in load_yaml(PODS)
           if d["kind"] == "StatefulSet"
           for e in d["spec"]["template"]["spec"]["containers"][0]["env"]}
    env.update(AIRLOX_LISTEN="127.0.0.1:0", AIRLOX_DATA=lib.T + "/pod")
    child = subprocess.Popen([lib.BUILD + "/airlox-relay"], env=env,
                             stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.DEVNULL)
    port = int(child.stdout.readline().rsplit(":", 1)[1])
    lib.same(statuses(raw(port, OK)), [200], "the pod's settings serve")
    child.terminate()
    lib.same(child.wait(20), 0, "and end")


def plain():
    """http between pods: not unless a participant says so, for that host."""
    relay = lib.Relay("--listen", "127.0.0.1:0,127.0.0.2:0")
    url = re.fullmatch(r"listening on (http://127\.0\.0\.2:\d+)\n",
                       relay.child.stdout.readline())[1]
    allow = ("--allow-plain-http", "127.0.0.9, 127.0.0.2")

    def cli(*words, status=0, **how):
        return lib.run_cli(lib.AIRLOXFS, "olga", *words, status=status, **how)
    create = ("create", "--json", "--relay", url)
    lib.ok("use https" in cli(*create, status=64).stderr, "not by itself")
    cli(*create, "--allow-plain-http", "127.0.0.9", status=64)
    made = cli(*create, *allow)
    lib.ok("no TLS to the relay" in made.stderr, "only when told, and told")
    invite = json.loads(made.stdout)["invites"]["sender"]
    lib.ok(invite.startswith(url + "/s/"), "the invite says where")
    lib.ok("use https" in cli("send", "text", "x", invite=invite,
                              status=65).stderr, "an invite allows nothing")
    cli("send", "text", *allow, "by flag", invite=invite)
    os.environ["AIRLOX_ALLOW_PLAIN_HTTP"] = "127.0.0.2"
    mount = lib.Mount("pod", invite)
    lib.wait_for(lambda: any("olga" in n or "sender" in n for n in
                             os.listdir(mount.path("in"))), "by variable")
    mount.end()
    del os.environ["AIRLOX_ALLOW_PLAIN_HTTP"]
    lib.same(relay.stop(), 0, "a quiet end")
    os.rename(lib.T + "/relay", lib.T + "/relay2")


def operating(relay):
    """docs/OPERATING.md names what there is."""
    text = read(lib.TOP + "/docs/OPERATING.md")
    known = "".join(run(*w, "--help")[1] for w in (
        (lib.BUILD + "/airlox-relay",), (lib.AIRLOXFS, "create"),
        (lib.AIRLOXFS, "audit")))
    flags = set(re.findall(r"--[a-z][a-z-]+", text)) - {
        "--now", "--system", "--isolation"}
    lib.same([f for f in sorted(flags) if f + " " not in known
              and f + "\n" not in known], [], f"{len(flags)} flags")
    metrics = Peer(relay).get("/metrics").body.decode()
    names = set(re.findall(r"airlox_[a-z_]+", text))
    lib.same([n for n in sorted(names) if "\n" + n not in metrics], [],
             f"{len(names)} metrics")
    files = set(re.findall(r"`((?:deploy|systemd)/\S+)`", text))
    lib.ok(len(files) >= 3 and all(os.path.exists(f"{lib.TOP}/{f}")
                                   for f in files), f"{len(files)} files")


# --- systemd ---------------------------------------------------------------

def units():
    if not shutil.which("systemd-analyze"):
        lib.ok(True, "no systemd-analyze here")
        return
    where = lib.T + "/units"
    os.makedirs(where)
    for name in ("airlox-relay.service", "airlox-relay.socket"):
        with open(f"{where}/{name}", "w") as f:
            f.write(read(f"{lib.TOP}/systemd/{name}").replace(
                "/usr/local/bin", lib.BUILD))
    code, said = run("systemd-analyze", "verify", "--man=no",
                     "--recursive-errors=no",
                     where + "/airlox-relay.service",
                     where + "/airlox-relay.socket")
    lib.same((code, said), (0, ""), "systemd-analyze verify")
    code, said = run("systemd-analyze", "security", "--offline=true",
                     "--threshold=20", "--no-pager",
                     where + "/airlox-relay.service")
    lib.same(code, 0, f"exposure: {said.strip().splitlines()[-1:]}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def activated():
    if not shutil.which("systemd-socket-activate"):
        lib.ok(True, "no systemd-socket-activate here")
        return
    port = free_port()
    child = subprocess.Popen(
        ["systemd-socket-activate", "-l", f"127.0.0.1:{port}",
         lib.BUILD + "/airlox-relay", "--ephemeral"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers():
        try:
            return statuses(raw(port, OK, 20)) == [200]
        except ConnectionRefusedError:
            return False
    lib.wait_for(answers, "systemd-socket-activate: the first connection "
                 "starts it, and is served", 20)
    lib.same(statuses(raw(port, OK, 20)), [200], "and the next one")
    child.terminate()
    lib.same(child.wait(20), 0, "and it ends")


class Kept(lib.Relay):
    """systemd's part: it holds the socket and hears READY=1."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notes.bind(lib.T + "/notify")
        self.notes.settimeout(20 * lib.SLOW)
        self.program = lib.BUILD + "/airlox-relay"
        super().__init__()

    def start(self):
        fd = self.sock.fileno()
        self.child = subprocess.Popen(
            ["bash", "-c", f'[ {fd} = 3 ] || exec 3<&{fd}; LISTEN_PID=$$ '
             'LISTEN_FDS=1 exec "$@"', "x", self.program, "--data",
             lib.T + "/relay"], pass_fds=(fd,), stdout=subprocess.DEVNULL,
            env={**os.environ, "NOTIFY_SOCKET": lib.T + "/notify"},
            stderr=open(lib.T + "/relay.err", "ab"))
        self.port = self.sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        lib.same(self.notes.recv(100), b"READY=1", "it says when it serves")

    def replace(self, program):
        self.stop()
        lib.same(self.notes.recv(100), b"STOPPING=1", "and when it stops")
        self.program = program
        time.sleep(0.3)
        self.start()


def upgrade():
    """The program is replaced under load: nobody is refused, nothing lost."""
    relay = Kept()
    party = Party(relay)
    party.create()
    alice, bob = party.join("sender", "alice"), party.join("sender", "bob")
    stream = Stream(bob)
    on, served, refused = threading.Event(), [], []

    def ask():
        while not on.is_set():
            try:
                served.append(statuses(raw(relay.port, OK, 20)) == [200])
            except ConnectionRefusedError as e:
                refused.append(e)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    kept = {}
    for program in (STATIC, lib.BUILD + "/airlox-relay"):
        for _ in range(10):
            id_, blob, answer = party.post(alice, 500)
            kept[id_] = blob
        relay.replace(program)
    rest = stream.file.read()
    lib.ok(b": the relay stops; come back\nretry: " in rest,
           "a stream was told to come back")
    stream.close()
    lib.ok(all(bob.get(f"/items/{i}/blob").body == b
               for i, b in kept.items()), "all that was acknowledged is there")
    time.sleep(0.2)
    on.set()
    for t in threads:
        t.join(30)
    lib.ok(not refused and served.count(False) <= 8 and len(served) > 50,
           f"{len(served)} connections through two upgrades, none refused, "
           f"{served.count(False)} cut short")
    party.end()
    lib.same(relay.stop(), 0, "a quiet end")


def main():
    if os.path.exists(STATIC):      # a sanitizer's build has none
        static()
    env = dockerfile()
    known_variables([n for n in env], "Dockerfile")
    relay = lib.Relay()
    pods(relay, env)
    operating(relay)
    lib.same(relay.stop(), 0, "a quiet end")
    os.rename(lib.T + "/relay", lib.T + "/relay0")
    settings(relay)
    plain()
    units()
    activated()
    if os.path.exists(STATIC):
        upgrade()


lib.run_main(main)
