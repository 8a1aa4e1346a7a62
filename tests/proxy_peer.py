# SPDX-License-Identifier: MIT
"""nginx and Caddy in front of a relay, with the files of deploy/."""
import atexit
import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess

import lib
from relay_peer import Peer

CA, CERT, KEY = (lib.T + "/" + n for n in ("ca.pem", "cert.pem", "key.pem"))
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_certs():
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True,
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *ec, "-keyout", CA + ".key", "-out", CA, "-subj",
            "/CN=test CA", "-days", "2")
    with open(lib.T + "/ext", "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("req", *ec, "-keyout", KEY, "-out", lib.T + "/csr", "-subj",
            "/CN=localhost")
    openssl("x509", "-req", "-in", lib.T + "/csr", "-CA", CA, "-CAkey",
            CA + ".key", "-CAcreateserial", "-out", CERT, "-days", "2",
            "-extfile", lib.T + "/ext")


def ends(child):
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def start(words, port, what):
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL,
                             stderr=open(lib.T + "/proxy.err", "ab"),
                             env={**os.environ, "HOME": lib.T,
                                  "XDG_DATA_HOME": lib.T + "/caddy",
                                  "XDG_CONFIG_HOME": lib.T + "/caddy"})
    atexit.register(ends, child)

    def up():
        if child.poll() is not None:
            with open(lib.T + "/proxy.err") as f:
                raise lib.Failed(f"{what}: {f.read()[-600:]}")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False
    lib.wait_for(up, f"{what} listens")
    return child


def nginx(name, http_block, port):
    where = f"{lib.T}/{name}"
    os.makedirs(where + "/tmp")
    temps = "".join(f"{k}_temp_path {where}/tmp/{k};\n" for k in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(where + "/nginx.conf", "w") as f:
        f.write(f"daemon off;\nmaster_process off;\npid {where}/pid;\n"
                f"error_log {where}/err;\nevents {{ worker_connections 512; }}"
                f"\nhttp {{\naccess_log off;\n{temps}{http_block}\n}}\n")
    return start([NGINX, "-e", where + "/err", "-c", where + "/nginx.conf"],
                 port, "nginx")


def deployed_nginx(relay, port, name="nginx"):
    with open(lib.TOP + "/deploy/nginx.conf") as f:
        text = f.read()
    for a, b in (("127.0.0.1:8440", f"127.0.0.1:{relay.port}"),
                 ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
                 ("relay.example;", "localhost;"),
                 ("/etc/ssl/relay.example.pem", CERT),
                 ("/etc/ssl/relay.example.key", KEY)):
        if a not in text:
            raise lib.Failed(f"deploy/nginx.conf has no {a}")
        text = text.replace(a, b)
    return nginx(name, text, port)


def deployed_caddy(relay, port, name="Caddyfile"):
    with open(lib.TOP + "/deploy/Caddyfile") as f:
        text = f.read()
    text = text.replace("127.0.0.1:8440", f"127.0.0.1:{relay.port}")
    text = re.sub(r"^relay.example \{", f"https://localhost:{port} {{\n"
                  f"\tbind 127.0.0.1\n\ttls {CERT} {KEY}", text, flags=re.M)
    with open(f"{lib.T}/{name}", "w") as f:
        f.write("{\n\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 1s\n}\n" + text)
    return start(["caddy", "run", "--adapter", "caddyfile", "--config",
                  f"{lib.T}/{name}"], port, "caddy")


class Through(Peer):
    """The same participant, through a proxy with TLS."""

    def __init__(self, other, port):
        super().__init__(other.relay, other.token, other.sid)
        self.name, self.proxy = getattr(other, "name", None), port
        self.conn = http.client.HTTPSConnection(
            "localhost", port, timeout=20 * lib.SLOW,
            context=ssl.create_default_context(cafile=CA))
