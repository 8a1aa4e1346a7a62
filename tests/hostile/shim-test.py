#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: the shim does to a connection what it says."""
import os
import socket
import subprocess
import sys
import threading
import time

SHIM = os.environ["TOP"] + "/tests/hostile/shim.py"
CTL = os.environ["T"] + "/shim"


def echo_server():
    s = socket.create_server(("127.0.0.1", 0))

    def serve(c):
        try:
            while data := c.recv(65536):
                c.sendall(data)
        except OSError:
            pass

    def accept():
        while True:
            c, _ = s.accept()
            threading.Thread(target=serve, args=(c,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return s.getsockname()[1]


def tell(*words):
    return subprocess.run([SHIM, "tell", CTL, *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def dial(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=5)
    s.settimeout(0.5)
    return s


def ask(s, data=b"x"):
    """The echo, or the name of what happened instead."""
    try:
        s.sendall(data)
        return s.recv(65536)
    except (OSError, socket.timeout) as e:
        return type(e).__name__


shim = subprocess.Popen([SHIM, str(echo_server()), CTL], text=True,
                        stdout=subprocess.PIPE)
try:
    port = int(shim.stdout.readline())
    a = dial(port)
    assert ask(a) == b"x"
    assert tell("hold") == "ok"
    assert ask(a, b"h") == "TimeoutError"
    tell("pass")
    assert a.recv(9) == b"h"
    tell("drop")
    assert ask(a) == "TimeoutError"
    b = dial(port)
    assert ask(b) == "TimeoutError"
    tell("pass")
    assert ask(a) == "TimeoutError" and ask(b) == "TimeoutError"
    c = dial(port)
    assert ask(c) == b"x"
    tell("reset")
    assert ask(c) in ("ConnectionResetError", "BrokenPipeError")
    d = dial(port)
    assert ask(d) == b"x"
    tell("refuse")
    assert ask(d) in ("ConnectionResetError", "BrokenPipeError")
    try:
        dial(port)
        sys.exit("refused nothing")
    except ConnectionRefusedError:
        pass
    tell("pass")
    e = dial(port)
    e.settimeout(5)
    tell("delay", "0.3")
    t = time.monotonic()
    assert ask(e) == b"x" and time.monotonic() - t > 0.5
    tell("buffer", "0.6")
    t = time.monotonic()
    e.sendall(b"1")
    time.sleep(0.2)
    e.sendall(b"2")
    assert e.recv(9) == b"12" and time.monotonic() - t > 0.5
    tell("cutreply")
    assert ask(dial(port)) == "ConnectionResetError"
    tell("cut", "10")
    f = dial(port)
    assert ask(f) == b"x"
    assert ask(f, b"0123456789") in ("ConnectionResetError",)
    assert tell("stat").startswith("connections ")
finally:
    shim.kill()
    shim.wait()
