#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each process of ours is killed in turn while a guest with several processes runs. Within a second (and another one for
# a machine that does other things) nothing of the sandbox may be left, and sbx, where it is alive, says so in one line.
. "$(dirname "$0")/lib.sh"

cp "$stress/hostile" "$tmp/ws/hostile"
# Processes that sleep, spin, ignore signals, and one that blocks all host signals.
cat >"$tmp/ws/guest.sh" <<'G'
trap '' TERM INT HUP QUIT
sleep 1000 &
sh -c 'trap "" TERM INT HUP; while :; do :; done' &
setsid sh -c 'trap "" TERM; sleep 1000' &
./hostile spin &
(sleep 1000 | sleep 1000) &
echo started >started
wait
G

begin() {
	rm -f started
	# shellcheck disable=SC2086
	"$sbx" exec $sbxflags -t 60 -- sh guest.sh >"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	wait_for 10 test -e started || echo "# the guest does not start"
	sleep 0.3
	sentry=$(child_named $pid sbx-sentry | head -n 1)
	gofer=$(child_named $pid sbx-gofer | head -n 1)
	init=$(children "$sentry" | cut -d' ' -f1)
	# shellcheck disable=SC2046
	all=$(stamp $pid $(descendants $pid))
}

# The end of a whole sandbox after a kill of PID.
ends() { # PID NAME
	kill -KILL "$1"
	# shellcheck disable=SC2086
	gone_within "${grace:-2000}" $all
	ok $? "$2 killed: nothing is left after a second"
	# shellcheck disable=SC2086
	left=$(alive $all)
	[ -n "$left" ] && for p in $left; do echo "# left: $p $(cat /proc/"$p"/comm)"; done
	wait $pid
	rc=$?
}

said() { # NAME
	is $rc 125 "$1 killed: sbx ends with 125"
	is "$(grep -c '^sbx: ' "$tmp/err")" 1 "$1 killed: one line says why"
	grep -v '^sbx: ' "$tmp/err" | sed 's/^/# /' | head -n 3
}

begin
# shellcheck disable=SC2086
[ "$(echo $all | wc -w)" -ge 10 ]
ok $? "the guest's processes are host processes"
ends "$sentry" sbx-sentry
said sbx-sentry

begin
ends "$gofer" sbx-gofer
said sbx-gofer

begin
ends "$init" "the stubs' init"
# The host ends the guest's processes before init: the sentry may see either first.
[ $rc -eq 125 ] || [ $rc -eq 137 ]
ok $? "the stubs' init killed: 125 or 137 ($rc)"

begin
ends $pid sbx

begin
zygote=$(children "$init" | cut -d' ' -f1)
ends "$zygote" "the zygote"
said "the zygote"

# The guest's first process: the sandbox ends as if the guest had killed it.
begin
first=$(children "$init" | cut -d' ' -f2)
ends "$first" "the guest's first process"
is $rc 137 "the guest's first process killed: 137"

# Another process of the guest: only the guest notices.
rm -f started
# shellcheck disable=SC2086
"$sbx" exec $sbxflags -t 60 -- sh -c 'sleep 1000 & p=$!; echo x >started; wait $p; echo "status $?"' >"$tmp/out" 2>&1 </dev/null &
pid=$!
wait_for 10 test -e started
sleep 0.3
sentry=$(child_named $pid sbx-sentry | head -n 1)
init=$(children "$sentry" | cut -d' ' -f1)
victim=$(children "$init" | tr ' ' '\n' | sed -n 3p)
kill -KILL "$victim"
wait $pid
is $? 0 "another process of the guest killed: the sandbox goes on"
has "$tmp/out" "status 137" "another process of the guest killed: its parent is told"

# Signals for sbx: the guest gets the first; one that ignores it is ended by the second.
begin
kill -TERM $pid
sleep 0.3
kill -TERM $pid
# shellcheck disable=SC2086
gone_within 2000 $all
ok $? "SIGTERM twice: nothing is left after a second"
wait $pid
is $? 143 "SIGTERM twice: 143"

# A deadline ends a guest that ignores everything.
start=$(ms)
run -t 1 -- sh guest.sh >/dev/null 2>"$tmp/err" </dev/null
is $? 124 "deadline: 124"
[ $(($(ms) - start)) -lt 8000 ]
ok $? "deadline: in time"
finish
