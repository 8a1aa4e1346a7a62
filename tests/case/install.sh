#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: make install puts everything in its place below DESTDIR, and make
# uninstall leaves nothing of it.
. "$TOP/tests/lib.sh"
need make mandoc
dest=$T/dest
where() { (cd "$dest" && find . ! -type d | sort); }
mk() { # with the programs of this build
	MAKEFLAGS='' make -s -C "$TOP" B="$BUILD" SAN="${SAN//-/,}" \
		DESTDIR="$dest" "$@" >"$T/said" 2>&1 </dev/null ||
		fail "make $*: $(cat "$T/said")"
}

for prefix in /usr/local /usr; do
	mk PREFIX=$prefix install
	version=$("$dest$prefix/bin/airloxfs" --version) || fail airloxfs
	assert_eq "$("$dest$prefix/bin/airlox-relay" --version)" \
		"airlox-relay ${version#airloxfs }" 'one version'
	assert_eq "$("$dest$prefix/bin/airlox-runner" --version)" \
		"airlox-runner ${version#airloxfs }" 'one version'
	share=$dest$prefix/share
	for f in "$share"/man/man{1/airloxfs.1,4/airloxfs.4,5/airlox.5} \
		"$share"/man/man8/airlox-{relay,runner}.8 \
		"$share"/bash-completion/completions/{airloxfs,airlox-relay,airlox-runner} \
		"$share"/zsh/site-functions/_{airloxfs,airlox-relay,airlox-runner} \
		"$share"/fish/vendor_completions.d/{airloxfs,airlox-relay,airlox-runner}.fish \
		"$dest$prefix"/lib/systemd/{user/airloxfs@,system/airlox-relay,system/airlox-runner@}.service \
		"$dest$prefix"/lib/systemd/system/airlox-relay.socket \
		"$share"/doc/airloxfs/{README.md,NEWS,LICENSE,SECURITY.md}; do
		[ -s "$f" ] || fail "not installed: $f"
	done
	for f in "$dest$prefix"/lib/systemd/*/*.service; do
		grep -q "^ExecStart=$prefix/bin/airlox" "$f" ||
			fail "$f does not start $prefix/bin"
	done
	mandoc -Tmarkdown "$share/man/man1/airloxfs.1" |
		grep -q 'EXIT STATUS' ||
		fail 'the man page does not read'
	pass "install PREFIX=$prefix: $(where | wc -l) files"

	touch "$share/man/man1/other.1"
	mk PREFIX=$prefix uninstall
	assert_eq "$(where)" ".$prefix/share/man/man1/other.1" 'what is left'
	rm "$share/man/man1/other.1"
	mk PREFIX=$prefix uninstall
	pass 'uninstall takes all of it, nothing else, and twice is fine'
done
finish
