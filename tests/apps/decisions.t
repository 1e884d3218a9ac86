# SPDX-License-Identifier: Apache-2.0
# The same guest under the same policy: result, denials and audit log are the same on each platform.
SBX_PLATFORMS=$(echo "${SBX_ALL_PLATFORMS:-$SBX_PLATFORMS}" | tr , ' ')
. "$(dirname "$0")/lib.sh"
needs python3 || { skip decisions "no python3"; finish; }
cat >"$scratch/normal.py" <<'END'
# Usage: normal.py RESULT AUDIT: what does not depend on time, numbers of processes and names of sandboxes.
import json
import re
import sys

r = json.load(open(sys.argv[1]))
print("result", r["status"], r["exit_code"], r["signal"], r["message"])
print("stdout", r["stdout"])
print("stderr", r["stderr"])
for d in r["denials"]:
    print("denial", json.dumps(d, sort_keys=True))
for c in sorted(r["changes"], key=lambda c: c["path"]):
    print("change", json.dumps(c, sort_keys=True))
for e in map(json.loads, open(sys.argv[2])):
    for k in ("t", "sandbox", "pid", "prev", "hash", "count"):
        e.pop(k)
    print("audit", re.sub(r"(unotify|ptrace|kvm)", "PLATFORM", json.dumps(e, sort_keys=True)))
END
guest() { # what one does against the policy, and what it allows; one thing after the other
	cat <<'END'
try() { echo "== $*"; "$@" 2>&1; echo "status $?"; }
try cat ../ro/file
try sh -c 'echo x > ../ro/file'
try rm ../ro/file
try mv ../ro/file ../ro/other
try chmod 777 ../ro/file
try ln ../ro/file hard
try sh -c 'echo x > ../rw/new; cat ../rw/new'
try sh -c 'echo changed > ../cow/file; cat ../cow/file'
try rm ../cow/gone
try cat ../hidden/secret
try cat /etc/shadow
try ls /root/.ssh
try cat ../ungranted/file
try sh -c 'cat ../ro/link-out'
try sh -c 'echo evil > ../rw/.git/hooks/post-commit'
try cut --version
try ./banned-copy 3
try sh -c './banned-copy with args'
try mkfifo ../rw/fifo
try mknod ../rw/null c 1 3
try cat /dev/mem
try mount -t tmpfs none /mnt
try sh -c 'exec 3<>/dev/tcp/127.0.0.1/9'
try sh -c 'kill -9 1'
try sh -c 'kill -SEGV $$'
exit 3
END
}
scenario() { # PLATFORM: $scratch/PLATFORM has what happened
	fresh
	rm -rf "$scratch/host"
	mkdir -p "$scratch/host/w" "$scratch/host/ro" "$scratch/host/rw/.git/hooks" "$scratch/host/cow" "$scratch/host/hidden" \
		"$scratch/host/ungranted"
	for f in ro/file cow/file cow/gone hidden/secret ungranted/file; do echo host >"$scratch/host/$f"; done
	ln -s ../ungranted/file "$scratch/host/ro/link-out"
	cp /bin/true "$scratch/host/w/banned-copy"
	guest >"$scratch/host/w/guest.sh"
	cat >"$scratch/policy" <<END
{"version": 1,
 "files": {"grants": [{"path": "$scratch/host/ro", "mode": "ro"}, {"path": "$scratch/host/rw", "mode": "rw"},
                      {"path": "$scratch/host/cow", "mode": "cow"}, {"path": "$scratch/host", "mode": "ro"}],
           "hide": ["$scratch/host/hidden"], "protect": ["**/.git/hooks/**"]},
 "exec": {"deny": [{"program": "banned-copy", "args": ["with", "*"], "reason": "no arguments"}]}}
END
	timeout "$(patience 60)" "$sbx" exec --platform "$p" --policy "$scratch/policy" --audit "$scratch/audit" --json -t "$(patience 50)" \
		-w "$scratch/host/w" -- bash guest.sh >"$scratch/json" 2>"$scratch/err" </dev/null
	python3 "$scratch/normal.py" "$scratch/json" "$scratch/audit" >"$scratch/$p" 2>>"$scratch/err"
	"$sbx" audit verify "$scratch/audit" >>"$scratch/err" 2>&1 || echo "audit log is broken" >>"$scratch/$p"
	find "$scratch/host" ! -name guest.sh -printf '%P %y %m %s\n' | LC_ALL=C sort >>"$scratch/$p"
	rm -f "$scratch/audit"
}
first=
for p in $platforms; do
	scenario
	if ! grep -q '^audit' "$scratch/$p"; then
		not_ok "$p: runs" "$scratch/err"
	elif [ -z "$first" ]; then
		first=$p
		ok "$p: runs"
	elif cmp -s "$scratch/$first" "$scratch/$p"; then
		ok "$p: decides and logs as $first"
	else
		diff "$scratch/$first" "$scratch/$p" >"$scratch/diff"
		not_ok "$p: decides and logs as $first" "$scratch/diff"
	fi
done
p=$first
[ -z "$first" ] || check "the guest was stopped where it had to be" sh -c '
	grep -q "^result exited 3" "$1" && ! grep -q "^stdout.*root:" "$1" && grep -q "^denial.*banned-copy" "$1" &&
	grep -q "^ro/file f [0-9]* 5$" "$1" && grep -q "^cow/gone f" "$1"' sh "$scratch/$first"
# shellcheck disable=SC2086 # names
set -- $platforms
[ $# -gt 1 ] || skip "platforms decide alike" "there is only $first"
[ -z "${KEEP_DECISIONS:-}" ] || cp "$scratch/$first" "$KEEP_DECISIONS"
finish
