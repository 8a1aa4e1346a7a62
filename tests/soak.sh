#!/bin/bash
# SPDX-License-Identifier: MIT
#
# usage: tests/soak.sh MINUTES
#
# The long form of what `make check` does for a minute: random kills and a bad
# network under many writers, 200 kills of the relay, 15,000 streams, items of
# 1 GiB, 500 jobs that leave orphans, one that prints 5 GiB, and boxes and
# agents of which one process or another is killed.  SEED=N repeats one.
set -u
cd "$(dirname "$0")/.." || exit 1
export SOAK=${1:-20} KILLS=200
exec tests/run --slow $((2 + SOAK / 3)) tests/case/soak.py tests/case/big.sh \
	tests/case/closing.py tests/case/over.sh tests/case/faults.sh \
	tests/case/relay-kill.py tests/case/relay-crowd.py \
	tests/case/runner-box.py tests/case/runner.sh \
	tests/case/box-life.py tests/case/agent.py tests/case/jobs-soak.py
