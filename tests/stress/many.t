#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many sandboxes, one after the other and at once: afterwards the host is as it was.
. "$(dirname "$0")/lib.sh"

seq=100 par=10
[ "$long" = long ] && seq=1000 par=50

# Only what is ours: other programs of the machine come and go.
left_behind() {
	for d in /proc/[0-9]*; do
		case $(cat "$d/comm" 2>/dev/null) in
		sbx-sentry | sbx-gofer | sbx) [ "$(readlink "$d/cwd")" = "$tmp/ws" ] || tr '\0' ' ' <"$d/cmdline" | grep -q "$tmp" && echo "$d" ;;
		esac
	done
	ls -d /tmp/*sbx* /dev/shm/*sbx* /run/*sbx* 2>/dev/null | grep -v '^/tmp/sbx-.*-[A-Za-z0-9]\{6\}$' # of tests
	grep sbx /proc/self/mountinfo
	# Control groups without the monitor that made them: their names tell its pid.
	find /sys/fs/cgroup -name 'sbx-*-*-*' 2>/dev/null | while read -r g; do
		pid=${g##*/sbx-}
		pid=${pid#*-}
		kill -0 "${pid%%-*}" 2>/dev/null || echo "$g"
	done
}
# Helpers that were started by this script: all have us as an ancestor, or none at all.
helpers() {
	for d in $(descendants $$); do
		case $(cat /proc/"$d"/comm 2>/dev/null) in
		sbx*) echo "$d" ;;
		esac
	done
}
run -- true >/dev/null 2>&1 </dev/null # takes away what killed ones have left
left_behind >"$tmp/before"
mounts=$(wc -l </proc/self/mountinfo)

bad=0
i=0
while [ $i -lt $seq ]; do
	run -- sh -c 'echo hello >/tmp/x; cat /tmp/x' >"$tmp/out" 2>"$tmp/err" </dev/null
	[ $? -eq 0 ] && [ "$(cat "$tmp/out")" = hello ] || { bad=$((bad + 1)); head -n 2 "$tmp/err" | sed 's/^/# /'; }
	i=$((i + 1))
done
is $bad 0 "$seq sandboxes one after another"
is "$(helpers)" "" "no process of them is left"

i=0
while [ $i -lt $par ]; do
	(run -- sh -c 'echo hello >/tmp/x; sleep 1; cat /tmp/x' >"$tmp/out.$i" 2>&1 </dev/null; echo $? >>"$tmp/out.$i") &
	i=$((i + 1))
done
wait
is "$(cat "$tmp"/out.* | sort | uniq -c | tr -s ' ' | tr '\n' ';')" " $par 0; $par hello;" "$par sandboxes at once"
is "$(helpers)" "" "no process of them is left"

# Ends that are not clean.
i=0
while [ $i -lt 10 ]; do
	# shellcheck disable=SC2086
	"$sbx" exec $sbxflags -- sleep 100 >/dev/null 2>&1 </dev/null &
	p=$!
	sleep "0.0$i"
	# shellcheck disable=SC2046
	all="${all:-} $(stamp $p $(descendants $p))"
	kill -KILL $p
	wait $p 2>/dev/null
	i=$((i + 1))
done
# shellcheck disable=SC2086
gone_within 2000 $all
ok $? "sbx killed while it starts: nothing is left"
run -- true >/dev/null 2>&1 </dev/null # a start takes away the control groups that killed ones left
left_behind >"$tmp/after"
is "$(cat "$tmp/after")" "$(cat "$tmp/before")" "no process, file, mount or cgroup is left"
is "$(wc -l </proc/self/mountinfo)" "$mounts" "no mount is left"
finish
