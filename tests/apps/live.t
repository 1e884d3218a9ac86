# SPDX-License-Identifier: Apache-2.0
# What the host does to a granted directory while a guest works in it, and attempts at hidden files.
. "$(dirname "$0")/lib.sh"
# The guest runs the lines that it gets and answers each with one.
guest='while read -r cmd; do eval "$cmd" 2>&1 | tr "\n" " "; echo; done'
ask() { # COMMAND: its output in $answer
	echo "$1" >&3
	read -r answer <&4
	answer=${answer% }
}
says() { # NAME COMMAND WANT
	ask "$2"
	if [ "$answer" = "$3" ]; then ok "$p: $1"; else
		echo "got '$answer', want '$3'" >"$scratch/why"
		not_ok "$p: $1" "$scratch/why"
	fi
}
begin() { # SBX-OPTION...
	rm -f "$scratch/in" "$scratch/out"
	mkfifo "$scratch/in" "$scratch/out"
	timeout 120 "$sbx" exec --platform "$p" -t 100 --stdin pipe "$@" -- bash -c "$guest" <"$scratch/in" >"$scratch/out" \
		2>"$scratch/err" &
	pid=$!
	exec 3>"$scratch/in" 4<"$scratch/out"
}
end() {
	exec 3>&- 4<&-
	wait "$pid"
}
for p in $platforms; do
	fresh
	begin -w "$work"
	says "a name that is missing" 'test -e x; echo $?' 1
	echo 1 >"$work/x"
	says "is there as soon as the host made it" 'test -e x; echo $?' 0
	bad=0
	for i in 1 2 3 4 5 6 7 8 9 10; do
		echo 1 >>"$work/x"
		ask 'stat -c %s x'
		[ "$answer" = $((2 * i + 2)) ] || bad=$((bad + 1))
	done
	check "$p: it grows" test $bad = 0
	mv "$work/x" "$work/y"
	says "the host renames" 'ls' y
	mkdir "$work/d"
	echo 1 >"$work/d/a"
	says "makes a directory" 'cat d/a; ls d' "1 a"
	mv "$work/d" "$work/e"
	mkdir "$work/d"
	echo 2 >"$work/d/a"
	says "and another in its place" 'cat d/a e/a' "2 1"
	chmod 700 "$work/e"
	says "chmod" 'stat -c %a e' 700
	echo new >"$work/e/tmp"
	mv "$work/e/tmp" "$work/e/a"
	says "replaces a file, as editors do" 'cat e/a' new
	rm -r "$work/e"
	says "removes all" 'ls -d e; ls' "ls: cannot access 'e': No such file or directory d y"
	says "the guest writes" 'echo -n a >>z; stat -c %s z' 1
	echo b >>"$work/z"
	says "then the host" 'stat -c %s z; echo -n c >>z; stat -c %s z' "3 4"
	echo d >>"$work/z"
	says "and so on" 'stat -c %s z; cat z' "6 ab cd"
	# Not told by any event: a write through another name.
	ln "$work/z" "$work/d/z"
	ask 'stat -c %s z'
	echo e >>"$work/d/z"
	sleep 1.1
	says "a file changed by another name is seen within a second" 'stat -c "%s %h" z' "8 2"
	# The guest's own changes of attributes are there when it says so.
	ask 'exec 9>w; touch -d @1000 w; chmod 751 /proc/self/fd/9 w; echo ok'
	check "$p: the host sees attributes at once" test "$(stat -c '%a %Y' "$work/w")" = "751 1000"
	end
	# Through a listing, too: one that does not have the name, and one that was asked before.
	fresh
	mkdir "$work/s"
	echo x >"$work/s/secret"
	echo x >"$work/s/open"
	cat >"$scratch/policy.json" <<END
{ "version": 1, "files": { "hide": ["$work/s/secret"] } }
END
	timeout 60 "$sbx" exec --platform "$p" -t 50 --json --policy "$scratch/policy.json" -w "$work" -- bash -c '
		ls s >/dev/null; for i in 1 2 3; do cat s/secret; cat s/nothing$i; done; ls /etc >/dev/null; cat /etc/shadow; cat /etc/nothing; sleep 1.5; cat /etc/shadow; true' \
		>"$scratch/json" 2>"$scratch/err" </dev/null
	denied() { # PATH: how often
		python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(sum(d.get("count", 1) for d in r["denials"] if d["target"] == sys.argv[2]))' "$scratch/json" "$1"
	}
	check "$p: each attempt at a hidden file is a denial" test "$(denied "$work/s/secret")" = 3
	check "$p: also at one that the policy hides by itself" test "$(denied /etc/shadow)" = 2
	check "$p: a missing file is none" test "$(denied "$work/s/nothing1")$(denied /etc/nothing)" = 00
done
finish
