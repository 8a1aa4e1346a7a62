# SPDX-License-Identifier: MIT
"""A scenario of the box as an ordinary user would run it: started as root, it
goes on as nobody, in a directory of its own."""
import os
import shutil
import sys
import tempfile

import lib

NOBODY = 65534


def become_nobody(where):
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.environ.update(T=where, TMPDIR=where + "/tmp", HOME=where + "/home",
                      XDG_STATE_HOME=where + "/home/state",
                      XDG_CACHE_HOME=where + "/home/cache")
    for name in ("ASAN", "UBSAN", "TSAN"):
        text = os.environ.get(name + "_OPTIONS", "")
        os.environ[name + "_OPTIONS"] = text.replace(lib.T, where)
    lib.T = where
    os.chdir(where)


def run(main):
    if not shutil.which("bwrap"):
        lib.skip("no bwrap")
    where = tempfile.mkdtemp(dir="/tmp") if os.geteuid() == 0 else lib.T
    for name in ("", "/tmp", "/home", "/san"):
        os.makedirs(where + name, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(where + name, NOBODY, NOBODY)
    os.chmod(where, 0o755)
    if os.geteuid() != 0:
        lib.run_main(main)
    child = os.fork()
    if child == 0:
        become_nobody(where)
        lib.run_main(main)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for name in os.listdir(where + "/san"):  # for tests/run
        shutil.copy(f"{where}/san/{name}", lib.T + "/san/")
    shutil.rmtree(where, ignore_errors=True)
    sys.exit(status)
