#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fixtures for the broker's scenarios: a network of its own where names and
public addresses lead to servers of the test, a certificate authority, an
upstream that tells what it was sent, and the broker itself.

A scenario begins with `enter()`: it is run again in namespaces of its own, in
which whole ranges of public addresses are local without being any interface's,
and /etc/hosts is the test's.  So upstreams have real names, real ports and
addresses that the broker takes for public ones.
"""
import array
import atexit
import base64
import ctypes
import fcntl
import gzip
import http.client
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import lib

BOX = lib.BUILD + "/airlox-box"
ANY = ("93.184.0.0/16", "151.101.0.0/16")    # local, and no interface's
HOSTS = {
    "93.184.1.1": "api.test other.test cdn.test pass.test x.sub.test wrong.test",
    "93.184.1.2": "plain.test",
    "93.184.1.3": "files.test",
    "127.0.0.1": "loop.test",
    "169.254.169.254": "meta.test",
    "10.1.2.3": "private.test",
    "192.168.7.7": "own.test",
    "::ffff:10.0.0.1": "mapped.test",
    "64:ff9b::7f00:1": "nat64.test",
}


# --- a network of one's own ------------------------------------------------

def write_hosts():
    with open(lib.T + "/hosts", "w") as f:
        f.write("127.0.0.1 localhost\n::1 localhost\n")
        for address, names in HOSTS.items():
            f.write(f"{address} {names}\n")


def add_local_route(cidr):
    """As `ip route add local CIDR dev lo`."""
    address, bits = cidr.split("/")
    rtm = struct.pack("=BBBBBBBBI", socket.AF_INET, int(bits), 0, 0, 255, 3,
                      254, 2, 0)
    dst = struct.pack("=HH4s", 8, 1, socket.inet_aton(address))
    oif = struct.pack("=HHI", 8, 4, socket.if_nametoindex("lo"))
    body = rtm + dst + oif
    head = struct.pack("=IHHII", 16 + len(body), 24, 0x405, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.sendto(head + body, (0, 0))
        code = struct.unpack("=i", s.recv(4096)[16:20])[0]
    if code:
        raise lib.Failed(f"local route {cidr}: {os.strerror(-code)}")


def add_address(address):
    """One more of the machine's own, on lo."""
    ifa = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0,
                      socket.if_nametoindex("lo"))
    local = struct.pack("=HH4s", 8, 2, socket.inet_aton(address))
    body = ifa + local
    head = struct.pack("=IHHII", 16 + len(body), 20, 0x605, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.sendto(head + body, (0, 0))
        code = struct.unpack("=i", s.recv(4096)[16:20])[0]
    if code:
        raise lib.Failed(f"address {address}: {os.strerror(-code)}")


def enter():
    """Run this script again inside; inside, set the network up."""
    if os.environ.get("BROKER_INSIDE") != "1":
        write_hosts()
        os.environ["BROKER_INSIDE"] = "1"
        argv = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc",
                "--ro-bind", lib.T + "/hosts", "/etc/hosts", "--unshare-user",
                "--uid", "1000", "--gid", "1000", "--unshare-pid",
                "--unshare-net", "--cap-add", "ALL", "--die-with-parent",
                sys.executable, "-B", os.path.abspath(sys.argv[0])]
        if subprocess.run(argv[:argv.index("--die-with-parent")]
                          + ["true"]).returncode:
            lib.skip("bubblewrap cannot make a network here")
        os.execvp(argv[0], argv)
    for cidr in ANY:
        add_local_route(cidr)
    add_address("192.168.7.7")


def drop_caps():
    """In a child: it is to be an ordinary user's program."""
    clear_all = 4
    ctypes.CDLL(None).prctl(47, clear_all, 0, 0, 0)


# --- certificates ----------------------------------------------------------

CA, CERT, KEY = (lib.T + "/" + n for n in ("up-ca.pem", "up.pem", "up.key"))


def openssl(*words):
    done = subprocess.run(["openssl", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode:
        raise lib.Failed(f"openssl {words[0]}: {done.stderr[-300:]}")


def make_certs(names=None):
    """An authority that the broker will be told to trust, and a certificate
    for all upstreams but wrong.test."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", CA + ".key", "-out", CA,
            "-subj", "/CN=test CA", "-days", "2")
    names = names or [n for all_of in HOSTS.values() for n in all_of.split()
                      if n != "wrong.test"]
    with open(lib.T + "/ext", "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:127.0.0.2,"
                "DNS:*.sub.test," + ",".join("DNS:" + n for n in names) + "\n")
    openssl("req", *curve, "-keyout", KEY, "-out", lib.T + "/csr", "-subj",
            "/CN=upstream")
    openssl("x509", "-req", "-in", lib.T + "/csr", "-CA", CA, "-CAkey",
            CA + ".key", "-CAcreateserial", "-out", CERT, "-days", "2",
            "-extfile", lib.T + "/ext")


# --- an upstream -----------------------------------------------------------

class Reader:
    def __init__(self, sock):
        self.sock, self.buf = sock, b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        self.buf += data

    def until(self, mark):
        while mark not in self.buf:
            self.more()
        head, _, self.buf = self.buf.partition(mark)
        return head

    def exactly(self, n):
        while len(self.buf) < n:
            self.more()
        out, self.buf = self.buf[:n], self.buf[n:]
        return out


def read_request(r):
    lines = r.until(b"\r\n\r\n").split(b"\r\n")
    method, target, _ = lines[0].split(b" ")
    fields = [tuple(x.split(b": ", 1)) for x in lines[1:]]
    names = {k.lower(): v for k, v in fields}
    body = b""
    if b"transfer-encoding" in names:
        while True:
            size = int(r.until(b"\r\n"), 16)
            if size == 0:
                break
            body += r.exactly(size)
            r.exactly(2)
        r.until(b"\r\n")
    elif b"content-length" in names:
        body = r.exactly(int(names[b"content-length"]))
    return dict(method=method.decode(), target=target.decode("latin-1"),
                fields=[[k.decode("latin-1"), v.decode("latin-1")]
                        for k, v in fields],
                body=body.decode("latin-1"))


def chunks(*parts, trailer=b""):
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) \
        + b"0\r\n" + trailer + b"\r\n"


class Upstream:
    """Answers each request by what `answer` gives: bytes.  Without it, by the
    request itself as JSON.  Keeps what it saw."""

    def __init__(self, address="93.184.1.1", port=443, tls=True, alpn=None,
                 answer=None):
        self.seen, self.connections, self.answer = [], 0, answer
        self.raw = b""
        self.ctx = None
        if tls:
            self.ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.ctx.load_cert_chain(CERT, KEY)
            if alpn:
                self.ctx.set_alpn_protocols(alpn)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = socket.create_server((address, port), family=family,
                                         backlog=128)
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            s, _ = self.sock.accept()
            self.connections += 1
            threading.Thread(target=self.serve, args=(s,),
                             daemon=True).start()

    def serve(self, s):
        try:
            if self.ctx:
                s = self.ctx.wrap_socket(s, server_side=True)
            r = Reader(s)
            while True:
                req = read_request(r)
                self.seen.append(req)
                out = (self.answer or self.echo)(req)
                if out is None:
                    break
                for part in ([out] if isinstance(out, bytes) else out):
                    s.sendall(part)
        except (OSError, EOFError, ValueError):
            pass
        finally:
            try:
                s.unwrap()
            except (OSError, ValueError, AttributeError):
                pass
            s.close()

    @staticmethod
    def echo(req):
        body = json.dumps(req).encode()
        return (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body)) + body


def plain(body, extra=b""):
    return (b"HTTP/1.1 200 OK\r\n" + extra
            + b"Content-Length: %d\r\n\r\n" % len(body) + body)


# --- the broker ------------------------------------------------------------

class Broker:
    """The broker, with doors on loopback."""

    def __init__(self, policy, env=None, token=None, doors=("proxy",),
                 trust=None, expect="ready"):
        self.log = lib.T + f"/egress-{id(self)}.jsonl"
        ours, theirs = socket.socketpair(socket.AF_UNIX,
                                         socket.SOCK_SEQPACKET)
        self.control, self.ports = ours, {}
        text = os.memfd_create("policy")
        os.write(text, policy.encode())
        os.lseek(text, 0, os.SEEK_SET)
        egress = os.open(self.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND,
                         0o600)
        everything = dict(os.environ, SSL_CERT_FILE=trust or CA, **(env or {}))
        # bash puts them where the broker has them
        fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
               for fd in (theirs.fileno(), text, egress)]

        self.child = subprocess.Popen(
            ["bash", "-c", 'exec "$0" --broker 3<&{} 4<&{} 5>&{}'.format(*fds),
             BOX], env=everything, pass_fds=fds, stdin=subprocess.DEVNULL)
        atexit.register(self.end)
        for fd in fds + [text, egress]:
            os.close(fd)
        theirs.close()
        self.control.settimeout(20 * lib.SLOW)
        word, _, self.said = self.control.recv(16384).decode().partition("\n")
        lib.ok(word == expect, f"the broker says {expect}: "
               + (self.said if word == "fail" else ""))
        if word != "ready":
            return
        self.ca = lib.T + f"/ca-{id(self)}.pem"
        with open(self.ca, "w") as f:
            f.write(self.said)
        for kind in doors:
            self.open_door(kind)
        if token:
            self.tell("token " + token)

    def tell(self, words, fd=None):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                   array.array("i", [fd]))] if fd is not None else []
        self.control.sendmsg([words.encode()], rights)
        got = self.control.recv(16)
        if got != b"ok":
            raise lib.Failed(f"{words}: {got!r}")

    def open_door(self, kind):
        port = {"http": 80, "https": 443}.get(kind, 0)
        s = socket.create_server(("127.0.0.1", port), backlog=512)
        self.ports[kind] = s.getsockname()[1]
        self.tell("door " + kind, s.fileno())
        s.close()

    @property
    def proxy(self):
        return f"http://127.0.0.1:{self.ports['proxy']}"

    def lines(self):
        with open(self.log) as f:
            return [json.loads(line) for line in f]

    def last(self, event, **fields):
        """The newest line of this event with these fields."""
        def look():
            found = [x for x in self.lines() if x["decision"] == event
                     and all(x.get(k) == v for k, v in fields.items())]
            return found[-1] if found else None
        return lib.wait_for(look, f"a line {event} {fields}")

    def connect(self, kind="proxy"):
        return socket.create_connection(("127.0.0.1", self.ports[kind]),
                                        timeout=15 * lib.SLOW)

    def tunnel(self, host, port=443, sni=None, named=True, alpn=None,
               headers=""):
        """A TLS connection through CONNECT, or what CONNECT was told."""
        s = self.connect()
        s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n"
                  f"Host: {host}:{port}\r\n{headers}\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = s.recv(1)
            if not data:
                break
            head += data
        if b" 200 " not in head.split(b"\r\n")[0]:
            return head + rest_of(s)
        ctx = self.context(alpn)
        if not named:
            ctx.check_hostname = False
        return ctx.wrap_socket(s, server_hostname=(sni or host.strip("[]"))
                               if named else None)

    def context(self, alpn=None):
        ctx = ssl.create_default_context(cafile=self.ca)
        if alpn:
            ctx.set_alpn_protocols(alpn)
        return ctx

    def ask(self, host, target="/", method="GET", fields=(), body=None,
            port=443, sock=None, host_field=None):
        """One request through a tunnel: (status, fields, body)."""
        s = sock or self.tunnel(host, port)
        if isinstance(s, bytes):
            return parse_answer(s)
        name = host_field or (host if port == 443 else f"{host}:{port}")
        head = f"{method} {target} HTTP/1.1\r\nHost: {name}\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in fields)
        if body is not None:
            head += f"Content-Length: {len(body)}\r\n"
        s.sendall(head.encode("latin-1") + b"\r\n" + (body or b""))
        got = read_answer(s, method)
        if not sock:
            s.close()
        return got

    def end(self):
        if self.child.poll() is None:
            self.control.close()
            try:
                self.child.wait(10 * lib.SLOW)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        return self.child.returncode


def rest_of(s):
    data = b""
    try:
        while True:
            part = s.recv(65536)
            if not part:
                return data
            data += part
    except OSError:
        return data


def read_answer(s, method="GET"):
    a = http.client.HTTPResponse(s, method=method)
    try:
        a.begin()
        body = a.read()
    except (http.client.HTTPException, OSError) as e:
        return 0, [], repr(e).encode()
    return a.status, a.getheaders(), body


def parse_answer(data):
    head, _, body = data.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return (int(words[1]) if len(words) > 1 else 0), [], body


def gz(text):
    return gzip.compress(text)


def b64(text):
    return base64.b64encode(text.encode()).decode()


def poll_until(test, seconds=10):
    end = time.monotonic() + seconds * lib.SLOW
    while not test() and time.monotonic() < end:
        time.sleep(0.02)
    return test()
