#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ways out of a grant, and into what is hidden. Beside each grant lies a canary that must be neither read nor changed.
. "$(dirname "$0")/lib.sh"

tries=1500
[ "$long" = long ] && tries=30000
mkdir -p "$tmp/outside/deep" "$tmp/rw/d/sub" "$tmp/ro/d"
chmod 755 "$tmp"
echo outside-canary >"$tmp/outside/f"
echo outside-canary >"$tmp/outside/canary"
echo inside >"$tmp/rw/d/f"
echo inside >"$tmp/ro/d/f"
cp "$stress/files" "$tmp/ws/files"

snapshot() { # of all that the guest was not given
	find "$tmp/outside" "$tmp/ro" -printf '%p %y %m %U:%G %s %T@ %l\n' | sort
	find "$tmp/outside" "$tmp/ro" -type f -exec cat {} + | cksum
}

race() { # GRANT-OPTION DIR
	ln -sfn "$tmp/outside" "$2/l"
	"$stress/files" flip "$2/d" "$2/l" &
	flipper=$!
	limit=300 run -t 280 "$1" "$2" -- ./files race "$2/d" $tries >"$tmp/out" 2>"$tmp/err"
	rc=$?
	kill -KILL $flipper
	wait $flipper 2>/dev/null
	[ -L "$2/d" ] && mv "$2/d" "$2/x" && mv "$2/l" "$2/d" && mv "$2/x" "$2/l"
	is $rc 0 "symlink race, $1: nothing of the outside was read ($(cat "$tmp/out"))"
	[ $rc -eq 0 ] || head -n 3 "$tmp/err" | sed 's/^/# /'
	grep -q 'inside [1-9]' "$tmp/out"
	ok $? "symlink race, $1: the inside was read"
}
find "$tmp/outside" -type f -exec cksum {} + >"$tmp/sum1"
find "$tmp/outside" -printf '%p %m %T@ %s\n' >>"$tmp/sum1"
race --rw "$tmp/rw"
race --ro "$tmp/ro"
rm -f "$tmp/ro/l"
find "$tmp/outside" -type f -exec cksum {} + >"$tmp/sum2"
find "$tmp/outside" -printf '%p %m %T@ %s\n' >>"$tmp/sum2"
cmp -s "$tmp/sum1" "$tmp/sum2"
ok $? "symlink race: the outside is as it was"

# The host moves the guest's directory out of the grant.
rm -f "$tmp/rw/go" "$tmp/rw/ready"
(
	wait_for 20 test -e "$tmp/rw/ready"
	mv "$tmp/rw/d" "$tmp/outside/deep/d"
	echo >"$tmp/rw/go"
) &
run -t 50 --rw "$tmp/rw" -- sh -c "cd $tmp/rw/d/sub && echo >../../ready; while [ ! -e $tmp/rw/go ]; do sleep 0.1; done
	cat ../../canary ../../../canary ../canary ../../../../canary ../../f 2>&1
	ls .. ../.. ../../..; echo x >../../../written; cd ..; cd ..; cat canary f; ls -la" >"$tmp/out" 2>&1
wait
mv "$tmp/outside/deep/d" "$tmp/rw/d"
! grep -q outside-canary "$tmp/out"
ok $? "a directory that the host moved out: nothing is read above it"
[ -z "$(find "$tmp" -name written)" ]
ok $? "a directory that the host moved out: nothing is written above it"

# Links of /proc lead into the guest's own tree.
run -- sh -c "for p in /proc/self/root /proc/1/root /proc/\$\$/cwd/../.. /proc/1/cwd/../.. /proc/self/fd/0/.. /proc/self/fd/1 /proc/self/exe/..; do
	cat \$p$tmp/outside/f \$p/../../..$tmp/outside/f \$p/outside/f; done" >"$tmp/out" 2>&1
! grep -q outside-canary "$tmp/out"
ok $? "magic links of /proc lead nowhere else"

# Hard links, FIFO, socket and device nodes that lie in a grant.
mkfifo "$tmp/rw/fifo"
ln "$tmp/outside/f" "$tmp/rw/hard" 2>/dev/null
mknod "$tmp/rw/null" c 1 3 2>/dev/null
mknod "$tmp/rw/mem" c 1 1 2>/dev/null
start=$(ms)
run -t 20 --rw "$tmp/rw" -- sh -c "cd $tmp/rw; timeout 3 dd if=null of=x bs=1 count=1; echo null \$?
	timeout 3 dd if=mem of=x bs=1 count=1; echo mem \$?
	mknod own c 1 3; echo node \$?; mkfifo f2 && (timeout 3 cat f2 & timeout 3 sh -c 'echo through >f2'; wait)
	cp /usr/bin/id suid; chmod 6755 suid; mkdir sg; chmod 2777 sg; chmod u+s hard 2>&1
	exit 0" >"$tmp/out" 2>&1
is $? 0 "special files: the guest ends"
[ $(($(ms) - start)) -lt 18000 ]
ok $? "special files: nothing hangs"
! grep -qx 'mem 0' "$tmp/out"
ok $? "special files: a device of a grant is not opened"
[ ! -e "$tmp/rw/own" ] || [ ! -c "$tmp/rw/own" ]
ok $? "special files: no device node is made on the host"
has "$tmp/out" through "special files: a FIFO works within the guest"
is "$(find "$tmp/rw" "$tmp/outside" -perm /6000)" "" "no set-id bit is given on the host"

# What is hidden.
run -- sh -c 'for f in /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/ssh_host_*_key /etc/machine-id /proc/kcore /proc/1/environ; do
	[ -r $f ] && cat $f | head -c 100 | grep -q . && echo "readable $f"; done
	ls -A /root /home /run /boot /mnt /media /srv /var/log /var/tmp 2>/dev/null
	ls -A / | grep -vxE "bin|boot|dev|etc|home|lib|lib32|lib64|libx32|lost\+found|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var"
	ls -A /etc | grep -xE "shadow-?|gshadow-?|sudoers|machine-id" | sed "s/^/listed /"
	exit 0' 2>/dev/null | grep -vE '^(/|$)' >"$tmp/out"
is "$(cat "$tmp/out")" "" "hidden: no secret readable or listed, no stray name in /"
mkdir -p "$tmp/home/me/ws" "$tmp/home/you"
echo secret >"$tmp/home/you/key"
run --ro "$tmp/home/me/ws" -- sh -c "ls -A $tmp/home $tmp/home/me; cat $tmp/home/you/key" >"$tmp/out" 2>&1
! grep -qE '^(you|secret)' "$tmp/out"
ok $? "hidden: what lies beside a grant"

# Environment and traces of the host.
SECRET_TOKEN=hunter2 AWS_SECRET_ACCESS_KEY=hunter2 SSH_AUTH_SOCK=/tmp/x run -- sh -c 'env; cat /proc/*/environ' >"$tmp/out" 2>&1
! grep -qE 'hunter2|SSH_AUTH_SOCK' "$tmp/out"
ok $? "the caller's environment is not passed"
run -- sh -c 'cat /proc/self/mountinfo /proc/mounts /proc/self/cgroup /proc/self/status /proc/*/cmdline /proc/*/maps /proc/sys/kernel/hostname /proc/net/* /proc/self/mountstats; ls -la /proc/self/fd /proc/self/ns' >"$tmp/out" 2>/dev/null </dev/null
! grep -aqE "sbx-sentry|sbx-gofer|$(cat /proc/sys/kernel/random/boot_id)|ext4|btrfs|/dev/(sd|vd|nvme)" "$tmp/out"
ok $? "nothing of the host's mounts and processes in /proc"
h=$(hostname)
[ "$h" = sbx ] || ! run -- sh -c 'hostname; uname -n; cat /proc/sys/kernel/hostname' 2>/dev/null | grep -qxF "$h"
ok $? "the host's name is not seen"

# Read-only: every way to write.
before=$(snapshot)
run -t 50 --ro "$tmp/ro" -- ./files ro "$tmp/ro" d/f >"$tmp/out" 2>"$tmp/err"
rc=$?
while IFS= read -r line; do
	case $line in
	"ok "*) ok 0 "${line#ok * - }" ;;
	"not ok "*) ok 1 "${line#not ok * - }" ;;
	esac
done <"$tmp/out"
is $rc 0 "ro: all were refused"
is "$(snapshot)" "$before" "ro: content, modes and times are as they were"
finish
