#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A guest that uses up everything it can gets Linux's errno at its limit; nothing but itself is harmed.
. "$(dirname "$0")/lib.sh"

cp "$stress/flood" "$tmp/ws/flood"
limits="--tasks 100 --memory 300M --disk 50M --inodes 3000"

flood() { # ARG... : output in $out, exit code in $rc, result in $tmp/json
	# shellcheck disable=SC2086
	run -t 50 $limits --json=3 -- ./flood "$@" 3>"$tmp/json" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	out=$(cat "$tmp/out")
}

status() { # WANT NAME
	is "$(sed -n 's/.*"status":"\([a-z_]*\)".*/\1/p' "$tmp/json")" "$1" "$2"
}

before_groups=$(find /sys/fs/cgroup -maxdepth 4 -type d -name "sbx-*" 2>/dev/null | wc -l)
flood forks
is "$out" "99 EAGAIN" "fork bomb: EAGAIN at the task limit"
is $rc 0 "fork bomb: afterwards there is room again"
flood threads
is "$out" "99 EAGAIN" "thread bomb: EAGAIN at the task limit"

# One that never stops is ended at once.
# shellcheck disable=SC2086
"$sbx" exec $sbxflags $limits -t 50 -- ./flood bomb >/dev/null 2>&1 </dev/null &
pid=$!
sleep 2
# shellcheck disable=SC2046
all=$(stamp $pid $(descendants $pid))
start=$(ms)
kill -TERM $pid
sleep 0.05
kill -TERM $pid 2>/dev/null
wait $pid
is $? 143 "endless fork bomb: ended by a signal"
[ $(($(ms) - start)) -lt 3000 ]
ok $? "endless fork bomb: within a second"
# shellcheck disable=SC2086
gone_within 2000 $all
ok $? "endless fork bomb: nothing is left"

for place in /tmp /var /dev/shm; do
	flood fill $place
	case $out in
	[45]?" ENOSPC") r=0 ;;
	*) r=1 && echo "# $out" ;;
	esac
	ok $r "disk fill, $place: ENOSPC at the quota"
	flood inodes $place
	case $out in
	2???" ENOSPC") r=0 ;;
	*) r=1 && echo "# $out" ;;
	esac
	ok $r "inode fill, $place: ENOSPC at the limit"
done
# shellcheck disable=SC2086
run -t 50 $limits --json=3 -- sh -c './flood fill /tmp >/dev/null; exit 3' 3>"$tmp/json" >/dev/null 2>&1
is $? 3 "disk fill: the guest goes on"
status disk_limit "disk fill: named in the result"
flood fill-memfd
case $out in
[0-9]*" ENOSPC") r=0 ;;
"0 EBADF") r=2 ;;
*) r=1 && echo "# $out" ;;
esac
if [ $r -eq 2 ]; then skip "memfd fill" "no memfd"; else ok $r "memfd fill: ENOSPC at the quota"; fi

# Memory in each of its forms, against a control group's limit where the host has one, and against our own samples.
groups=none
"$sbx" features | grep -q '^cgroup *yes' && groups="auto none"
hog() { # GROUP WHAT
	run -t 50 --memory 100M --cgroup "$1" --json=3 -- ./flood "$2" 3>"$tmp/json" >"$tmp/out" 2>"$tmp/err" </dev/null
	is $? 137 "$2, cgroup $1: 137"
	status oom "$2, cgroup $1: named in the result"
	is "$(grep -c '^sbx: ' "$tmp/err")" 1 "$2, cgroup $1: one line says why"
	peak=$(sed -n 's/.*"max_rss":\([0-9]*\).*/\1/p' "$tmp/json")
	[ "$1" = none ] || [ "$peak" -lt 140000000 ]
	ok $? "$2, cgroup $1: the limit holds ($peak bytes)"
}
for group in $groups; do
	for what in memory shared-memory memory-of-many pipe-memory; do
		hog $group $what
	done
	# What is written goes to the disk beyond a part of the memory, and is no memory of the sandbox.
	run -t 50 --memory 100M --disk 300M --cgroup $group --json=3 -- ./flood fill /tmp 3>"$tmp/json" >"$tmp/out" 2>"$tmp/err"
	is "$? $(cat "$tmp/out")" "0 299 ENOSPC" "more disk than memory, cgroup $group: up to the quota"
	status exited "more disk than memory, cgroup $group: the guest goes on"
done
left=$(find /sys/fs/cgroup -maxdepth 4 -type d -name "sbx-*" 2>/dev/null | wc -l)
[ "$groups" = none ] || is "$left" "$before_groups" "no control group is left"
flood socket
[ "$rc" -eq 137 ] || [ "$out" != "${out% EMFILE}" ]
ok $? "socket buffers count as memory"

for what in file epoll pipe eventfd; do
	flood $what
	case $out in
	*" EMFILE") r=0 ;;
	*) r=1 && echo "# $out" ;;
	esac
	ok $r "$what flood: EMFILE"
done
for what in timerfd inflight timers signals maps deep names argv futexes watches locks; do
	flood $what
	[ "$rc" -eq 0 ]
	ok $? "$what flood: the guest goes on ($out)"
done

# The host's own limit of open files is smaller than what the guest asks for: an errno, not the end.
mkdir "$tmp/ws/many"
i=0
while [ $i -lt 600 ]; do
	echo $i >"$tmp/ws/many/$i"
	i=$((i + 1))
done
(
	ulimit -n 300
	run -t 50 -- ./flood distinct many
) >"$tmp/out" 2>"$tmp/err" </dev/null
is $? 0 "few host fds: ENFILE, and the sandbox goes on ($(cat "$tmp/out"))"
[ -s "$tmp/err" ] && head -n 3 "$tmp/err" | sed 's/^/# /'

# Output is kept up to a limit, and counted to the byte.
limit=200 run -t 180 --json -- ./flood output4 >"$tmp/json" 2>"$tmp/err"
is $? 0 "much output: the guest is not held up for ever"
grep -q '"truncated":{"stdout":3145728,' "$tmp/json"
ok $? "much output: capped and counted ($(sed -n 's/.*\("truncated":{[^}]*}\).*/\1/p' "$tmp/json"))"
run -t 3 --json -- ./flood output >"$tmp/json" 2>"$tmp/err"
is $? 124 "endless output: ended by the deadline"
[ "$(wc -c <"$tmp/json")" -lt 4000000 ]
ok $? "endless output: the result has a bound ($(wc -c <"$tmp/json") bytes)"
# Both ways, through pipes whose other ends are quick and slow in turn.
r=$(head -c 5000000 /dev/zero | run -t 60 --stdin pipe -- cat | (dd bs=1000 count=300 && cat) 2>/dev/null | wc -c)
is "$r" 5000000 "much input and output: every byte comes"

# Everything is deleted inside; the host does not notice.
mkdir -p "$tmp/cow/a/b"
echo keep >"$tmp/cow/a/b/f"
listing() {
	find "$tmp/cow" /etc /usr/bin /opt /var/lib/dpkg -xdev -printf '%p %y %m %s %T@\n' 2>/dev/null | sort | cksum
}
before=$(listing)
cat >"$tmp/ws/wipe.pl" <<'G'
use File::Find;
finddepth({ no_chdir => 1, wanted => sub { -d $_ && ! -l $_ ? rmdir $_ : unlink $_ } }, "/etc", "/usr/share", "/opt", "/var", @ARGV);
G
cp "$tmp/ws/wipe.pl" "$tmp/wipe.pl"
run -t 60 --cow-path "$tmp/cow" -- sh -c "perl wipe.pl $tmp/cow; rm -rf /usr/bin /lib $tmp/cow /var/lib; ls $tmp/cow/a" >"$tmp/out" 2>&1
is "$(listing)" "$before" "all is deleted inside: the host's files are as they were"
is "$(cat "$tmp/cow/a/b/f")" keep "all is deleted inside: nor is what was granted copy-on-write"
finish
