#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 120
"""Goal: a job has the packages it asks for, from wheels that pip finds, in an
environment that is made once, read-only and without links; where they cannot
be had, it fails and says so.  The wheels are made here; no index is asked."""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile

TOP, T = os.environ["TOP"], os.environ["T"]
sys.path.insert(0, TOP + "/tests")
sys.dont_write_bytecode = True
import runner_queue as rq  # noqa: E402
from runner_queue import ok  # noqa: E402


def wheel(where, name, files, requires=()):
    path = f"{where}/{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = dict(files)
    files[info + "/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        + "".join(f"Requires-Dist: {r}\n" for r in requires))
    files[info + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: t\n"
                              "Root-Is-Purelib: true\nTag: py3-none-any\n")
    record = ""
    with zipfile.ZipFile(path, "w") as z:
        for n, text in files.items():
            z.writestr(n, text)
            digest = base64.urlsafe_b64encode(
                hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{n},sha256={digest},{len(text)}\n"
        z.writestr(info + "/RECORD", record + info + "/RECORD,,\n")
    os.chmod(path, 0o644)


def has_pip():
    code = ("import importlib.util as u, glob, sys\n"
            "s = u.find_spec('ensurepip')\n"
            "d = [*s.submodule_search_locations] if s else []\n"
            "sys.exit(not (u.find_spec('pip') or any(glob.glob("
            "g + '/_bundled/pip-*.whl') for g in d)"
            " or glob.glob('/usr/share/python-wheels/pip-*.whl')))")
    return subprocess.run(["/usr/bin/" + rq.runtime(), "-I", "-c", code],
                          check=False).returncode == 0


def main():
    if not shutil.which("bwrap") or not os.access(
            "/usr/bin/" + rq.runtime(), os.X_OK):
        print("skipped: no bubblewrap or no python3.N")
        sys.exit(77)
    if not has_pip():
        print("skipped: no pip for this python (python3-venv has one)")
        sys.exit(77)
    if subprocess.run([rq.BUILD + "/airlox-runner", "check"],
                      stdout=subprocess.DEVNULL, check=False).returncode:
        print("skipped: no sandbox here")
        sys.exit(77)
    wheels = f"/var/tmp/airlox-wheels-{os.getpid()}"
    os.mkdir(wheels)
    os.chmod(wheels, 0o755)
    try:
        run(wheels)
    finally:
        shutil.rmtree(wheels)


def run(wheels):
    wheel(wheels, "first_thing", {
        "first_thing/__init__.py": "import second\nWHO = second.WHO\n",
        "first_thing-1.0.data/purelib/beside.py": "X = 1\n",
        "first_thing-1.0.data/scripts/prog": "#!/bin/sh\n"},
        requires=["second"])
    wheel(wheels, "second", {"second.py": "WHO = 'second'\n"})
    wheel(wheels, "evil", {"../../evil.py": "x", "/abs.py": "x",
                           "evil.py": "FINE = 1\n"})
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=wheels)
    q = rq.Queue(T)
    job = q.run("import first_thing, beside, sys\n"
                "print(first_thing.WHO, beside.X, sys.prefix)\n"
                "try: open('/packages/x', 'w')\n"
                "except OSError as e: print(e.errno)",
                packages=["first-thing"], requirements=["first-thing"])
    ok(job.out == "second 1 /packages\n30\n", f"a package and what it needs: "
       f"{job.end} {job.reason} {job.out} {job.err}")
    env = [n for n in os.listdir(q.cache) if n.startswith("python3")]
    ok(len(env) == 1, f"one environment: {env}")
    stamp = os.stat(f"{q.cache}/{env[0]}").st_ctime_ns
    links = subprocess.run(["find", f"{q.cache}/{env[0]}", "-type", "l"],
                           capture_output=True, text=True,
                           check=True).stdout.split()
    ok([os.path.basename(n) for n in links] == ["python3"], f"{links}")
    job = q.run("import second; print(second.WHO)", packages=["first-thing"],
                requirements=["first-thing"])
    ok(job.out == "second\n" and stamp == os.stat(
        f"{q.cache}/{env[0]}").st_ctime_ns, "made once")
    job = q.run("import second", packages=["first-thing"])
    ok(job.code == 1, "who asks for none has none")
    job = q.run("import evil, os\nprint(evil.FINE, os.path.exists("
                "'/packages/lib/evil.py'))", packages=["evil"],
                requirements=["evil"])
    # pip may refuse it before it is unpacked
    ok(job.out in ("1 False\n", ""), f"a hostile wheel: {job.out} "
       f"{job.reason}")
    ok(not os.path.exists("/abs.py"), "and nothing beside it")
    job = q.run("print(1)", packages=["no-such-thing", "second"],
                requirements=["no-such-thing"])
    ok(job.end == "failed" and "no-such-thing" in job.reason,
       f"a package that is not there: {job.reason}")
    job = q.run("import second; print(second.WHO)",
                packages=["no-such-thing", "second"],
                requirements=["second"])
    ok(job.out == "second\n", f"the others can still be had: {job.reason}")
    ok(not q.close(), "nothing left in scratch")


main()
