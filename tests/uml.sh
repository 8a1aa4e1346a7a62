#!/bin/bash
# SPDX-License-Identifier: MIT
#
# usage: tests/uml.sh PROGRAM [ARGUMENT...]
#
# Runs a program as root under user-mode Linux (Debian: user-mode-linux; or
# UML=FILE), on this machine's files, read only, with a /tmp of its own and
# nothing but control groups version 2: for a machine that has version 1.
#
#	tests/uml.sh python3 tests/case/runner-box.py
set -eu
cd "$(dirname "$0")/.."
uml=$(command -v "${UML:-linux.uml}") || {
	echo 'no user-mode Linux: install user-mode-linux, or give UML=FILE' >&2
	exit 77
}
shim=${BUILD:-$PWD/build}/tests/hostile/xstate.so
[ -e "$shim" ] || { echo 'make tests, first' >&2; exit 77; }
where=$(mktemp -d /var/tmp/airlox-uml.XXXXXX)
trap 'rm -rf "$where"' EXIT
cat >"$where/init" <<INIT
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TOP=$PWD BUILD=${BUILD:-$PWD/build}
export HOME=/tmp/home TMPDIR=/tmp T=/tmp/t
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/pts \$HOME \$T
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
cd $PWD
status=0
$(printf '%q ' "$@") </dev/null || status=\$?
echo "= exit status \$status"
echo o >/proc/sysrq-trigger
sleep 9
INIT
chmod +x "$where/init"
LD_PRELOAD=$shim "$uml" mem="${MEMORY:-1500M}" root=/dev/root \
	rootfstype=hostfs rootflags=/ ro quiet init="$where/init" con=null \
	con0=fd:0,fd:1 </dev/null 2>&1 | tr -d '\r' | tee "$where/said"
grep -q '^= exit status 0$' "$where/said"
