#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that attack the platform from inside: they die, or get an error; nothing else does, and the host does not notice.
. "$(dirname "$0")/lib.sh"
traced=
case $sbxflags in
*kvm*)
	skip "programs that know the platforms of stubs" "this is another one"
	finish
	;;
*ptrace*) traced=traced ;;
esac

echo untouched >"$tmp/canary"
sleep 300 &
canary=$!
before=$(stamp $canary)
cp "$stress/hostile" "$tmp/ws/hostile"

# shellcheck disable=SC2086 # no argument, or one
limit=200 run -t 180 -- ./hostile $traced >"$tmp/out" 2>"$tmp/err"
rc=$?
while IFS= read -r line; do
	case $line in
	"ok "*) ok 0 "${line#ok * - }" ;;
	"not ok "*) ok 1 "${line#not ok * - }" ;;
	"# "*) echo "$line" ;;
	esac
done <"$tmp/out"
is $rc 0 "the sandbox goes on to its end"
grep -q '^1\.\.' "$tmp/out"
ok $? "all cases ran"
! grep -q ESCAPED "$tmp/out" "$tmp/err"
ok $? "no order that a racing thread forged was carried out"
is "$(cat "$tmp/canary")" untouched "a file of the host is as it was"
is "$(alive "$before")" $canary "a process of the host is as it was"
kill $canary
finish
