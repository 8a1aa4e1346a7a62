# SPDX-License-Identifier: MIT
"""breakout.py in a sealed box, which has one way out more: its broker.  Run as
a box's program, with breakout.py beside it; box-breakout-test.py holds each
outcome against what stands here."""
import base64
import os
import re
import socket
import urllib.parse

import breakout
from breakout import GONE, probe

PROXY = urllib.parse.urlsplit(os.environ.get("HTTPS_PROXY", ""))
KEY = base64.b64encode(f"{PROXY.username}:{PROXY.password}".encode()).decode()

# What a box has and a job has not; the rest is as it is for a job.
OTHERWISE = {
    "root_holds": "bin dev etc home lib( lib32)?( lib64)?( libx32)? proc run"
                  " sbin tmp usr work",
    "etc_holds": "[a-z. -]*",
    "programs": "(?s).*", "users": "box nobody",
    "set_id_files": "(?s).*",	# nosuid, and no new privileges
    "writable_mounts": "/dev/shm /home/box /proc /tmp /work",
    "sockets_of_the_host": "tcp",	# its own doors
    "variables": "AIRLOX_OUT CURL_CA_BUNDLE .*",
    "work_holds": "(box-)?[a-z_. ]*",
}
THERE = ("/home", "/run", "/sbin", "/bin", "/usr/sbin", "/usr/local",
         "/usr/bin/env", "/usr/bin/sudo", "/usr/bin/su", "/usr/bin/bwrap",
         "/bin/sh", "/etc/ssl", "/usr/lib/python3/dist-packages")
for path in THERE:
    OTHERWISE["absent " + path] = "ok|ENOENT"


def word(f):
    """A status, or what an OSError is called."""
    try:
        return str(f())
    except (OSError, EOFError) as e:
        return breakout.word(e.errno) if getattr(e, "errno", None) else \
            type(e).__name__


def ask(text, port=3128):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(text.replace("KEY", "Proxy-Authorization: Basic " + KEY)
                  .encode("latin-1"))
        s.settimeout(10)
        return s, s.recv(4096)


def status(text, port=3128):
    return word(lambda: (re.match(rb"HTTP/1.1 (\d+)", ask(text, port)[1])
                         or [b"", b"none"])[1].decode())


NOT = "403|400|407|421|405|501|505|none"
ASKED = {
    "connect to a name": "CONNECT evil.test:443 HTTP/1.1\r\n"
                         "Host: evil.test:443\r\nKEY\r\n\r\n",
    "connect to an address": "CONNECT 93.184.1.1:443 HTTP/1.1\r\n"
                             "Host: 93.184.1.1:443\r\nKEY\r\n\r\n",
    "connect to the host's port": "CONNECT 127.0.0.1:TCP HTTP/1.1\r\n"
                                  "Host: 127.0.0.1:TCP\r\nKEY\r\n\r\n",
    "connect by another name of it": "CONNECT localhost:TCP HTTP/1.1\r\n"
                                     "Host: localhost:TCP\r\nKEY\r\n\r\n",
    "connect to a number": "CONNECT 2130706433:TCP HTTP/1.1\r\n"
                           "Host: 2130706433:TCP\r\nKEY\r\n\r\n",
    "connect to hex": "CONNECT 0x7f.1:TCP HTTP/1.1\r\nHost: 0x7f.1:TCP\r\n"
                      "KEY\r\n\r\n",
    "connect to mapped": "CONNECT [::ffff:127.0.0.1]:TCP HTTP/1.1\r\n"
                         "Host: [::ffff:127.0.0.1]:TCP\r\nKEY\r\n\r\n",
    "connect to nat64": "CONNECT [64:ff9b::7f00:1]:TCP HTTP/1.1\r\n"
                        "Host: [64:ff9b::7f00:1]:TCP\r\nKEY\r\n\r\n",
    "connect to metadata": "CONNECT 169.254.169.254:80 HTTP/1.1\r\n"
                           "Host: 169.254.169.254:80\r\nKEY\r\n\r\n",
    "plain to the host": "GET http://127.0.0.1:TCP/ HTTP/1.1\r\n"
                         "Host: 127.0.0.1:TCP\r\nKEY\r\n\r\n",
    "plain, host is another": "GET http://evil.test/ HTTP/1.1\r\n"
                              "Host: allowed.test\r\nKEY\r\n\r\n",
    "plain to an allowed host": "GET http://allowed.test/ HTTP/1.1\r\n"
                                "Host: allowed.test\r\nKEY\r\n\r\n",
    "no token": "CONNECT allowed.test:443 HTTP/1.1\r\n"
                "Host: allowed.test:443\r\n\r\n",
    "file url": "GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\nKEY\r\n\r\n",
    "userinfo": "GET http://allowed.test@evil.test/ HTTP/1.1\r\n"
                "Host: evil.test\r\nKEY\r\n\r\n",
    "two hosts": "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n"
                 "Host: allowed.test\r\nKEY\r\n\r\n",
    "upgrade": "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n"
               "Upgrade: websocket\r\nConnection: upgrade\r\nKEY\r\n\r\n",
    "nothing that is HTTP": "SSH-2.0-x\r\n\r\n",
    "of version 2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
for name, text in ASKED.items():
    def f(text=text):
        return status(text.replace("TCP", str(breakout.HOST["tcp"])))
    f.__name__ = name
    probe(NOT, "egress")(f)


@probe("403|none|421|400", "egress")
def port_80_with_another_host():
    return status("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 80)


@probe("403|none|ECONNRESET", "egress")
def port_443_without_tls():
    return status("GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 443)


@probe("first 403, then no 200", "egress")
def a_second_request_on_the_same_way():
    def f():
        with socket.create_connection(("127.0.0.1", 3128), 10) as s:
            one = ("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n"
                   f"Proxy-Authorization: Basic {KEY}\r\n\r\n")
            two = ASKED["connect to metadata"].replace(
                "KEY", "Proxy-Authorization: Basic " + KEY)
            s.sendall((one + two).encode())
            s.settimeout(5)
            got = b""
            try:
                while (part := s.recv(4096)):
                    got += part
            except OSError:
                pass
            return (f"first {got[9:12].decode()}, then "
                    + ("a" if b" 200 " in got else "no") + " 200")
    return word(f)


@probe("EACCES|EPERM|EROFS", "egress")
def write_the_account():
    return word(lambda: open("/run/airlox/egress", "a"))


@probe("EACCES|EPERM|EROFS|EBUSY", "egress")
def remove_the_account():
    return word(lambda: os.unlink("/run/airlox/egress"))


@probe("no", "egress")
def resolve():
    try:
        return str(socket.getaddrinfo("evil.test", 443))
    except socket.gaierror:
        return "no"


@probe("EADDRINUSE|EACCES|EPERM", "egress")
def take_its_door():
    def f():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 3128))
            return "bound"
    return word(f)


@probe(GONE, "egress")
def a_session_nobody_gave():
    return word(lambda: os.listdir("/session"))


@probe("nothing", "egress")
def the_brokers_key_of_its_authority():
    """Only certificates are in what the box trusts."""
    with open("/etc/ssl/certs/ca-certificates.crt") as f:
        return "nothing" if "PRIVATE" not in f.read() else "a key"


if __name__ == "__main__":
    breakout.main()
