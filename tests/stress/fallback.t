#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which platform is taken: another supervisor's listener leaves ptrace, and the user is told once. What was asked for by name
# is taken or refused, never replaced.
. "$(dirname "$0")/lib.sh"

sup() { timeout 60 "$stress/supervised" "$@"; }
field() { # FILE KEY
	sed -n 's/.*"'"$2"'":"\([^"]*\)".*/\1/p' "$1"
}

field_of_features() { # RUNNER
	timeout 60 "$1" "$SBX_BUILDDIR/sbx" features --json >"$tmp/features"
	field "$tmp/features" platform
}

if ! sup true; then
	echo "1..0 # SKIP no seccomp listener here at all"
	exit 0
fi
sup "$SBX_BUILDDIR/sbx" exec --json=3 -- sh -c 'echo hello' >"$tmp/out" 2>"$tmp/err" 3>"$tmp/json"
is $? 0 "runs below another supervisor"
is "$(cat "$tmp/out")" hello "and says what it should"
is "$(field "$tmp/json" platform)" ptrace "the result names the platform that ran"
is "$(grep -c 'supervisor.*ptrace' "$tmp/err")" 1 "one line says why"
is "$(wc -l <"$tmp/err")" 1 "and no other is written"

sup "$SBX_BUILDDIR/sbx" exec --platform unotify -- true >"$tmp/out" 2>"$tmp/err"
is $? 125 "unotify by name is refused there"
is "$(grep -c supervisor "$tmp/err")" 1 "with the reason"
sup "$SBX_BUILDDIR/sbx" exec --platform ptrace -- true >"$tmp/out" 2>"$tmp/err"
is $? 0 "ptrace by name is taken"
is "$(wc -c <"$tmp/err")" 0 "without a word"

is "$(field_of_features "$stress/supervised")" ptrace "sbx features knows it there"
is "$(field_of_features env)" unotify "and elsewhere"

timeout 60 "$SBX_BUILDDIR/sbx" exec --platform nonesuch -- true 2>"$tmp/err"
is $? 125 "an unknown platform is refused"
is "$(wc -l <"$tmp/err")" 1 "in one line"
finish
