#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 300
"""Goal: jobs between the published client and ours, in one session: either
submits, either runs, either approves and cancels; by name, by label, to any;
what went in and what came out is read the same by both."""
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import AIRLOX, Cli, Sdk, lib  # noqa: E402
from peer_runner import Runner            # noqa: E402

OURS = lib.AIRLOXFS
RUNNER = lib.BUILD + "/airlox-runner"
PROGRAM = """\
import json, os, sys
out = os.environ["AIRLOX_OUT"]
seen = {}
for where, _, names in os.walk("."):
    for n in names:
        path = os.path.relpath(os.path.join(where, n))
        if not path.startswith(".airlox"):
            seen[path] = len(open(path, "rb").read())
print(json.dumps(seen, sort_keys=True))
print("h\\u00e9llo", file=sys.stderr)
if "chart.png" in seen:
    open(out + "/copy.png", "wb").write(open("chart.png", "rb").read())
    os.mkdir(out + "/deep")
    open(out + "/deep/data.csv", "w").write("a,b\\n")
    sys.exit(3)
"""
SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(60)\n"


def run_words(program, *words):
    """`airlox runner list` is `airloxfs runners`."""
    if program == OURS:
        return {"list": ("runners",)}.get(words[0], words[:1]) + words[1:]
    return ("runner",) + words


def runners(peer):
    done = peer.run(*run_words(peer.program, "list"), "--json")
    return {r["name"]: r for r in json.loads(done.stdout)["runners"]}


def job(peer, path, *words, status=0):
    """The result, as JSON."""
    done = peer.run("run", "--json", "--wait", "60s", path, *words,
                    status=status)
    return json.loads(done.stdout)


# --- our runner ------------------------------------------------------------

class Our:
    def __init__(self, name, labels, invite):
        self.log = f"{lib.T}/runner-{name}.log"
        self.child = subprocess.Popen(
            [RUNNER, "join", "--name", name, "--labels", labels, "-"],
            env=lib.peer_environ(name), stdin=subprocess.PIPE, text=True,
            stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)
        self.child.stdin.write(invite + "\n")
        self.child.stdin.close()
        lib.atexit.register(self.end)

    def end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def runtime():
    done = subprocess.run(["/usr/bin/python3", "-c", "import sys; print("
                           "'python%d.%d' % sys.version_info[:2])"],
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


# --- the parts -------------------------------------------------------------

def approve_each(owners, senders, path):
    """Each program lists both runners alike, and approves the other's."""
    for sender in senders:
        lib.wait_for(lambda: len([r for r in runners(sender).values()
                                  if r["online"]]) == 2, "two runners", 30)
        said = job(sender, path, status=None)
        lib.same((said["status"], said["reason"]),
                 ("failed", "no_runner_available"), "nobody is approved yet")
    for owner, name in zip(owners, ("ours", "theirs")):
        done = owner.run(*run_words(owner.program, "approve"), "--json", name)
        lib.same(json.loads(done.stdout)["approved"]["name"], name,
                 f"{owner.what} approves {name}")
    lists = [runners(p) for p in owners + senders]
    for listed in lists[1:]:
        lib.same(listed, lists[0], "the same list")
    lib.ok(all(r["approved"] for r in lists[0].values()), "both approved")


def targets(name):
    label = {"ours": "bwrap", "theirs": "plain"}[name]
    return (("--runner", name), ("--label", label), ("--label", "py," + label))


def check_result(got, name, pubs, want, status=3):
    lib.same(got["signed"], True, "signed")
    lib.same((got["status"], got["exit_code"], got["runner"]),
             ("completed", status, pubs[name]), f"it ran on {name}")
    seen = json.loads(got["stdout"])
    if "chart.png" in seen:     # a published client encodes images anew
        seen["chart.png"] = want["chart.png"]
    lib.same(seen, want, f"what {name} gave the program")
    lib.same(got["stderr"], "h\u00e9llo\n", "stderr")


def read_out(where, got, png):
    """What came back, saved by the submitter."""
    saved = {os.path.basename(p) for p in got["saved"]}
    lib.same(saved, {f["name"] for f in got["out_files"]}, "all saved")
    files = {}
    for name in saved:
        with open(f"{where}/{name}", "rb") as f:
            data = f.read()
        if not name.endswith(".zip"):
            files[name] = data
            continue
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            files.update({n: z.read(n) for n in z.namelist()
                          if not n.endswith("/")})
    lib.same(sorted(files), ["copy.png", "deep/data.csv"], "out files")
    lib.same(files["deep/data.csv"], b"a,b\n", "a file")
    # encoded anew, perhaps: the same size and kind
    lib.same(files["copy.png"][:26], png[:26], "an image")


def run_each(senders, owner_sdk, samples, where, pubs):
    path = where + "/prog.py"
    with open(path, "w") as f:
        f.write(PROGRAM)
    given = ["notes.md", "tree.zip", "chart.png"]
    want = {"prog.py": len(PROGRAM), "a/b.txt": 350, "c.md": 4,
            "notes.md": len(samples["notes.md"]),
            "chart.png": len(samples["chart.png"])}
    for sender in senders:
        for name in ("ours", "theirs"):
            words, expect = [], dict(want)
            for i in given:
                words += ["--input", f"{where}/{i}"]
            if sender.program == OURS:     # what no item can carry
                words += ["--input", where + "/table.csv"]
                expect["table.csv"] = 4
            out = f"{lib.T}/out-{sender.name}-{name}"
            got = job(sender, path, *words, "--out-dir", out, "--runner",
                      name, status=3)
            check_result(got, name, pubs, expect)
            read_out(out, got, samples["chart.png"])
            again(senders, sender, got)
            for target in targets(name)[1:]:
                got = job(sender, path, *target)
                check_result(got, name, pubs, {"prog.py": len(PROGRAM)}, 0)
    got = job(senders[0], path)
    lib.same(got["status"], "completed", "any runner")
    by_sdk(owner_sdk, pubs)


def again(senders, submitter, got):
    """Everybody reads the same result."""
    for peer in senders:
        if peer is submitter:
            continue
        done = peer.run("result", "--json", "--", got["job"],
                        status=got["exit_code"])
        read = json.loads(done.stdout)
        for shown in (read, got):
            shown.pop("saved", None)
        lib.same(read, got, f"{peer.name} reads it too")


def by_sdk(sdk, pubs):
    """The SDK sees the hashes as well."""
    code = "print(1)\n"
    for name in ("ours", "theirs"):
        done = sdk.session.run_python(code, runner=name).wait(60)
        lib.same((done.status, done.stdout, done.runner, done.signed),
                 ("completed", "1\n", pubs[name], True), f"SDK to {name}")
        lib.same(done.code_sha256,
                 hashlib.sha256(code.encode()).hexdigest(), "code_sha256")
        lib.same(done.input_sha256, hashlib.sha256(b"").hexdigest(),
                 "input_sha256")


def cancel_each(senders, path, pubs):
    """Whoever submitted it by one program cancels it by the other."""
    for sender in senders:
        for name in ("ours", "theirs"):
            done = sender.run("run", "--json", "--no-wait", "--runner", name,
                              path)
            made = json.loads(done.stdout)
            lib.same(made["runner"], pubs[name], "given to the runner")
            lib.wait_for(lambda: runners(sender)[name]["job"] == made["job"],
                         "it runs")
            said = json.loads(sender.run("result", "--json", "--",
                                         made["job"], status=75).stdout)
            lib.ok(said["status"] in ("assigned", "running"), "no result yet")
            other = Cli(sender.name, sender.invite,
                        AIRLOX if sender.program == OURS else OURS)
            said = json.loads(other.run("cancel", "--json", "--",
                                        made["job"]).stdout)
            lib.same(said, {"cancelled": made["job"]}, "cancel")
            got = json.loads(sender.run("result", "--json", "--wait", "20s",
                                        "--", made["job"], status=1).stdout)
            lib.same((got["status"], got["exit_code"], got["runner"]),
                     ("cancelled", None, pubs[name]),
                     f"cancelled on {name}: {got['reason']}")


def refuse(owners, senders, path):
    """A rejection by one program is final for the other."""
    owners[0].run(*run_words(owners[0].program, "reject"), "--reason",
                  "enough", "theirs")
    for peer in owners + senders:
        listed = runners(peer)
        lib.ok("theirs" not in listed or listed["theirs"]["rejected"],
               f"{peer.name} sees the rejection")
        done = peer.run("run", "--json", "--runner", "theirs", path,
                        status=None)
        lib.ok(done.returncode and not done.stdout.count('"completed"'),
               f"{peer.name} gives it nothing")


def approved_session(relay, samples, where):
    made = lib.run_cli(OURS, "owner", "create", "--relay", relay.url,
                       "--json", "--as", "olga", "--execute", "--runtime",
                       runtime(), "--job-timeout", "90s")
    invites = json.loads(made.stdout)["invites"]
    ours = Our("ours", "py,bwrap", invites["runner"])
    theirs = Runner("theirs", invites["runner"], "--labels", "py,plain")
    owners = [Cli("owner", invites["owner"], p) for p in (OURS, AIRLOX)]
    senders = [Cli("ann", invites["sender"], OURS),
               Cli("bob", invites["sender"], AIRLOX)]
    sdk = Sdk("sdk", invites["owner"])  # early: approvals leave the relay
    with open(where + "/sleep.py", "w") as f:
        f.write(SLEEPER)
    approve_each(owners, senders, where + "/sleep.py")
    pubs = {n: r["participant_pub"] for n, r in runners(owners[0]).items()}
    run_each(senders, sdk, samples, where, pubs)
    cancel_each(senders, where + "/sleep.py", pubs)
    refuse(owners, senders, where + "/main.py")
    return ours, theirs


def open_session(relay, where):
    """Without approval, made by the published client; with a package."""
    made = lib.run_cli(AIRLOX, "host", "session", "create", "--relay",
                       relay.url, "--json", "--execute", "--no-approval",
                       "--runtime", runtime(), "--package", "six")
    invites = json.loads(made.stdout)["invites"]
    ours = Our("ours", "py", invites["runner"])
    theirs = Runner("theirs-six", invites["runner"])
    path = where + "/need.py"
    with open(path, "w") as f:
        f.write("import six\nprint(six.__name__)\n")
    senders = [Cli("cyd", invites["sender"], OURS),
               Cli("dan", invites["sender"], AIRLOX)]
    lib.wait_for(lambda: len([r for r in runners(senders[0]).values()
                              if r["online"]]) == 2, "two runners", 30)
    lib.ok(all(r["approved"] for r in runners(senders[0]).values()),
           "nobody need approve")
    for sender in senders:
        for name in ("ours", "theirs-six"):
            got = job(sender, path, "--runner", name, "--requirement", "six")
            lib.same((got["status"], got["stdout"]), ("completed", "six\n"),
                     f"{sender.what}: a package on {name}")
    done = senders[0].run("run", path, "--requirement", "numpy", status=65)
    lib.ok("numpy" in done.stderr, "not of the session's packages")
    return ours, theirs


def main():
    checked = subprocess.run([RUNNER, "check"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    if checked.returncode:
        print(checked.stdout)
        lib.skip("no sandbox here")
    relay = lib.Relay()
    where = lib.T + "/samples"
    samples = lib.make_samples(where)
    with open(where + "/table.csv", "w") as f:
        f.write("a,b\n")
    for each in (approved_session(relay, samples, where),
                 open_session(relay, where)):
        for runner in each:
            runner.end()
    lib.same(relay.stop(), 0, "the relay ends with 0")


lib.run_main(main)
