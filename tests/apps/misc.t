# SPDX-License-Identifier: Apache-2.0
# Status programs, what a command inherits (nothing), and programs that would wait for a person.
. "$(dirname "$0")/lib.sh"
app "ps and pgrep" <<'END'
sleep 30 & until grep -q sleep /proc/$!/comm; do :; done; ps -o pid=,ppid=,stat=,comm= -p $! | awk '{print $3, $4}' | sed 's/N//'; ps -o args= -p $$ | grep -c bash; pgrep -P $$ sleep | wc -l; pkill -P $$ sleep; wait; ps -p $! | wc -l
ps -eo pid= | grep -cx " *$$"; ps -o rss= -p $$ | grep -c '[1-9]'; ps -o nlwp= -p $$ | tr -d ' '; pidof nosuch; echo $?; ps -o etimes= -p $$ | grep -c .; ps -o tty= -p $$; ps -ef | head -n 1 | sed 's/ \+/ /g'
END
app "top, free, uptime, vmstat, nproc" <<'END'
top -bn1 | grep -c 'load average\|^ *PID\|[[:space:]]top$'; free | awk 'NR == 2 {print $1, ($2 > 0)}'; uptime | grep -c 'load average'; vmstat | wc -l; test "$(nproc)" -ge 1; echo $?; cat /proc/loadavg | wc -w; w 2>/dev/null | grep -c 'load average'; tty; echo $?
END
app identity <<'END'
id; whoami; groups; id -Gn; getent passwd root; uname -s -m; test "$(hostname)"; echo $?; arch; date -u -d @0 +%F; test $(date +%s) -gt 1700000000; echo $?; date +%Z; locale | grep LC_ALL; locale charmap; logname 2>/dev/null; getconf PAGESIZE; cat /proc/self/comm; umask; nice; pwd -P | grep -c .
TZ=America/New_York date -d @0 +%H; cal 1 2024 2>/dev/null | head -n 1; groups root; stty 2>/dev/null; echo $?; who | wc -l; lsb_release -is 2>/dev/null; head -n 1 /etc/os-release
END
app "proc reads" <<'END'
for f in stat status statm maps smaps limits cmdline comm environ auxv mounts mountinfo io oom_score oom_score_adj cgroup wchan personality; do head -c 1 /proc/self/$f >/dev/null 2>&1 || echo "no $f"; done; grep -c '^Threads' /proc/self/status; grep '^Name\|^Uid\|^SigQ' /proc/self/status | cut -f1
for f in cpuinfo meminfo stat version uptime filesystems mounts loadavg vmstat sys/kernel/osrelease sys/kernel/pid_max sys/vm/overcommit_memory sys/fs/file-max sys/kernel/hostname sys/kernel/random/uuid sys/kernel/random/boot_id; do [ -n "$(head -n 1 /proc/$f)" ] || echo "no $f"; done
readlink /proc/self/exe /proc/self/cwd | sed "s,$PWD,P,"; tr '\0' ' ' < /proc/self/cmdline; echo; ls /proc/self/task | wc -l; test -d /proc/1; echo $?; grep -c libc /proc/self/maps | grep -c '[1-9]'; cat /proc/$$/status | grep -c State; cat /proc/nosuch; echo $?; cat /dev/zero | head -c 3 | od -An -tx1; head -c 9 /dev/urandom | wc -c; ls /dev/fd/ | head -n 2; echo x > /dev/null; ls -l /dev/null | cut -c1-10
END
app "packages" <<'END'
apt-get --version | head -n 1; dpkg -l | wc -l; dpkg -S /bin/bash 2>/dev/null | head -n 1; dpkg-query -W bash; dpkg --print-architecture; apt-cache policy bash 2>/dev/null | head -n 1; dpkg -L bash | wc -l; ldconfig -p | grep -c libc.so; ldd /bin/ls | grep -c libc
END
app "sqlite3, openssl, checksums" <<'END'
command -v sqlite3 >/dev/null && { echo 'create table t(a); insert into t values(1),(2); select sum(a) from t; pragma integrity_check;' | sqlite3 x.db; sqlite3 x.db .dump; }; echo x | sha256sum; sha1sum x.db | wc -l; command -v openssl >/dev/null && { echo data | openssl dgst -sha256; openssl rand -hex 4 | wc -c; openssl genrsa 1024 2>/dev/null | head -n 1; echo s | openssl enc -aes-128-cbc -pass pass:p -pbkdf2 | openssl enc -d -aes-128-cbc -pass pass:p -pbkdf2; }
strings /bin/true | wc -l; file /bin/ls 2>/dev/null | cut -d, -f1; bc <<< '2^64' 2>/dev/null; xxd <<< a 2>/dev/null; jq -c . <<< '{"a": [1]}' 2>/dev/null; flock f echo locked; setsid echo setsid; nohup echo nohup 2>/dev/null; stdbuf -oL echo buf; env -i A=1 env; time -p true 2>/dev/null; unshare --version >/dev/null; echo $?
END
app "programs that would wait for a person" <<'END'
seq 5000 > big; git init -q .; git add big; for i in 1 2 3 4 5; do git -c user.name=a -c user.email=a@x commit -q --allow-empty -m "$(seq 50)"; done; git log | wc -l; less big | wc -l; more big < /dev/null | wc -l; git -c user.name=a -c user.email=a@x commit -q --allow-empty; echo $?
cat; read x; echo $?; rm -i big; ls big; cp -i big big2; python3 -c 'input()' 2>&1 | tail -n 1; git diff | cat; git push nosuch 2>/dev/null; echo $?; bc < /dev/null 2>/dev/null; sort | wc -l; sh -i < /dev/null 2>/dev/null; echo $?; man -P cat nosuchpage >/dev/null 2>&1; systemctl status 2>/dev/null | wc -l; sudo -n true 2>/dev/null; ssh -V 2>/dev/null; vi -c q nosuch >/dev/null 2>&1 < /dev/null; dialog 2>/dev/null; true
END
for p in $platforms; do
	fresh
	run() { timeout "$(patience 50)" "$sbx" exec --platform "$p" -w "$work" "$@"; }
	if needs npm; then
		run -t 45 -- npm init >"$scratch/out" 2>&1 </dev/null
		check "$p: npm init ends by itself" test -s "$work/package.json"
	else
		skip "$p: npm init" "no npm"
	fi
	check "$p: /dev/stdin through a pipe" sh -c 'test "$(seq 30000 | timeout 30 "$1" exec --stdin pipe -w "$2" -- cat /dev/stdin | cksum)" = "$(seq 30000 | cksum)"' sh "$sbx" "$work"
	check "$p: a reader that leaves ends a writer" sh -c 'test "$(timeout 30 "$1" exec -w "$2" -- yes | head -n 1)" = y' sh "$sbx" "$work"
	SSH_AUTH_SOCK=/x DBUS_SESSION_BUS_ADDRESS=y DISPLAY=:0 AWS_SECRET_ACCESS_KEY=z LD_PRELOAD='' FOO=bar run -- env >"$scratch/env" 2>/dev/null </dev/null
	check "$p: nothing of the caller's environment" sh -c '! grep -E "SSH_AUTH|DBUS|DISPLAY|AWS_SEC|LD_|FOO|XDG|SBX_BUILDDIR|OLDPWD" "$1"' sh "$scratch/env"
	for v in PAGER=cat GIT_PAGER=cat CI=true DEBIAN_FRONTEND=noninteractive TERM=dumb PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 GIT_TERMINAL_PROMPT=0 \
		GIT_EDITOR=true EDITOR=true MANPAGER=cat SYSTEMD_PAGER=cat AWS_PAGER= GH_PAGER=cat GH_PROMPT_DISABLED=1 npm_config_yes=true PIP_NO_INPUT=1 NO_COLOR=1 SSH_ASKPASS=; do
		grep -qx "$v" "$scratch/env" || echo "no $v"
	done >"$scratch/missing"
	check "$p: the environment of a command" sh -c 'cat "$1"; test ! -s "$1"' sh "$scratch/missing"
	exec 7</etc/passwd 8>"$scratch/leak"
	run -- sh -c 'ls /proc/self/fd | tr "\n" " "; echo; cat <&7; echo >&8; ps -o sid= -p $$; ls -l /proc/self/fd/0 | grep -c null; umask' >"$scratch/out" 2>/dev/null </dev/null
	check "$p: no descriptor of the caller" sh -c 'head -n 1 "$1" | grep -x "0 1 2 3 "' sh "$scratch/out"
	check "$p: nor its data" sh -c '! grep root: "$1"' sh "$scratch/out"
	exec 7<&- 8>&-
	run -- sh -c 'ls ~/.ssh ~/.aws; cat /etc/shadow; ls /home/*; ls /dev/tty && echo > /dev/tty; ls /run/docker.sock' >"$scratch/out" 2>/dev/null </dev/null
	check "$p: no secrets and no terminal" sh -c '! grep -v "^/dev/tty" "$1"' sh "$scratch/out"
done
finish
