# SPDX-License-Identifier: Apache-2.0
# The command line's promises: exit codes, the result object, deadlines, grants, limits, policy, audit.
. "$(dirname "$0")/lib.sh"
needs python3 || { skip cli "no python3"; finish; }
fresh
cd "$work" || exit 1
run() { timeout "$(patience 40)" "$sbx" exec --platform "$p" -w "$work" "$@"; }
status() { # NAME WANTED OPTIONS...
	s_name=$1 s_want=$2
	shift 2
	run "$@" >out 2>err </dev/null
	s_rc=$?
	if [ $s_rc -eq "$s_want" ]; then ok "$p: $s_name"; else echo "status $s_rc, wanted $s_want" | cat - err >why; not_ok "$p: $s_name" why; fi
}
output() { # NAME WANTED OPTIONS...: standard output is WANTED
	o_name=$1 o_want=$2
	shift 2
	run "$@" >out 2>err </dev/null
	if [ "$(cat out)" = "$o_want" ]; then ok "$p: $o_name"; else not_ok "$p: $o_name" out err; fi
}
json() { # NAME PYTHON-CONDITION OPTIONS...: over the result object r
	j_name=$1 j_cond=$2
	shift 2
	run --json "$@" >out 2>err </dev/null
	if python3 -c 'import json, sys
r = json.load(open("out"))
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$j_cond" 2>>err; then ok "$p: $j_name"; else not_ok "$p: $j_name" err out; fi
}
refused() { # NAME OPTIONS...: status 125 and one line of sbx on stderr
	r_name=$1
	shift
	run "$@" >out 2>err </dev/null
	r_rc=$?
	if [ $r_rc -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q '^sbx: ' err && [ ! -s out ]; then ok "$p: $r_name"; else
		echo "status $r_rc" >>err
		not_ok "$p: $r_name" err
	fi
}
same() { check "$p: $1" test "$2" = "$3"; } # NAME VALUE WANTED
for p in $platforms; do
	status 'exit code' 7 -- sh -c 'exit 7'
	status 'exit code of a signal' 143 -- sh -c 'kill $$'
	status 'a program not found' 127 -- nosuchprogram
	status 'a program not found by path' 127 -- ./nosuch
	echo x >plain
	status 'a file that is no program' 126 -- ./plain
	status timeout 124 -t 0.5 -- sleep 20
	status 'idle timeout' 124 --idle-timeout 0.5 -- sh -c 'echo x; sleep 20'
	status 'output keeps an idle timeout off' 0 --idle-timeout 3 -- sh -c 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done'
	refused 'unknown option' --nosuch -- true
	refused 'no command'
	refused 'conflicting options' --root --user 5 -- true
	refused 'bad number' --tasks many -- true
	refused 'bad memory' --memory 5X -- true
	refused 'missing grant' --ro /nosuch/dir -- true
	refused 'missing value' --timeout
	refused 'missing workspace' -w /nosuch -- true
	refused 'missing policy' --policy /nosuch -- true
	json 'result object' 'r["v"] == 1 and r["exit_code"] == 3 and r["status"] == "exited" and r["signal"] is None and r["stdout"] == "o\n" and
		r["stderr"] == "e\n" and r["encoding"] == "utf-8" and r["platform"] == "'"$p"'" and len(r["id"]) == 26 and r["truncated"] == {"stdout": 0, "stderr": 0} and
		all(k in r for k in "message waiting_for_input duration_ms usage changes denials net background audit".split()) and
		all(k in r["usage"] for k in "cpu_user_ms cpu_sys_ms max_rss tasks_peak store_bytes net_rx net_tx".split())' -- sh -c 'echo o; echo e >&2; exit 3'
	json 'result of a signal' 'r["status"] == "signaled" and r["signal"] == 9 and r["exit_code"] == 137' -- sh -c 'kill -9 $$'
	json 'result of a missing program' 'r["exit_code"] == 127' -- nosuchprogram
	json 'partial output of a timeout' 'r["status"] == "timeout" and r["exit_code"] == 124 and r["stdout"] == "before\n"' -t 3 -- sh -c 'echo before; sleep 20; echo after'
	json 'idle timeout' 'r["status"] == "idle_timeout" and r["exit_code"] == 124' --idle-timeout 0.5 -- sleep 20
	json 'binary output' 'r["encoding"] == "base64" and __import__("base64").b64decode(r["stdout"]) == b"\xff\x00\xfe"' -- printf '\377\000\376'
	json 'merged output' '"output" in r and "stdout" not in r and r["output"] == "a\nb\nc\n"' --merge-output -- sh -c 'echo a; echo b >&2; echo c'
	json 'output cap' 'r["truncated"]["stdout"] > 1000000 and len(r["stdout"]) < 1100000 and r["stdout"].startswith("1\n2\n") and r["stdout"].endswith("400000\n")' -- seq 400000
	sleep 8 | run --json -t 3 --stdin pipe -- cat >out 2>err
	check "$p: waiting for input" grep -q '"status":"timeout".*"waiting_for_input":true' out
	json 'background processes' 'len(r["background"]) >= 1 and "sleep" in r["background"][0]["cmd"]' -- sh -c 'setsid sleep 25 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done'
	json 'changes' 'any(c["op"] == "A" and c["path"].endswith("/added") for c in r["changes"]) and any(c["op"] == "M" and c["path"].endswith("/plain") for c in r["changes"])' --cow -- sh -c 'echo 1 > added; echo 2 >> plain'
	json 'changes of a guest that is stopped' 'r["status"] == "timeout" and [c["path"] for c in r["changes"] if "late" in c["path"]] == ["'"$work"'/late"] and not r["truncated"].get("changes")' --cow -t 3 -- sh -c 'echo 1 > late; while :; do :; done'
	json 'many changes' 'len([c for c in r["changes"] if "/many/" in c["path"]]) == 3000' --cow -- sh -c 'mkdir many; cd many; i=0; while [ $i -lt 3000 ]; do : >a-name-of-which-a-few-thousand-are-more-than-a-message-holds.$i; i=$((i + 1)); done'
	json 'no changes' 'r["changes"] == []' --cow -- true
	refused '--keep is refused' --keep -- true
	check "$p: and why" grep -q 'not built' err
	mark=$((60 + $$ % 1000)).$$
	run -t 2 -- sh -c "(setsid sh -c 'sleep $mark & exec sleep $mark' &) ; sleep $mark" >out 2>err </dev/null
	same 'a timeout kills daemons too' "$(ps -eo args | grep -c "[s]leep $mark")" 0
	mkdir -p "$scratch/ro" "$scratch/rw" "$scratch/cow"
	echo host | tee "$scratch/ro/f" "$scratch/rw/f" >"$scratch/cow/f"
	output 'grants' "host no host yes host yes" --ro "$scratch/ro" --rw "$scratch/rw" --cow-path "$scratch/cow" -- sh -c 'for d in ro rw cow; do cat ../$d/f; (echo new > ../$d/f) 2>/dev/null && echo yes || echo no; done | xargs; echo > ../else'
	check "$p: what lies between the grants stays in the sandbox" test ! -e "$scratch/else"
	same 'a read-only grant is as it was' "$(cat "$scratch/ro/f")" host
	same 'a read-write grant has changed' "$(cat "$scratch/rw/f")" new
	same 'a copy-on-write grant is as it was' "$(cat "$scratch/cow/f")" host
	output '--cow: seen inside' 'new gone' --cow -- sh -c 'echo new > plain; cat plain | tr "\n" " "; rm plain; mkdir plain; rmdir plain; test -e plain || echo gone; mkdir -p x/y; touch x/y/z'
	same '--cow: the host is as it was' "$(cat plain) $(ls -d x 2>&1 | grep -c .)" "x 1"
	output 'the workspace is read-write' 'w' -- sh -c 'echo w > written; cat written'
	same 'and written to on the host' "$(cat written)" w
	output '--user' '1234 77' --user 1234:77 -- sh -c 'echo $(id -u) $(id -g)'
	output '--root' '0 0' --root -- sh -c 'echo $(id -u) $(id -g)'
	SBX_T=passed SBX_U=hidden output '-e and --pass-env' 'set passed -' -e A=set --pass-env SBX_T -- sh -c 'echo $A $SBX_T ${SBX_U:--}'
	output '--shell' '3 a b' --shell 'echo $((1 + 2)) "a b"'
	output 'stdin is empty' '0' -- sh -c 'wc -c'
	same 'stdin from a pipe' "$(echo through | run --stdin pipe -- cat)" through
	same 'sbx prints nothing of its own' "$(run -- true 2>&1)" ''
	json 'tasks' 'r["status"] == "task_limit" or "fork" in r["stderr"]' --tasks 8 -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait'
	json 'disk' 'r["status"] == "disk_limit" and "No space" in r["stderr"]' --disk 1M -- dd if=/dev/zero of=/tmp/f bs=64k count=64
	json 'inodes' 'r["status"] == "disk_limit" and "No space" in r["stderr"]' --inodes 100 -- sh -c 'cd /tmp; for i in $(seq 300); do : > f$i || exit 1; done'
	json 'memory' 'r["status"] == "oom"' --memory 64M -- /usr/bin/python3 -c 'import time; x = bytearray(200 << 20); time.sleep(5)'
	json 'cpu time' 'r["status"] == "timeout" or r["signal"] in (9, 24)' --cpu-time 1 -- sh -c 'while :; do :; done'
	json 'a banned command' 'r["status"] == "banned" and r["exit_code"] == 126 and r["denials"][0]["class"] == "exec" and r["message"]' -- mkfs.ext4 /dev/sda
	status 'a banned command in a shell' 126 -- sh -c 'dd if=/dev/zero of=/dev/sda'
	check "$p: and its message" grep -q '^sbx: ' err
	echo '{"version":1,"process":{"env":{"FROM":"policy"},"timeout_s":1},"exec":{"deny":[{"program":"cut","reason":"no cutting"}]}}' >good
	output '--policy' policy --policy good -- sh -c 'echo $FROM'
	status 'a ban of the policy' 126 --policy good -- cut -c1 plain
	check "$p: its reason" grep -q 'no cutting' err
	status 'timeout of the policy' 124 --policy good -- sleep 20
	for bad in '{"version":1,"nosuch":1}' '{"version":2}' '{"version":1' '{"version":1,"process":{"timeout_s":-1}}' '[]' '{"version":1,"version":1}'; do
		echo "$bad" >bad
		refused "bad policy $bad" --policy bad -- true
		"$sbx" policy check bad >out 2>&1
		same "sbx policy check: bad policy $bad" $? 125
	done
	"$sbx" policy check good >out 2>err
	same 'sbx policy check: good' "$?" 0
	run --audit "$scratch/log" --ro "$scratch/ro" -- sh -c 'echo x > ../ro/f; cut --version' >out 2>err
	run --audit "$scratch/log" --policy good -- cut -c1 plain >out 2>err
	check "$p: audit log verifies" "$sbx" audit verify "$scratch/log"
	check "$p: audit log names what was denied" grep -q '"class":"exec".*"verdict":"deny"' "$scratch/log"
	check "$p: each line is JSON" python3 -c 'import json, sys; [json.loads(l)["hash"] for l in open(sys.argv[1])]' "$scratch/log"
	sed '2s/"verdict":"[a-z]*"/"verdict":"maybe"/' "$scratch/log" >tampered
	"$sbx" audit verify tampered >out 2>&1
	check "$p: a changed record is found" test $? -ne 0
	sed 2d "$scratch/log" >tampered
	"$sbx" audit verify tampered >out 2>&1
	check "$p: a removed record is found" test $? -ne 0
	rm -f "$scratch/log"
	check "$p: sbx features" sh -c '"$1" features | grep -q seccomp_notify' sh "$sbx"
done
cd / && finish
