#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: what the state directory keeps is worth its place: it brings back a
# lost identity, and nothing in it can keep a mount from starting.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$OWNER" "$T/a"
mount_at bob "$SENDER" "$T/b"
A=$T/a B=$T/b
settle "$B" "$A"
settle "$A" "$B"

before=$(ls "$A/participants" | wc -l)
umount_at "$B"
rm "$T"/peers/bob/.cache/airlox/*/identity-sender.json
mount_at bob "$SENDER" "$T/b"
settle "$B" "$A"
assert_eq "$(ls "$A/participants" | wc -l)" "$before" 'a second bob joined'
pass 'the sealed copy of a lost identity restores it'

finish
