#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: TLS without a proxy, beside plain TCP and a unix socket; a new
certificate on SIGHUP; sockets that a service manager hands over; another
user; streams that are told to come back."""
import os
import pwd
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                              # noqa: E402
from relay_peer import Party, Peer, Stream, raw, statuses  # noqa: E402

OK = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
CA, CERT, KEY = (lib.T + "/" + n for n in ("ca.pem", "cert.pem", "key.pem"))


def openssl(*words):
    done = subprocess.run(["openssl", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode:
        raise lib.Failed(f"openssl {words[0]}: {done.stderr[-300:]}")


def make_ca():
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-keyout", CA + ".key",
            "-out", CA, "-subj", "/CN=test CA", "-days", "2")


def make_cert(name):
    with open(lib.T + "/ext", "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", KEY, "-out", lib.T + "/csr", "-subj",
            f"/CN={name}")
    openssl("x509", "-req", "-in", lib.T + "/csr", "-CA", CA, "-CAkey",
            CA + ".key", "-CAcreateserial", "-out", CERT, "-days", "2",
            "-extfile", lib.T + "/ext")


def connect(port, **how):
    ctx = ssl.create_default_context(cafile=CA)
    for name, value in how.items():
        setattr(ctx, name, value)
    return ctx.wrap_socket(socket.create_connection(("127.0.0.1", port)),
                           server_hostname="localhost")


def subject(port):
    with connect(port) as s:
        return dict(x[0] for x in s.getpeercert()["subject"])["commonName"]


class TlsPeer(Peer):
    def __init__(self, relay, port, other):
        super().__init__(relay, other.token, other.sid)
        self.name = other.name
        import http.client
        self.conn = http.client.HTTPSConnection(
            "localhost", port, timeout=20,
            context=ssl.create_default_context(cafile=CA))


def handshakes(port):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with connect(port, maximum_version=version) as s:
            s.settimeout(20)
            s.sendall(OK * 3)
            got = b""
            while got.count(b'"ok"') < 3:
                got += s.recv(4096)
            lib.same(statuses(got), [200] * 3, f"{s.version()}, pipelined")
    lib.ok(b"200" not in raw(port, OK, 3), "no plain HTTP there")
    done = subprocess.run(["curl", "-s", "--cacert", CA,
                           f"https://localhost:{port}/v1/health"],
                          stdout=subprocess.PIPE)
    lib.same(done.stdout, b'{"status":"ok"}', "curl")


def traffic(relay, port):
    party = Party(relay, most=32 << 20)
    party.create()
    alice = TlsPeer(relay, port, party.join("sender", "alice"))
    bob = TlsPeer(relay, port, party.join("sender", "bob"))
    for n in (100, 60000, 9 << 20):
        id_, blob, answer = party.post(alice, n, kind="file", type_="zip")
        lib.same(answer.status, 201, f"{n} bytes up")
        lib.ok(bob.get(f"/items/{id_}/blob").body == blob,
               f"{n} bytes down")
    s = connect(port)
    s.settimeout(20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(f"GET /v1/sessions/{party.sid}/stream HTTP/1.1\r\nHost: x\r\n"
              f"Authorization: Bearer {bob.token}\r\n\r\n".encode())
    for _ in range(300):
        party.post(alice, 3000)
    file = s.makefile("rb")
    seqs = []
    while len(seqs) < 305:
        line = file.readline()
        if line.startswith(b"id: "):
            seqs.append(int(line[4:]))
    lib.same(seqs, list(range(305)), "a slow stream through TLS: all, once")
    party.end()
    return s, file


def client(port):
    env = dict(lib.peer_environ("olga"), SSL_CERT_FILE=CA)
    words = [lib.AIRLOXFS, "create", "--relay", f"https://localhost:{port}",
             "--json"]
    done = subprocess.run(words, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=30)
    lib.same(done.returncode, 0, f"our client, with its CA {done.stderr}")
    lib.ok(lib.json.loads(done.stdout)["invites"]["sender"].startswith(
        f"https://localhost:{port}/s/ax_"), "and its invites")
    done = subprocess.run(words, env=lib.peer_environ("olga"), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    lib.ok(done.returncode != 0, "and not without it")


def reload(relay, port):
    lib.same(subject(port), "first", "the first certificate")
    old = connect(port)
    make_cert("second")
    relay.child.send_signal(signal.SIGHUP)
    lib.wait_for(lambda: subject(port) == "second", "the second certificate")
    old.sendall(OK)
    lib.same(statuses(old.recv(4096)), [200], "old connections go on")
    with open(KEY, "w") as f:
        f.write("nonsense\n")
    relay.child.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    lib.same(subject(port), "second", "one that is no key changes nothing")
    with open(lib.T + "/relay.err") as f:
        lib.ok("the old certificate stays" in f.read(), "and is told")


def farewell(relay, sealed):
    party = Party(relay)
    party.create()
    stream = Stream(party.join("sender", "alice"))
    stream.next()
    lib.same(relay.stop(), 0, "SIGTERM")
    for s, what in ((stream.file, "plain"), (sealed[1], "TLS")):
        rest = s.read()
        lib.ok(b": the relay stops; come back\nretry: " in rest,
               f"a stream, {what}, is told to come back")
    party.end()


def refusals():
    def run(*flags):
        return subprocess.run([lib.BUILD + "/airlox-relay", "--ephemeral",
                               *flags], text=True, stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, timeout=20)
    for flags, want in (
            (("--listen", "tls:127.0.0.1:0"), "--tls-cert"),
            (("--tls-cert", CERT), "--tls-key"),
            (("--tls-cert", "/nowhere", "--tls-key", KEY), "certificate"),
            (("--tls-cert", CERT, "--tls-key", CA + ".key"), "key"),
            (("--user", "nobody-of-that-name"), "no user")):
        done = run(*flags)
        lib.ok(done.returncode == 64 and want in done.stderr
               and done.stderr.count("airlox-relay: ") <= 2,
               f"refused: {' '.join(flags)}")


def activation():
    """What systemd does: descriptors from 3 on."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(16)
    port, fd = s.getsockname()[1], s.fileno()
    child = subprocess.Popen(
        ["bash", "-c", f'[ {fd} = 3 ] || exec 3<&{fd}; '
         'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" --ephemeral',
         lib.BUILD + "/airlox-relay"], pass_fds=(fd,), text=True,
        stdout=subprocess.PIPE)
    lib.same(child.stdout.readline(), f"listening on http://127.0.0.1:{port}"
             "\n", "a socket that was handed over")
    lib.same(statuses(raw(port, OK, 1)), [200], "is served")
    child.send_signal(signal.SIGTERM)
    lib.same(child.wait(10), 0, "and it ends")
    s.close()


def another_user():
    if os.getuid() != 0:
        return
    where = lib.T + "/nobody"
    os.makedirs(where)
    os.chmod(lib.T, 0o711)
    nobody = pwd.getpwnam("nobody")
    os.chown(where, nobody.pw_uid, nobody.pw_gid)
    child = subprocess.Popen(
        [lib.BUILD + "/airlox-relay", "--data", where + "/d", "--listen",
         "127.0.0.1:0", "--user", "nobody"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = child.stdout.readline()
    if not line:
        why = child.stderr.read()
        lib.ok("Permission denied" in why, f"the path is not nobody's: {why}")
        child.wait(10)
        return
    with open(f"/proc/{child.pid}/status") as f:
        text = f.read()
    ids = lib.re.search(r"Uid:\s+(.*)", text)[1].split()
    lib.same(set(ids), {str(nobody.pw_uid)}, "runs as nobody")
    lib.ok("CapEff:\t0000000000000000" in text and "NoNewPrivs:\t1" in text,
           "without capabilities, for good")
    lib.same(os.stat(where + "/d/lock").st_uid, nobody.pw_uid, "its data")
    child.send_signal(signal.SIGTERM)
    lib.same(child.wait(10), 0, "and it ends")
    child.stderr.close()


def main():
    make_ca()
    make_cert("first")
    sock = lib.T + "/sock"
    relay = lib.Relay("--tls-cert", CERT, "--tls-key", KEY, "--listen",
                      f"127.0.0.1:0,tls:127.0.0.1:0,unix:{sock}")
    line = relay.child.stdout.readline()
    lib.ok(line.startswith("listening on https://127.0.0.1:"), line.strip())
    port = int(line.rsplit(":", 1)[1])
    lib.same(relay.child.stdout.readline(), f"listening on unix:{sock}\n",
             "a third place")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sock)
        s.sendall(OK)
        lib.same(statuses(s.recv(4096)), [200], "the unix socket")
    lib.same(Peer(relay).get("/v1/health").status, 200, "plain")
    handshakes(port)
    client(port)
    sealed = traffic(relay, port)
    reload(relay, port)
    farewell(relay, sealed)
    make_cert("third")
    refusals()
    activation()
    another_user()


lib.run_main(main)
