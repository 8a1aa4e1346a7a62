#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: an agent in a box: what it says and does is shown and recorded, its
questions are answered by a terminal, by files or by nobody, it gets no more
than the box has, a rude one does no harm, and its run goes on when the
terminal is gone."""
import glob
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import agents_real                                    # noqa: E402
import broker_peer as bp                              # noqa: E402

BOX = bp.BOX
STATE = lib.T + "/state"
RUNS = STATE + "/airlox-box/runs"
POLICY = """
agent: [env, MARK=1, /usr/bin/python3, {agent}{mode}]
limits:
  time: {time}
"""


def write_policy(name, mode="", time="60s", agent=None):
    with open(f"{lib.T}/{name}.yaml", "w") as f:
        f.write(POLICY.format(agent=agent or lib.T + "/agent.py", mode=mode,
                              time=time))


def command(steps, *flags, policy="p"):
    return [BOX, "agent", f"{lib.T}/{policy}.yaml", "--record",
            f"{lib.T}/r-{time.monotonic_ns()}.html", *flags,
            "\n".join(steps)]


def environment():
    return dict(os.environ, XDG_STATE_HOME=STATE, AIRLOX_INVITE="a-secret")


def begin(*words, **more):
    return subprocess.Popen(words[0] if len(words) == 1 else words,
                            env=environment(), stdin=subprocess.DEVNULL,
                            preexec_fn=bp.drop_caps,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **more)


def end(child, status=0, name=""):
    out, err = child.communicate(timeout=60 * lib.SLOW)
    if child.returncode != status:
        raise lib.Failed(f"{name}: exit {child.returncode}, not {status}: "
                         f"{out[-1500:]} {err[-1500:]}")
    return out, err


def box(*words, status=0):
    child = begin(BOX, *words)
    return end(child, child.wait(60 * lib.SLOW) if status is None else
               status, words[0])


def detached(steps, *flags, policy="p"):
    out, _ = end(begin(command(steps, "--detach", *flags, policy=policy)),
                 0, "detach")
    return out.strip()


def boxes():
    return {r["run"]: r for r in lib.json_lines(box("boxes", "--json")[0])}


def waits(run):
    return lib.wait_for(lambda: boxes().get(run, {}).get("waits"),
                        f"{run} waits", 20 * lib.SLOW)


def polite():
    child = begin(command([
        r"say hello \u001b[2J\u202e", "think hm", "plan one,two",
        "ask rm -rf /", "ask-all make", "read /work/x",
        "write /work/d/x first", "read /work/d/x", "lines /work/d/x",
        "read /work/d/../../etc/passwd", "read /etc/passwd",
        "write /usr/x y", "shell yes|head -c 1000;echo end",
        "run nosuch", "kill", "method nope/nope", "rude", "env"],
        "--permissions", "auto_allow"))
    return child, lambda: check_polite(*end(child, 0, "polite"))


def check_polite(out, err):
    for want in (
            r"hello \x1B[2J\u{202E}", "rm -rf /: yes-1", "make: yes-1",
            'read: {"code": -32002', "write: {}",
            'read: {"content": "first\\\\n"}', 'lines: {"content": ""}',
            "/work/d/../../etc/passwd: outside of the workspace",
            'read: {"code": -32602, "message": "outside of the workspace"}',
            'write: {"code": -32602', '"truncated": true', "y\\\\nend\\\\n",
            "nosuch: No such file", '"signal": "SIGKILL"', "method: -32601",
            '"MARK": "1"'):
        lib.ok(want in out, f"said: {want}")
    lib.ok("a-secret" not in out, "no variable of ours")
    for want in ("> plan one,two", "~ hm", "  [ ] two",
                 '? 1 execute: may it? rm -rf / {"command": "rm -rf /"}',
                 "= 1 allow_once, by --permissions auto_allow",
                 r"the agent is scripted\x1B[1m 1",
                 "no message: no JSON", "an answer to what was not asked",
                 "an update of no session", "terminal/create"):
        lib.ok(want in err, f"shown: {want}")
    lib.ok("\033" not in out + err, "no escape sequence gets through")
    record = re.search(r"record: (.*)", err)[1]
    box("verify", record)
    shown = box("show", record)[0]
    for want in ("answer=allow_once", "by=--permissions auto_allow",
                 "request=fs/write_text_file", "status=completed",
                 "prompt", "thought", "exit=0"):
        lib.ok(want in shown, f"the record has {want}")


def expect(steps, status, *want, flags=(), policy="p"):
    """An end, and words of standard error."""
    child = begin(command(steps, *flags, policy=policy))

    def finish():
        out, err = end(child, status, f"{steps}")
        for w in want:
            lib.ok(w in err + out, f"{w} ({(out + err)[-600:]})")
        lib.ok("record: " in err, "there is a record")
    return child, finish


def make_venv():
    """An agent that is a part of a Python environment, called by a link."""
    v = lib.T + "/v"
    real = os.path.realpath("/usr/bin/python3")
    site = f"{v}/lib/{os.path.basename(real)}/site-packages"
    os.makedirs(site)
    os.makedirs(v + "/bin")
    with open(v + "/pyvenv.cfg", "w") as f:
        f.write("home = /usr/bin\n")
    with open(site + "/of_the_venv.py", "w") as f:
        f.write("X = 1\n")
    os.symlink(real, v + "/bin/python")
    with open(lib.T + "/agent.py") as f:
        body = f.read().split("\n", 1)[1]
    with open(v + "/bin/agent", "w") as f:
        f.write(f"#!{v}/bin/python\nimport of_the_venv\n" + body)
    os.chmod(v + "/bin/agent", 0o755)
    with open(lib.T + "/venv.yaml", "w") as f:
        f.write(f"agent: [{v}/bin/agent]\n")


def ends():
    """All at once: each is most of all waiting."""
    write_policy("old", ", old")
    write_policy("locked", ", locked")
    write_policy("late", time="2s")
    write_policy("none", agent="/usr/bin/true")
    write_policy("not", agent=lib.T + "/not.py")
    with open(lib.T + "/none.yaml", "w") as f:
        f.write("agent: [/usr/bin/true]\n")
    make_venv()
    all_of_them = [
        polite(),
        expect(["die 3"], 70, "the agent ended (exit 3) before it answered "
               "session/prompt", "! I am dying"),
        expect(["x"], 70, "the agent ended", policy="none"),
        expect(["nonsense"], 76, "does not speak the Agent Client Protocol"),
        expect(["huge"], 70, "longer than 16 MiB"),
        expect(["x"], 76, "speaks version 9", policy="old"),
        expect(["x"], 77, "wants to be authenticated, by one of key; see "
               "--auth", policy="locked"),
        expect(["say in"], 0, "in", flags=["--auth", "key"],
               policy="locked"),
        expect(["say with its modules"], 0, "with its modules",
               policy="venv"),
        expect(["stop refusal"], 1, "the agent stopped: refusal"),
        expect(["deaf"], 124, policy="late"),
        expect(["flood 3000", "say end"], 0, "end"),
        expect(["askflood"], 0, "refused: 136", flags=["--patience", "1s"]),
        expect(["ask it"], 0, "it: no-1",
               "reject_once, by nobody: nobody was there",
               flags=["--patience", "1s"]),
    ]
    for _, finish in all_of_them:
        finish()


def by_file():
    run = detached(["ask make install", "ask-all again", "say done"])
    lib.ok("1 execute: make install" in waits(run), "boxes says for what")
    where = f"{RUNS}/{run}"
    lib.same(boxes()[run]["state"], "waiting", "and that it waits")
    with open(where + "/ask") as f:
        asked = f.read()
    lib.ok(asked.startswith('1 execute: make install {"command"')
           and asked.count("\n") == 1, f"a question a line: {asked}")
    with open(where + "/answer", "w") as f:
        f.write("7 yes\n1 maybe\n1 yes a script\n")
    with open(where + "/ask") as f:
        lib.ok(f.read().startswith("2 execute: again"), "a read waits for "
               "the next")
    viewers = [begin(BOX, "attach", run) for _ in range(2)]
    with open(where + "/answer", "w") as f:
        f.write("2 always\n")
    for v in viewers:
        out, err = end(v, 0, "attach")
        lib.ok("make install: yes-1" in out and "again: yes-2" in out
               and out.endswith("done\n"), "two see all of it")
        lib.ok("by a script" in err and "not an answer to an open question: "
               "1 maybe" in err, "and who answered")
    lib.same(os.path.exists(where), False, "nothing is left of it")


def read_pty(fd, want, seconds=20):
    got = ""
    until = time.monotonic() + seconds * lib.SLOW
    os.set_blocking(fd, False)
    while want not in got and time.monotonic() < until:
        try:
            got += os.read(fd, 65536).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:
            break
    lib.ok(want in got, f"{want} on the terminal: {got[-500:]}")
    return got


def terminal(words):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(environment(), TERM="xterm")
        bp.drop_caps()
        os.execv(words[0], words)
    return pid, fd


def by_terminal():
    pid, fd = terminal(command([r"say a\u001bb", "ask one", "ask two",
                                "sleep 1", "ask three", "say end"],
                               "--patience", "1s"))
    first = read_pty(fd, "y(es), n(o), a(lways)? ")
    lib.ok("\033[33m? 1 execute" in first and r"a\x1Bb" in first,
           "colours of ours, none of the agent's")
    time.sleep(1.2)            # longer than the patience: somebody is there
    os.write(fd, b"what\ny\n")
    lib.ok("= 1 allow_once, by a terminal" in read_pty(fd, "? 2 execute"),
           "y")
    os.write(fd, b"2 no\n")
    lib.ok("two: no-1" in read_pty(fd, "two: no-1"), "and no")
    run, = boxes()
    os.close(fd)               # the terminal is gone
    os.waitpid(pid, 0)
    lib.ok("3 execute: three" in waits(run), "the run goes on without it")
    pid, fd = terminal([BOX, "attach", run])
    lib.ok("one: yes-1" in read_pty(fd, "? 3 execute"), "attached: what was")
    os.write(fd, b"a\n")
    read_pty(fd, "end")
    lib.same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "the end")
    os.close(fd)


def stopped():
    runs = [detached(["forever"]), detached(["deaf"])]
    waits(runs[0])
    child = begin(command(["forever"]))
    lib.wait_for(lambda: len([r for r in boxes().values() if r["waits"]]) > 1,
                 "it waits", 20 * lib.SLOW)
    child.send_signal(signal.SIGINT)
    out, err = end(child, 130, "interrupted")
    lib.ok("cancelled: True" in out, "the agent is told, and says so")
    view = begin(BOX, "attach", runs[1])
    lib.ok("deaf" in view.stderr.readline(), "attached")
    box("stop", *runs)
    view.communicate(timeout=20 * lib.SLOW)
    lib.same(view.returncode, 143, "attach exits as the run does")
    lib.same(boxes(), {}, "stop ends one that hears and one that does not")


def killed():
    run = detached(["ask x"])
    waits(run)
    view = begin(BOX, "attach", run)
    os.kill(boxes()[run]["pid"], signal.SIGKILL)
    out, err = end(view, 69, "attach")
    lib.ok("was cut off" in err, "attach says so")
    _, err = box("reap", "--yes")
    lib.ok(run in err and boxes() == {}, "reap clears it")
    record = re.search(r"record is (.*)", err)[1]
    lib.ok("may it? x" in box("show", record)[0], "and has the question")


def ours():
    """{pid: name} of what runs consist of."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, rest = f.read().split(" (", 1)[1].rsplit(") ", 1)
            with open(f"/proc/{pid}/cmdline") as f:
                words = f.read().split("\0")
        except OSError:
            continue
        if rest[0] not in "ZX" and int(pid) > 2 and (
                name.startswith(("airlox", "bwrap", "sleep"))
                or words[1:2] == [lib.T + "/agent.py"]):
            found[int(pid)] = name
    return found


def kills(count):
    """Whichever of its processes is killed, and when: it ends, or stop ends
    it, and reap clears what it left.  KILLS=N for more, SEED=N for the same."""
    seed = int(os.environ.get("SEED") or time.time_ns() % 10 ** 6)
    dice = random.Random(seed)
    for i in range(count):
        run = detached(["shell sleep 300 &", "ask x", "deaf"])
        view = begin(BOX, "attach", run)
        time.sleep(dice.random() * 0.3)
        alive = ours()
        victim = dice.choice(sorted(set(alive) - {view.pid}))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
        box("stop", run, status=None)
        view.communicate(timeout=60 * lib.SLOW)
        box("reap", "--yes")
        lib.wait_for(lambda: not ours(), f"SEED={seed}: kill {i} of "
                     f"{alive[victim]}: nothing is left: {ours()}",
                     20 * lib.SLOW)
        lib.same(os.listdir(RUNS), [], f"kill {i}, of {alive[victim]}")


def ready():
    """The policies of docs/policy name what they need, and nothing risky."""
    stubs = lib.T + "/stubs"
    os.makedirs(stubs)
    for name in ("claude-code-acp", "codex-acp", "gemini", "opencode",
                 "goose"):
        os.symlink("/usr/bin/true", f"{stubs}/{name}")
    env = dict(environment(), PATH=stubs + ":/usr/bin:/bin")
    policies = sorted(glob.glob(os.environ["TOP"] + "/docs/policy/agent-*"))
    lib.same(len(policies), 5, "ready policies")
    for path in policies:
        lacks = subprocess.run([BOX, "check", path], env=env, text=True,
                               capture_output=True)
        lib.ok(lacks.returncode == 65 and "_API_KEY is not set"
               in lacks.stderr, f"{path} says which key it needs")
        for name in ("ANTHROPIC", "OPENAI", "GEMINI"):
            env[name + "_API_KEY"] = "a-key-of-the-test"
        done = subprocess.run([BOX, "check", path], env=env, text=True,
                              capture_output=True)
        lib.same([done.returncode, done.stderr], [0, ""], path)
        done = subprocess.run([BOX, "check", path], text=True,
                              env=dict(env, PATH="/usr/bin"),
                              capture_output=True)
        lib.ok(done.returncode == 65 and "is not in PATH" in done.stderr,
               "and its program")
        for name in ("ANTHROPIC", "OPENAI", "GEMINI"):
            del env[name + "_API_KEY"]


def usage():
    for words, want in (
            (["agent", lib.T + "/p.yaml"], "a policy and a prompt"),
            (["agent", lib.T + "/p.yaml", "x", "--permissions", "no"],
             "ask or auto_allow"),
            (["agent", lib.T + "/p.yaml", "x", "--patience", "5"], "like 90s"),
            (["attach"], "which run?")):
        lib.ok(want in box(*words, status=64)[1], want)
    with open(lib.T + "/empty.yaml", "w") as f:
        f.write("limits:\n  time: 5s\n")
    lib.ok("names no agent" in box("agent", lib.T + "/empty.yaml", "x",
                                   status=65)[1], "a policy without one")
    lib.ok("no run nosuch" in box("attach", "nosuch", status=69)[1],
           "a run that is not there")
    with open(lib.T + "/lacks.yaml", "w") as f:
        f.write("agent: [nosuchprogram]\n")
    lib.ok("no program nosuchprogram" in box("agent", lib.T + "/lacks.yaml",
                                             "x", status=69)[1], "no agent")


def main():
    bp.enter()
    with open(os.environ["TOP"] + "/tests/acp_agent.py") as f:
        text = f.read()
    with open(lib.T + "/agent.py", "w") as f:
        f.write(text)
    write_policy("p")
    if os.environ.get("AGENTS"):
        agents_real.main(os.environ["AGENTS"])
        return
    usage()
    ready()
    ends()
    by_file()
    by_terminal()
    stopped()
    killed()
    kills(int(os.environ.get("KILLS") or
              (100 if os.environ.get("SOAK") else 2)))
    lib.same(os.listdir(RUNS), [], "no run is left")


lib.run_main(main)
