#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# alone
"""Goal: the README's five minutes, typed by somebody who has just come, do
what the README shows: each command, and what it prints but for ids, times and
keys."""
import os
import re
import shutil
import socket
import subprocess
import sys
import time

TOP, BUILD, T = (os.environ[k] for k in ("TOP", "BUILD", "T"))
SLOW = 1 if BUILD.endswith("/build") else 3
MASKS = (
    (r"ax_[a-z0-9.]+", "ax_ID"),
    (r"\b(k|rk)=[\w.-]+", r"\1=KEY"),
    # Said to root alone: the README is read by users.
    (r"\S+ airlox-relay: running as root[^\n]*\n", ""),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r'(created|fingerprint|id)="[^"]+"', r'\1="..."'),
    (r":\d{4,5}\b", ":PORT"),
)


def mask(text):
    for pattern, by in MASKS:
        text = re.sub(pattern, by, text)
    return text.strip("\n")


def read_tour():
    """[command, what it prints] and so on, as the README has them."""
    with open(f"{TOP}/README.md", encoding="utf-8") as f:
        text = f.read()
    text = text[text.index("## Five minutes"):]
    text = text[:text.index("\n## ")]
    steps, inside = [], False
    for line in text.split("\n"):
        if line.startswith("    $ ") or line.startswith("    export"):
            steps.append([re.sub(r"^\$ ", "", line[4:]), []])
            inside = True
        elif inside and steps[-1][0].endswith("\\"):
            steps[-1][0] = steps[-1][0][:-1] + line.strip()
        elif line.startswith("    ") or not line:
            if steps and line != "    cd":
                steps[-1][1].append(line[4:])
        else:
            inside = False
    return [(c, mask("\n".join(out))) for c, out in steps]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Shell:
    """An interactive user's shell, one for the whole tour."""

    def __init__(self, home, port):
        self.port, self.words = port, f"{T}/words"
        env = {"HOME": home, "PATH": f"{BUILD}:{os.environ['PATH']}",
               "LC_ALL": "C.UTF-8"}
        self.out = open(self.words, "wb")
        self.process = subprocess.Popen(
            ["bash"], cwd=home, env=env, text=True,
            stdin=subprocess.PIPE, stdout=self.out, stderr=self.out)
        self.at = 0

    def run(self, command):
        """Its exit status and what it said."""
        command = command.replace(":8440", f":{self.port}")
        if command.startswith("airlox-relay"):
            command = command.replace(" &", f" --listen 127.0.0.1:{self.port} &")
        if command.startswith("inotifywait"):
            command += " &"
        self.process.stdin.write(f"{command}\necho \"= $?\"\n")
        self.process.stdin.flush()
        end = time.monotonic() + 30 * SLOW
        while time.monotonic() < end:
            text = self.read()
            m = re.search(r"(?m)^= (\d+)$|= (\d+)$", text)
            if m:
                time.sleep(0.4 * SLOW)	# for who was woken
                text = self.read()
                self.at += len(text.encode())
                return int(m[1] or m[2]), re.sub(r"=? ?= \d+\n", "", text)
            time.sleep(0.02)
        sys.exit(f"no end: {command}: {text}")

    def read(self):
        with open(self.words, "rb") as f:
            f.seek(self.at)
            return f.read().decode()

    def close(self, home):
        for peer in ("alice", "bob"):
            subprocess.run(["fusermount3", "-uz", f"{home}/{peer}"],
                           stderr=subprocess.DEVNULL, check=False)
        self.process.stdin.write("kill $(jobs -p)\n")
        self.process.stdin.close()
        self.process.wait(10 * SLOW)
        self.out.close()


def check(command, want, status, said):
    if command.startswith("grep -r"):
        if status != 1 or said:
            return "the relay has plain text"
        return None
    if status != 0:
        return f"exit {status}: {said}"
    if mask(said) != want:
        return f"the README has\n{want}\nbut it says\n{mask(said)}"
    return None


def main():
    for need in ("getfattr", "inotifywait", "fusermount3"):
        if not shutil.which(need):
            print(f"skipped: {need} is not installed")
            sys.exit(77)
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: no /dev/fuse that this user may open")
        sys.exit(77)
    home = f"{T}/newcomer"
    os.mkdir(home)
    steps = read_tour()
    assert len(steps) > 15, steps
    shell = Shell(home, free_port())
    try:
        for number, (command, want) in enumerate(steps):
            if command.startswith("export"):
                continue
            status, said = shell.run(command)
            wrong = check(command, want, status, said)
            if wrong:
                sys.exit(f"FAILED: $ {command}\n{wrong}")
            print(f"ok {number} - {command}")
    finally:
        shell.close(home)


if __name__ == "__main__":
    main()
