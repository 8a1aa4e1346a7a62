#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The published SDK, in a process of its own; the invite is its first line
of standard input, later lines are orders.  Answers are one a line.

    sdk.py send     `file DIR`: send_file of each in it, seconds it took
                    `text N`: N texts, one each 20 ms; when each left
    sdk.py stream   `texts N`: when each of N texts had come
    sdk.py jobs     the published runner too, whose invite follows the
                    other on the first line; `jobs N`: N times print(1),
                    seconds each took, asking every 10 ms

Times are CLOCK_MONOTONIC's, which all processes share.
"""
import os
import signal
import sys
import time

import client  # noqa: F401  goes on in the environment that has the SDK
import lib
from airlox import Session


def send_files(session, where):
    paths = [f"{where}/{n}" for n in sorted(os.listdir(where))]
    began = time.monotonic()
    for path in paths:
        session.send_file(path)
    print(time.monotonic() - began, flush=True)


def send_texts(session, count):
    for i in range(count):
        began = time.monotonic()
        session.send_text(f"text {i}")
        print(began, flush=True)
        time.sleep(0.02)


def start_runner(session, invite):
    from peer_runner import Runner
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))   # ends it as well
    Runner("theirs", invite)
    lib.wait_for(lambda: [r for r in session.runners() if r.idle],
                 "the published runner", 60)


def run_jobs(session, count):
    for _ in range(count):
        began = time.monotonic()
        result = session.run_python("print(1)\n").wait(60, poll=0.01)
        if result.stdout != "1\n":
            raise lib.Failed(f"the job: {result}")
        print(time.monotonic() - began, flush=True)


def watch(session):
    """The items as they come, as a program that waits for them has it."""
    items = session.stream()
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line.split()[1])):
            next(items)
            print(time.monotonic(), flush=True)


def main():
    invites = sys.stdin.readline().split()
    session = Session.join(invites[0],
                           display_name="sdk-" + sys.argv[1],
                           cache_dir=f"{lib.T}/sdk-{sys.argv[1]}")
    if sys.argv[1] == "stream":
        watch(session)
        return
    if sys.argv[1] == "jobs":
        start_runner(session, invites[1])
    print("ready", flush=True)
    for line in sys.stdin:
        order, value = line.split()
        if order == "file":
            send_files(session, value)
        elif order == "jobs":
            run_jobs(session, int(value))
        else:
            send_texts(session, int(value))


if __name__ == "__main__":
    main()
